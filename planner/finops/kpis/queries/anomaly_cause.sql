-- name: anomaly_cause
-- title: Likely cause of an anomaly
-- meaning: Which SKU in which region moved most on an unusual day, against the same service's mean of the days before.
-- unit: money per day in the billing currency
-- formula: cost of the day - mean cost of the days of the window before it, by SKU and region
-- source: FINOPS.md section 2 (anomalies: likely SKU and region)
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ChargeCategory, SkuId, RegionId, SubAccountName,
--   EffectiveCost, SkuMeter, ChargeDescription, SkuPriceDetails
-- gate: effective_zero
-- since: 1.0
SELECT
  SkuId AS sku_id,
  RegionId AS region_id,
  SubAccountName AS sub_account,
  COALESCE(NULLIF(MAX(SkuMeter), ''), NULLIF(MAX(CASE WHEN SkuMeter IS NULL THEN ChargeDescription END), '')) AS product,
  NULLIF(JSON_EXTRACT_STRING(MAX(SkuPriceDetails), '$."InstanceType"'), '') AS instance_type,
  SUM(CASE WHEN ChargePeriodStart >= :day THEN EffectiveCost ELSE 0 END) AS day_cost,
  SUM(CASE WHEN ChargePeriodStart < :day THEN EffectiveCost ELSE 0 END) AS window_cost
FROM focus
WHERE ChargePeriodStart >= :window_start AND ChargePeriodStart < :day_end
  AND ServiceProviderName = :provider
  AND ServiceName = :service
  AND ChargeCategory = 'Usage'
GROUP BY SkuId, RegionId, SubAccountName
