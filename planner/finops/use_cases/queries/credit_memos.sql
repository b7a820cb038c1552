-- Credits by invoice.
SELECT
  ServiceProviderName,
  InvoiceId,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Credit'
GROUP BY
  ServiceProviderName,
  InvoiceId
ORDER BY ServiceProviderName, InvoiceId
