-- Effective cost of what one company sold and another invoiced or hosts.
SELECT
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  InvoiceIssuerName,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND (InvoiceIssuerName <> ServiceProviderName OR COALESCE(HostProviderName, PublisherName) <> ServiceProviderName)
GROUP BY
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName),
  InvoiceIssuerName
ORDER BY ServiceProviderName, host_provider, InvoiceIssuerName
