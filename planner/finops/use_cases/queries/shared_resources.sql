-- Resources whose cost is split among others.
SELECT
  ResourceId,
  ResourceName,
  AllocatedMethodId,
  ChargeCategory,
  COUNT(*) AS charges
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND AllocatedMethodId IS NOT NULL
GROUP BY
  ResourceId,
  ResourceName,
  AllocatedMethodId,
  ChargeCategory
ORDER BY ResourceId, ResourceName, AllocatedMethodId, ChargeCategory
