-- Discount against list price by service, corrections left out.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName,
  SUM(ListCost) AS list_cost,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost,
  1 - SUM(EffectiveCost) / NULLIF(SUM(ListCost), 0) AS discount_ratio
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeClass IS NULL
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency, ServiceName
