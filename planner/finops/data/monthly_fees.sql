-- Use and purchases of a month and of the two before it, by service: all cost of the month before, and of charges of more
-- than a day, such as monthly fees, the cost by month and how many the last month has.
-- Parameters: :first, :before, :start, :end: first days of the three months, and the first one after them.
WITH charges AS (
  SELECT ServiceProviderName AS provider, ServiceName AS service, ChargePeriodStart AS begins, EffectiveCost AS cost,
    COALESCE(DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) > 1, FALSE) AS is_long
  FROM focus
  WHERE ChargePeriodStart >= CAST(:first AS TIMESTAMP)
    AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
    AND ChargeCategory IN ('Usage', 'Purchase')
)
SELECT provider, service,
  SUM(CASE WHEN begins >= CAST(:before AS TIMESTAMP) AND begins < CAST(:start AS TIMESTAMP) THEN cost ELSE 0 END) AS all_before,
  SUM(CASE WHEN is_long AND begins < CAST(:before AS TIMESTAMP) THEN cost ELSE 0 END) AS fee_first,
  SUM(CASE WHEN is_long AND begins >= CAST(:before AS TIMESTAMP) AND begins < CAST(:start AS TIMESTAMP) THEN cost ELSE 0 END)
    AS fee_before,
  SUM(CASE WHEN is_long AND begins >= CAST(:start AS TIMESTAMP) THEN 1 ELSE 0 END) AS fees
FROM charges
GROUP BY provider, service
