-- What tokens and credits were spent on.
SELECT
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  ServiceName,
  ChargeDescription,
  PricingCurrency,
  SUM(PricingCurrencyEffectiveCost) AS consumed
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND PricingCurrency IS NOT NULL AND PricingCurrency <> BillingCurrency
GROUP BY
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName),
  ServiceName,
  ChargeDescription,
  PricingCurrency
ORDER BY ServiceProviderName, host_provider, ServiceName, ChargeDescription, PricingCurrency
