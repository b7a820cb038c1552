-- name: gpu_types
-- title: GPU-hours by machine type
-- meaning: Accelerator hours and cost of every type of machine with accelerators, with the words that name the
--   accelerator: what an hour of each kind costs.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: as gpu_hours, by region, SkuPriceDetails InstanceType and GpuModel, SkuMeter and pricing category; what was
--   bought ahead and use that costs nothing are one row per type and region
-- source: FOCUS SkuPriceDetails properties GpuCount and InstanceType; FinOps for AI overview
-- columns: ChargePeriodStart, ServiceProviderName, SkuId, SkuMeter, ChargeDescription, RegionId, PricingCategory,
--   PricingUnit, PricingQuantity, SkuPriceDetails, BilledCost, EffectiveCost, CommitmentDiscountId, ChargeCategory
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
    PricingCategory AS pricing_category,
    SkuPriceDetails AS details,
    x_hours_of AS hours_of,
    CASE
      WHEN ChargeCategory = 'Purchase' THEN 'bought'
      WHEN EffectiveCost = 0 AND BilledCost = 0 AND CommitmentDiscountId IS NULL THEN 'free'
      ELSE 'paid'
    END AS kind,
    SUM(PricingQuantity * x_unit_hours) AS hours,
    SUM(CASE WHEN (PricingQuantity IS NOT NULL AND x_hours_of IS NOT NULL) OR ChargeCategory = 'Purchase'
      THEN EffectiveCost ELSE 0 END) AS effective_cost
  FROM focus
  WHERE (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu')
    AND (ChargeCategory = 'Usage'
      OR (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
    AND ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY ServiceProviderName, RegionId, SkuId, SkuMeter, ChargeDescription, PricingCategory, SkuPriceDetails, x_hours_of,
    CASE
      WHEN ChargeCategory = 'Purchase' THEN 'bought'
      WHEN EffectiveCost = 0 AND BilledCost = 0 AND CommitmentDiscountId IS NULL THEN 'free'
      ELSE 'paid'
    END
), parsed AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, details, hours_of, kind, hours, effective_cost,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores,
    JSON_EXTRACT_STRING(details, '$."InstanceType"') AS instance_type,
    JSON_EXTRACT_STRING(details, '$."GpuModel"') AS gpu_model
  FROM texts
), known AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, details, instance_type, gpu_model, kind,
    COALESCE(hours * CASE
      WHEN hours_of = 'gpu' THEN 1
      WHEN hours_of = 'machine' THEN gpus
      WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
    END, 0) AS gpu_hours,
    effective_cost
  FROM parsed
  WHERE gpus > 0 OR hours_of = 'gpu'
), ahead AS (
  SELECT
    provider, region_id, MAX(sku_id) AS sku_id, MAX(sku_meter) AS sku_meter, MAX(description) AS description,
    MAX(pricing_category) AS pricing_category, MAX(instance_type) AS instance_type, MAX(gpu_model) AS gpu_model,
    SUM(CASE WHEN kind = 'bought' THEN gpu_hours ELSE 0 END) AS bought_hours,
    SUM(CASE WHEN kind = 'free' THEN gpu_hours ELSE 0 END) AS free_hours,
    SUM(effective_cost) AS effective_cost
  FROM known
  WHERE kind <> 'paid'
  GROUP BY provider, region_id, details
), united AS (
  SELECT provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model, gpu_hours,
    effective_cost
  FROM known
  WHERE kind = 'paid'
  UNION ALL
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model,
    CASE WHEN bought_hours > free_hours THEN bought_hours ELSE free_hours END AS gpu_hours,
    CASE WHEN bought_hours > 0 OR free_hours > 0 THEN effective_cost ELSE 0 END AS effective_cost
  FROM ahead
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
  SUM(gpu_hours) AS gpu_hours,
  SUM(effective_cost) AS effective_cost
FROM united
GROUP BY provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model
