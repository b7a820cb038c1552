-- Billed cost by invoice.
SELECT
  InvoiceIssuerName,
  InvoiceId,
  SUM(BilledCost) AS billed_cost,
  COUNT(*) AS charges
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  InvoiceIssuerName,
  InvoiceId
ORDER BY InvoiceIssuerName, InvoiceId
