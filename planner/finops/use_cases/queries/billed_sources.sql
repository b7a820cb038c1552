-- Who billed for whom, by invoice.
SELECT
  InvoiceIssuerName,
  InvoiceId,
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  InvoiceIssuerName,
  InvoiceId,
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName)
ORDER BY InvoiceIssuerName, InvoiceId, ServiceProviderName, host_provider
