-- name: run_cost
-- title: Cost of tagged runs
-- meaning: What each run (training job) cost, told by a tag on its machines; the bill's side of plan against actual and
--   of the price per run. Node-hours are the hours of rows priced by the hour.
-- unit: money in the billing currency; hours
-- formula: sums of EffectiveCost and of hourly PricingQuantity per value of the run tag; nodes = distinct resources with
--   hourly rows; hours = node-hours / nodes
-- source: FinOps for AI overview (unit costs by tag); FINOPS.md section 2
-- columns: ChargePeriodStart, ChargePeriodEnd, Tags, ServiceProviderName, RegionId, PricingCategory, PricingUnit,
--   PricingQuantity, ResourceId, EffectiveCost, BilledCost, SkuPriceDetails, ChargeCategory
-- gate: effective_zero, quantity_known
-- since: 1.0
WITH texts AS (
  SELECT
    x_month,
    Tags AS tag_text,
    ServiceProviderName AS provider,
    RegionId AS region_id,
    PricingCategory AS pricing_category,
    SkuPriceDetails AS details,
    ResourceId AS resource_id,
    CASE WHEN LOWER(PricingUnit) IN ('hour', 'hours', 'hrs', 'hrs.', '1 hour', 'instance-hours', 'h')
      THEN 1 ELSE 0 END AS is_hourly,
    SUM(PricingQuantity) AS quantity,
    SUM(EffectiveCost) AS effective_cost,
    SUM(BilledCost) AS billed_cost,
    MIN(ChargePeriodStart) AS first_start,
    MAX(ChargePeriodEnd) AS last_end
  FROM focus
  WHERE Tags LIKE :like_tag
    AND ChargeCategory = 'Usage'
  GROUP BY
    x_month, Tags, ServiceProviderName, RegionId, PricingCategory, SkuPriceDetails, ResourceId,
    CASE WHEN LOWER(PricingUnit) IN ('hour', 'hours', 'hrs', 'hrs.', '1 hour', 'instance-hours', 'h') THEN 1 ELSE 0 END
), parsed AS (
  SELECT
    x_month, provider, region_id, pricing_category, resource_id, is_hourly, quantity, effective_cost, billed_cost,
    first_start, last_end,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :run_tag)), '') AS run_id,
    COALESCE(CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE), 0) AS gpus
  FROM texts
)
SELECT
  run_id,
  MAX(provider) AS provider,
  MAX(region_id) AS region_id,
  MAX(pricing_category) AS pricing_category,
  COUNT(DISTINCT CASE WHEN is_hourly = 1 THEN resource_id END) AS nodes,
  SUM(CASE WHEN is_hourly = 1 THEN quantity ELSE 0 END) AS node_hours,
  SUM(CASE WHEN is_hourly = 1 THEN quantity * gpus ELSE 0 END) AS gpu_hours,
  SUM(CASE WHEN is_hourly = 1 THEN effective_cost ELSE 0 END) AS machine_cost,
  SUM(effective_cost) AS effective_cost,
  SUM(billed_cost) AS billed_cost,
  MIN(first_start) AS first_start,
  MAX(last_end) AS last_end,
  MIN(x_month) AS first_month,
  MAX(x_month) AS last_month
FROM parsed
WHERE run_id IS NOT NULL
GROUP BY run_id
