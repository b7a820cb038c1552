-- Effective cost by service and month, with the change.
WITH monthly AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    x_month AS month,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY
    ServiceProviderName,
    ServiceName,
    x_month
)
SELECT
  ServiceProviderName,
  ServiceName,
  month,
  effective_cost,
  LAG(effective_cost) OVER (PARTITION BY ServiceProviderName, ServiceName ORDER BY month NULLS FIRST) AS month_before,
  effective_cost - LAG(effective_cost) OVER (PARTITION BY ServiceProviderName, ServiceName ORDER BY month NULLS FIRST) AS change
FROM monthly
ORDER BY ServiceProviderName, ServiceName, month
