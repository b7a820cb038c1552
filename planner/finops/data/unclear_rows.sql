-- Rows whose cost is not known, or that are none of FOCUS's kinds of charges, by provider and month.
-- Parameters: :first, :next: first day looked at, and the first one after. In braces: unknown, a condition.
SELECT
  ServiceProviderName AS provider,
  CAST(x_month AS VARCHAR) AS month,
  SUM(CASE WHEN {unknown} THEN 1 ELSE 0 END) AS unknown_rows,
  SUM(CASE WHEN COALESCE(ChargeCategory, '') IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment') THEN 0 ELSE 1 END)
    AS kindless_rows,
  SUM(CASE WHEN COALESCE(ChargeCategory, '') IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment') THEN 0
    ELSE COALESCE(EffectiveCost, 0) END) AS kindless_cost
FROM focus
WHERE (({unknown}) OR COALESCE(ChargeCategory, '') NOT IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'))
  AND ChargePeriodStart >= CAST(:first AS TIMESTAMP)
  AND ChargePeriodStart < CAST(:next AS TIMESTAMP)
GROUP BY ServiceProviderName, CAST(x_month AS VARCHAR)
