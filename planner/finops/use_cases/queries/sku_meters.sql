-- Quantity and cost by meter of a SKU.
SELECT
  ServiceProviderName,
  SkuId,
  SkuMeter,
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
  SkuMeter,
  SkuPriceId,
  PricingUnit,
  ListUnitPrice
ORDER BY ServiceProviderName, SkuId, SkuMeter, SkuPriceId, PricingUnit, ListUnitPrice
