-- Which sub accounts were charged in which regions.
SELECT
  ServiceProviderName,
  RegionId,
  RegionName,
  SubAccountId,
  COUNT(*) AS charges
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  RegionId,
  RegionName,
  SubAccountId
ORDER BY ServiceProviderName, RegionId, RegionName, SubAccountId
