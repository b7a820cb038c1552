-- name: anomaly_cause
-- title: Likely cause of an anomaly
-- meaning: SKU and region whose cost changed most on an anomalous day, and the team (first mandatory tag) with the
--   largest part of it.
-- unit: money per day in the billing currency
-- formula: cost of the day - mean cost of the days of the window before it, by SKU and region
-- source: FinOps Framework, Anomaly Management
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ChargeCategory, SkuId, RegionId, SubAccountName,
--   EffectiveCost, SkuMeter, ChargeDescription, SkuPriceDetails, Tags
-- gate: effective_zero
-- since: 1.0
WITH parts AS (
  SELECT
    SkuId AS sku_id,
    RegionId AS region_id,
    SubAccountName AS sub_account,
    CASE WHEN ChargePeriodStart >= :day THEN NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '') END AS team,
    MAX(SkuMeter) AS meter,
    MAX(CASE WHEN SkuMeter IS NULL THEN ChargeDescription END) AS description,
    MAX(SkuPriceDetails) AS details,
    SUM(CASE WHEN ChargePeriodStart >= :day THEN EffectiveCost ELSE 0 END) AS day_cost,
    SUM(CASE WHEN ChargePeriodStart < :day THEN EffectiveCost ELSE 0 END) AS window_cost
  FROM focus
  WHERE ChargePeriodStart >= :window_start AND ChargePeriodStart < :day_end
    AND ServiceProviderName = :provider
    AND ServiceName = :service
    AND ChargeCategory = 'Usage'
  GROUP BY
    SkuId,
    RegionId,
    SubAccountName,
    CASE WHEN ChargePeriodStart >= :day THEN NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '') END
), ranked AS (
  SELECT
    sku_id, region_id, sub_account, team, meter, description, details, day_cost, window_cost,
    ROW_NUMBER() OVER (
      PARTITION BY sku_id, region_id, sub_account ORDER BY COALESCE(day_cost, 0) DESC, COALESCE(team, '')
    ) AS place
  FROM parts
)
SELECT
  sku_id,
  region_id,
  sub_account,
  COALESCE(NULLIF(MAX(meter), ''), NULLIF(MAX(description), '')) AS product,
  NULLIF(JSON_EXTRACT_STRING(MAX(details), '$."InstanceType"'), '') AS instance_type,
  MAX(CASE WHEN place = 1 THEN team END) AS team,
  SUM(day_cost) AS day_cost,
  SUM(window_cost) AS window_cost
FROM ranked
GROUP BY sku_id, region_id, sub_account
