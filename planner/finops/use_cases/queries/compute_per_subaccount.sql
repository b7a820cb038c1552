-- Compute cost and quantity by sub account, service and resource.
SELECT
  SubAccountId,
  ServiceName,
  ResourceId,
  ResourceName,
  SUM(PricingQuantity) AS pricing_quantity,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ServiceCategory = 'Compute'
GROUP BY
  SubAccountId,
  ServiceName,
  ResourceId,
  ResourceName
ORDER BY SubAccountId, ServiceName, ResourceId, ResourceName
