-- Quantity, list price and cost by SKU price.
SELECT
  ServiceProviderName,
  SkuId,
  SkuPriceId,
  PricingUnit,
  ListUnitPrice,
  SUM(PricingQuantity) AS pricing_quantity,
  SUM(ListCost) AS list_cost,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND SkuId IS NOT NULL
GROUP BY
  ServiceProviderName,
  SkuId,
  SkuPriceId,
  PricingUnit,
  ListUnitPrice
ORDER BY ServiceProviderName, SkuId, SkuPriceId, PricingUnit, ListUnitPrice
