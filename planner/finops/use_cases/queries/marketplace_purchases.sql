-- Purchases that another company invoices.
SELECT
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  InvoiceIssuerName,
  ServiceName,
  ResourceId,
  ChargeCategory,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND InvoiceIssuerName <> ServiceProviderName
GROUP BY
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName),
  InvoiceIssuerName,
  ServiceName,
  ResourceId,
  ChargeCategory
ORDER BY ServiceProviderName, host_provider, InvoiceIssuerName, ServiceName, ResourceId, ChargeCategory
