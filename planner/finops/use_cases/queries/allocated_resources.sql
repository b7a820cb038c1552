-- Shared cost by the resource it was allocated to.
SELECT
  AllocatedMethodId,
  ResourceId,
  AllocatedResourceId,
  AllocatedResourceName,
  ChargeCategory,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND AllocatedResourceId IS NOT NULL
GROUP BY
  AllocatedMethodId,
  ResourceId,
  AllocatedResourceId,
  AllocatedResourceName,
  ChargeCategory
ORDER BY AllocatedMethodId, ResourceId, AllocatedResourceId, AllocatedResourceName, ChargeCategory
