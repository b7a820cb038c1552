-- name: daily_cost
-- title: Cost per day
-- meaning: Cost of each service on each day of the bill, the series behind verdict, forecast and anomalies. Tax is
--   separate because it follows the invoice.
-- unit: money per day in the billing currency
-- formula: sum of EffectiveCost (accrual) and of BilledCost (cash) by day, provider, service and kind of charge
-- source: FOCUS columns EffectiveCost and BilledCost
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ChargeCategory, EffectiveCost, BilledCost
-- gate: effective_zero, effective_zero_rows, negative_effective
-- since: 1.0
SELECT
  x_day,
  ServiceProviderName AS provider,
  ServiceName AS service,
  ChargeCategory AS charge_category,
  CAST(SUM(x_rows) AS BIGINT) AS row_count,
  SUM(EffectiveCost) AS effective_cost,
  SUM(BilledCost) AS billed_cost
FROM focus
GROUP BY x_day, ServiceProviderName, ServiceName, ChargeCategory
