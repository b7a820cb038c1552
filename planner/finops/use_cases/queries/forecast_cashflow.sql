-- Straight line through the months, one month on. `planner forecast` is back-tested and usually
-- better.
WITH monthly AS (
  SELECT
    ServiceProviderName,
    ServiceCategory,
    ServiceName,
    CAST(BillingPeriodStart AS DATE) AS month,
    SUM(BilledCost) AS cost
  FROM focus
  WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeCategory <> 'Tax'
  GROUP BY
    ServiceProviderName,
    ServiceCategory,
    ServiceName,
    CAST(BillingPeriodStart AS DATE)
), numbered AS (
  SELECT
    ServiceProviderName,
    ServiceCategory,
    ServiceName,
    cost,
    ROW_NUMBER() OVER (PARTITION BY ServiceProviderName, ServiceCategory, ServiceName ORDER BY month NULLS FIRST) AS n
  FROM monthly
), sums AS (
  SELECT
    ServiceProviderName,
    ServiceCategory,
    ServiceName,
    COUNT(*) AS months,
    AVG(n) AS mean_n,
    AVG(cost) AS mean_cost,
    AVG(n * cost) - AVG(n) * AVG(cost) AS covariance,
    AVG(n * n) - AVG(n) * AVG(n) AS variance
  FROM numbered
  GROUP BY
    ServiceProviderName,
    ServiceCategory,
    ServiceName
)
SELECT
  ServiceProviderName,
  ServiceCategory,
  ServiceName,
  months,
  mean_cost AS mean_month,
  CASE WHEN variance > 0 THEN covariance / variance ELSE 0 END AS change_per_month,
  mean_cost + CASE WHEN variance > 0 THEN covariance / variance ELSE 0 END * (months + 1 - mean_n) AS next_month
FROM sums
ORDER BY ServiceProviderName, ServiceCategory, ServiceName
