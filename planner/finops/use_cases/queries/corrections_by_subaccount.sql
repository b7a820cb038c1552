-- Corrections of earlier invoices by sub account.
SELECT
  ServiceProviderName,
  BillingAccountId,
  ServiceCategory,
  SubAccountId,
  SubAccountName,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeClass = 'Correction'
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  ServiceCategory,
  SubAccountId,
  SubAccountName
ORDER BY ServiceProviderName, BillingAccountId, ServiceCategory, SubAccountId, SubAccountName
