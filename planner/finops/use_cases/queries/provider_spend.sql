-- Billed cost by provider and billing month.
SELECT
  ServiceProviderName,
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  CAST(BillingPeriodStart AS DATE)
ORDER BY ServiceProviderName, billing_month
