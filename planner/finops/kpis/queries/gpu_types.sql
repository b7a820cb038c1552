-- name: gpu_types
-- title: GPU-hours by machine type
-- meaning: Accelerator hours and cost of every type of machine with accelerators, with the words that name the
--   accelerator: what an hour of each kind costs.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: as gpu_hours, by region, SkuPriceDetails InstanceType and GpuModel, SkuMeter and pricing category; gpu_hours are
--   those that are paid in use; of what was bought ahead and used for nothing the larger sum comes on top, as Other
-- source: FOCUS SkuPriceDetails properties GpuCount and InstanceType; FinOps for AI overview
-- columns: ChargePeriodStart, ServiceProviderName, SkuId, SkuMeter, ChargeDescription, RegionId, PricingCategory,
--   PricingUnit, PricingQuantity, SkuPriceDetails, EffectiveCost, CommitmentDiscountId, CommitmentDiscountStatus,
--   ChargeCategory
-- gate: effective_zero, effective_zero_rows, quantity_priced, gpu_unit_known
-- since: 1.1
-- made_of: SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu'
WITH texts AS (
  SELECT
    ServiceProviderName AS provider,
    RegionId AS region_id,
    SkuId AS sku_id,
    SkuMeter AS sku_meter,
    ChargeDescription AS description,
    CASE WHEN ChargeCategory = 'Purchase' OR (EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL)
      THEN 'Other' ELSE PricingCategory END AS pricing_category,
    SkuPriceDetails AS details,
    x_hours_of AS hours_of,
    SUM(CASE WHEN ChargeCategory = 'Purchase' OR (EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL)
      THEN 0 ELSE PricingQuantity * x_unit_hours END) AS hours,
    SUM(CASE WHEN ChargeCategory = 'Purchase' THEN PricingQuantity * x_unit_hours ELSE 0 END) AS bought_hours,
    SUM(CASE WHEN ChargeCategory = 'Usage' AND EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL
      THEN PricingQuantity * x_unit_hours ELSE 0 END) AS free_hours,
    SUM(CASE WHEN ChargeCategory = 'Purchase' THEN EffectiveCost ELSE 0 END) AS bought_cost,
    SUM(CASE WHEN ChargeCategory = 'Usage' AND PricingQuantity IS NOT NULL AND x_hours_of IS NOT NULL
      THEN EffectiveCost ELSE 0 END) AS effective_cost
  FROM focus
  WHERE (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu')
    AND ChargeCategory IN ('Usage', 'Purchase')
    AND (ChargeCategory = 'Usage' OR (CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
    AND ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY ServiceProviderName, RegionId, SkuId, SkuMeter, ChargeDescription,
    CASE WHEN ChargeCategory = 'Purchase' OR (EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL)
      THEN 'Other' ELSE PricingCategory END,
    SkuPriceDetails, x_hours_of
), parsed AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, hours_of, hours, bought_hours, free_hours,
    bought_cost, effective_cost,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores,
    JSON_EXTRACT_STRING(details, '$."InstanceType"') AS instance_type,
    JSON_EXTRACT_STRING(details, '$."GpuModel"') AS gpu_model
  FROM texts
), rated AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model, hours, bought_hours,
    free_hours, bought_cost, effective_cost,
    CASE
      WHEN hours_of = 'gpu' THEN 1
      WHEN hours_of = 'machine' THEN gpus
      WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
    END AS gpus_per_unit
  FROM parsed
  WHERE gpus > 0 OR hours_of = 'gpu'
)
SELECT
  provider,
  region_id,
  sku_id,
  sku_meter,
  description,
  pricing_category,
  instance_type,
  gpu_model,
  COALESCE(SUM(hours * gpus_per_unit), 0) AS gpu_hours,
  COALESCE(SUM(bought_hours * gpus_per_unit), 0) AS bought_gpu_hours,
  COALESCE(SUM(free_hours * gpus_per_unit), 0) AS free_gpu_hours,
  SUM(bought_cost) AS bought_cost,
  SUM(effective_cost) AS effective_cost
FROM rated
GROUP BY provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model
