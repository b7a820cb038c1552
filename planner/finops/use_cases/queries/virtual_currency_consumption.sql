-- Tokens and credits used up; what is priced in the currency of the bill is left out.
SELECT
  ServiceProviderName,
  PricingCurrency,
  SUM(PricingCurrencyEffectiveCost) AS consumed
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND PricingCurrency IS NOT NULL AND PricingCurrency <> BillingCurrency AND ChargeCategory = 'Usage'
GROUP BY
  ServiceProviderName,
  PricingCurrency
ORDER BY ServiceProviderName, PricingCurrency
