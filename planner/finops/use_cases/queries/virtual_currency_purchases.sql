-- Tokens and credits bought: purchases priced in a unit that is no currency of the bill.
SELECT
  ServiceProviderName,
  ChargeDescription,
  BillingCurrency,
  PricingUnit,
  SUM(PricingQuantity) AS pricing_quantity,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NULL AND PricingUnit IS NOT NULL
GROUP BY
  ServiceProviderName,
  ChargeDescription,
  BillingCurrency,
  PricingUnit
ORDER BY ServiceProviderName, ChargeDescription, BillingCurrency, PricingUnit
