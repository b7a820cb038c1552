-- Billed cost by account, period and service.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName,
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName,
  CAST(BillingPeriodStart AS DATE)
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency, ServiceName, billing_month
