-- What each resource is charged for.
SELECT
  ResourceId,
  ResourceName,
  ResourceType,
  SkuId,
  ChargeDescription,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ResourceId IS NOT NULL
GROUP BY
  ResourceId,
  ResourceName,
  ResourceType,
  SkuId,
  ChargeDescription
ORDER BY ResourceId, ResourceName, ResourceType, SkuId, ChargeDescription
