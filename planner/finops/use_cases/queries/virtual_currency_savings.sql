-- Negotiated against list price, in the pricing currency and in that of the bill.
SELECT
  ServiceName,
  ServiceSubcategory,
  ChargeDescription,
  BillingCurrency,
  PricingCurrency,
  AVG(ListUnitPrice - ContractedUnitPrice) AS saving_per_unit,
  AVG(PricingCurrencyListUnitPrice - PricingCurrencyContractedUnitPrice) AS saving_per_unit_in_pricing_currency,
  COUNT(*) AS charges
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ListUnitPrice > ContractedUnitPrice
GROUP BY
  ServiceName,
  ServiceSubcategory,
  ChargeDescription,
  BillingCurrency,
  PricingCurrency
ORDER BY ServiceName, ServiceSubcategory, ChargeDescription, BillingCurrency, PricingCurrency
