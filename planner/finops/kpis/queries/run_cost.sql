-- name: run_cost
-- title: Cost of tagged runs
-- meaning: What each run (training job) cost, identified by a tag on its machines. Node-hours are those of machines
--   only: addresses, gateways and discs have hours too. Use of capacity blocks and other machines bought ahead costs
--   nothing here; a review adds its share of the purchase (bought_ahead).
-- unit: money in the billing currency; hours
-- formula: EffectiveCost and hourly PricingQuantity per value of the run tag; nodes = distinct machines, or, in an
--   hourly bill of three hours or more, the most machine-hours of one hour (a replaced machine is one node); hours =
--   node-hours / nodes; the four regions with the highest cost; cost by pricing category
-- source: FinOps for AI overview (unit costs by tag)
-- columns: ChargePeriodStart, ChargePeriodEnd, Tags, ServiceProviderName, RegionId, PricingCategory, PricingUnit,
--   PricingQuantity, ResourceId, EffectiveCost, BilledCost, SkuPriceDetails, ChargeCategory, ServiceCategory
-- gate: effective_zero, effective_zero_rows, quantity_priced
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
    CASE WHEN x_hours_of = 'machine'
      AND COALESCE(ServiceCategory, 'Compute') IN ('Compute', 'AI and Machine Learning') THEN 1 ELSE 0 END AS is_hourly,
    CASE WHEN x_hours_of = 'gpu' THEN 1 ELSE 0 END AS is_gpu_hourly,
    CASE WHEN ServiceCategory = 'Storage' THEN 1 ELSE 0 END AS is_storage,
    SUM(PricingQuantity * x_unit_hours) AS quantity,
    SUM(EffectiveCost) AS effective_cost,
    SUM(BilledCost) AS billed_cost,
    MIN(ChargePeriodStart) AS first_start,
    MAX(ChargePeriodEnd) AS last_end
  FROM focus
  WHERE Tags LIKE :like_tag
    AND ChargeCategory = 'Usage'
  GROUP BY
    x_month, Tags, ServiceProviderName, RegionId, PricingCategory, SkuPriceDetails, ResourceId,
    CASE WHEN x_hours_of = 'machine'
      AND COALESCE(ServiceCategory, 'Compute') IN ('Compute', 'AI and Machine Learning') THEN 1 ELSE 0 END,
    CASE WHEN x_hours_of = 'gpu' THEN 1 ELSE 0 END,
    CASE WHEN ServiceCategory = 'Storage' THEN 1 ELSE 0 END
), parsed AS (
  SELECT
    x_month, provider, region_id, pricing_category, resource_id, is_hourly, is_gpu_hourly, is_storage, quantity, effective_cost,
    billed_cost, first_start, last_end,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :run_tag)), '') AS run_id,
    COALESCE(TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE), 0) AS gpus
  FROM texts
), runs AS (
  SELECT tag_text, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :run_tag)), '') AS hour_run_id
  FROM (SELECT DISTINCT tag_text FROM texts) AS distinct_texts
), hourly AS (
  SELECT hour_run_id, ChargePeriodStart, SUM(PricingQuantity * x_unit_hours) AS machines
  FROM focus
  JOIN runs ON focus.Tags = runs.tag_text
  WHERE Tags LIKE :like_tag
    AND ChargeCategory = 'Usage'
    AND x_hours_of = 'machine'
    AND COALESCE(ServiceCategory, 'Compute') IN ('Compute', 'AI and Machine Learning')
    AND DATE_DIFF('hour', ChargePeriodStart, ChargePeriodEnd) = 1
  GROUP BY hour_run_id, ChargePeriodStart
), spent AS (
  SELECT run_id AS spent_run_id, region_id AS spent_region_id, SUM(effective_cost) AS spent_cost
  FROM parsed
  WHERE run_id IS NOT NULL AND region_id IS NOT NULL
  GROUP BY run_id, region_id
), ranked AS (
  SELECT spent_run_id, spent_region_id,
    ROW_NUMBER() OVER (PARTITION BY spent_run_id ORDER BY spent_cost DESC, spent_region_id) AS place
  FROM spent
), places AS (
  SELECT
    spent_run_id,
    MAX(CASE WHEN place = 1 THEN spent_region_id END) AS region_1,
    MAX(CASE WHEN place = 2 THEN spent_region_id END) AS region_2,
    MAX(CASE WHEN place = 3 THEN spent_region_id END) AS region_3,
    MAX(CASE WHEN place = 4 THEN spent_region_id END) AS region_4,
    MAX(place) AS regions_count
  FROM ranked
  GROUP BY spent_run_id
), peaks AS (
  SELECT hour_run_id, MAX(machines) AS peak, COUNT(*) AS hours_count
  FROM hourly
  GROUP BY hour_run_id
)
SELECT
  run_id,
  MAX(provider) AS provider,
  MAX(region_1) AS region_id,
  MAX(region_2) AS region_2,
  MAX(region_3) AS region_3,
  MAX(region_4) AS region_4,
  MAX(regions_count) AS regions_count,
  MAX(pricing_category) AS pricing_category,
  SUM(CASE WHEN is_hourly + is_gpu_hourly > 0 AND pricing_category = 'Standard' THEN effective_cost ELSE 0 END) AS standard_cost,
  SUM(CASE WHEN is_hourly + is_gpu_hourly > 0 AND pricing_category = 'Dynamic' THEN effective_cost ELSE 0 END) AS dynamic_cost,
  SUM(CASE WHEN is_hourly + is_gpu_hourly > 0 AND pricing_category = 'Committed' THEN effective_cost ELSE 0 END) AS committed_cost,
  SUM(CASE WHEN is_hourly + is_gpu_hourly > 0 AND pricing_category = 'Other' THEN effective_cost ELSE 0 END) AS other_cost,
  CASE WHEN MAX(hours_count) >= 3 AND MAX(peak) >= 0.5 AND COUNT(DISTINCT CASE WHEN is_hourly = 1 THEN resource_id END) > MAX(peak)
    THEN CAST(ROUND(MAX(peak)) AS BIGINT)
    ELSE CAST(COUNT(DISTINCT CASE WHEN is_hourly = 1 THEN resource_id END) AS BIGINT) END AS nodes,
  SUM(CASE WHEN is_hourly = 1 THEN quantity ELSE 0 END) AS node_hours,
  SUM(CASE WHEN is_hourly = 1 THEN quantity * gpus WHEN is_gpu_hourly = 1 THEN quantity ELSE 0 END) AS gpu_hours,
  SUM(CASE WHEN is_hourly = 1 THEN effective_cost ELSE 0 END) AS machine_cost,
  SUM(CASE WHEN is_storage = 1 THEN effective_cost ELSE 0 END) AS storage_cost,
  SUM(effective_cost) AS effective_cost,
  SUM(billed_cost) AS billed_cost,
  MIN(first_start) AS first_start,
  MAX(last_end) AS last_end,
  MIN(x_month) AS first_month,
  MAX(x_month) AS last_month
FROM parsed
LEFT JOIN peaks ON parsed.run_id = peaks.hour_run_id
LEFT JOIN places ON parsed.run_id = places.spent_run_id
WHERE run_id IS NOT NULL
GROUP BY run_id
