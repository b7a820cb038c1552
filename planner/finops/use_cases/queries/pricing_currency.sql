-- Effective cost in the currency of the price list.
SELECT
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName) AS host_provider,
  ServiceName,
  PricingCurrency,
  SUM(PricingCurrencyEffectiveCost) AS effective_cost_in_pricing_currency
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND PricingCurrency IS NOT NULL
GROUP BY
  ServiceProviderName,
  COALESCE(HostProviderName, PublisherName),
  ServiceName,
  PricingCurrency
ORDER BY ServiceProviderName, host_provider, ServiceName, PricingCurrency
