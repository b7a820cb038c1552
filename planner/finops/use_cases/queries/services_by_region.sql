-- Effective cost by service and region.
SELECT
  ServiceProviderName,
  RegionId,
  ServiceName,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  RegionId,
  ServiceName
ORDER BY ServiceProviderName, RegionId, ServiceName
