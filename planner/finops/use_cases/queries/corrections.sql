-- Corrections of earlier invoices by service.
SELECT
  ServiceProviderName,
  BillingAccountId,
  ChargeCategory,
  ServiceCategory,
  ServiceName,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeClass = 'Correction'
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  ChargeCategory,
  ServiceCategory,
  ServiceName
ORDER BY ServiceProviderName, BillingAccountId, ChargeCategory, ServiceCategory, ServiceName
