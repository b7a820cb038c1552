-- Billed cost by service category and subcategory.
SELECT
  ServiceProviderName,
  BillingCurrency,
  ServiceCategory,
  ServiceSubcategory,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingCurrency,
  ServiceCategory,
  ServiceSubcategory
ORDER BY ServiceProviderName, BillingCurrency, ServiceCategory, ServiceSubcategory
