-- Rows whose cost is not known, or that are none of FOCUS's kinds of charges, by provider and month.
-- Parameters: :first, :next: first day looked at, and the first one after.
WITH unclear AS (
  SELECT
    ServiceProviderName,
    x_month,
    BilledCost,
    EffectiveCost,
    CASE WHEN COALESCE(ChargeCategory, '') = 'Tax' THEN 1 ELSE 0 END AS is_tax,
    CASE WHEN COALESCE(ChargeCategory, '') IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment') THEN 0 ELSE 1 END
      AS is_kindless
  FROM focus
  WHERE (BilledCost IS NULL OR EffectiveCost IS NULL
      OR COALESCE(ChargeCategory, '') NOT IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'))
    AND ChargePeriodStart >= CAST(:first AS TIMESTAMP)
    AND ChargePeriodStart < CAST(:next AS TIMESTAMP)
)
SELECT
  ServiceProviderName AS provider,
  CAST(x_month AS VARCHAR) AS month,
  SUM(CASE WHEN BilledCost IS NULL OR EffectiveCost IS NULL THEN 1 ELSE 0 END) AS no_cost,
  SUM(CASE WHEN BilledCost IS NULL AND is_tax = 0 THEN 1 ELSE 0 END) AS untaxed_no_billed,
  SUM(CASE WHEN EffectiveCost IS NULL AND is_tax = 0 THEN 1 ELSE 0 END) AS untaxed_no_effective,
  SUM(is_kindless) AS kindless,
  SUM(is_kindless * COALESCE(BilledCost, 0)) AS kindless_billed,
  SUM(is_kindless * COALESCE(EffectiveCost, 0)) AS kindless_effective
FROM unclear
GROUP BY ServiceProviderName, CAST(x_month AS VARCHAR)
