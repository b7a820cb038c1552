-- Effective cost by sub account, region and zone.
SELECT
  ServiceProviderName,
  SubAccountId,
  RegionName,
  AvailabilityZone,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  SubAccountId,
  RegionName,
  AvailabilityZone
ORDER BY ServiceProviderName, SubAccountId, RegionName, AvailabilityZone
