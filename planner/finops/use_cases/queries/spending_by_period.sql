-- Billed cost by billing period and service category.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceCategory,
  ServiceName,
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceCategory,
  ServiceName,
  CAST(BillingPeriodStart AS DATE)
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency, ServiceCategory, ServiceName, billing_month
