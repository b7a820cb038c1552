-- Quantity and effective cost by service and region.
SELECT
  ServiceProviderName,
  ServiceCategory,
  ServiceName,
  RegionId,
  RegionName,
  PricingUnit,
  SUM(PricingQuantity) AS pricing_quantity,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  ServiceCategory,
  ServiceName,
  RegionId,
  RegionName,
  PricingUnit
ORDER BY ServiceProviderName, ServiceCategory, ServiceName, RegionId, RegionName, PricingUnit
