-- Who sold, who hosted and who invoiced each service.
SELECT
  InvoiceIssuerName,
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  ServiceName,
  BillingCurrency,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  InvoiceIssuerName,
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName),
  ServiceName,
  BillingCurrency
ORDER BY InvoiceIssuerName, ServiceProviderName, host_provider, ServiceName, BillingCurrency
