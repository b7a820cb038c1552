-- Effective cost by provider, sub account and service.
SELECT
  ServiceProviderName,
  SubAccountId,
  ServiceName,
  x_month AS month,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  SubAccountId,
  ServiceName,
  x_month
ORDER BY ServiceProviderName, SubAccountId, ServiceName, month
