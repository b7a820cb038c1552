-- Billed cost by service category.
SELECT
  ServiceProviderName,
  BillingCurrency,
  ServiceCategory,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingCurrency,
  ServiceCategory
ORDER BY ServiceProviderName, BillingCurrency, ServiceCategory
