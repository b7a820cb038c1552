-- name: gpu_types
-- title: GPU-hours by machine type
-- meaning: Accelerator hours and cost of every type of machine with accelerators, with the text that names the
--   accelerator: the cost of an hour by type.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: as gpu_hours, by region, SkuPriceDetails InstanceType and GpuModel, SkuMeter and pricing category; gpu_hours are
--   those that are paid in use; of what was bought ahead and used for nothing the larger sum comes on top, as Other
-- source: FOCUS SkuPriceDetails properties GpuCount and InstanceType; FinOps for AI overview
-- columns: BillingPeriodStart, ChargePeriodStart, ServiceProviderName, SkuId, SkuMeter, ChargeDescription, RegionId,
--   PricingCategory, PricingUnit, PricingQuantity, SkuPriceDetails, EffectiveCost, CommitmentDiscountId,
--   CommitmentDiscountStatus, ChargeCategory, ChargeClass
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
      WHEN ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart THEN -1
      WHEN ChargeCategory = 'Purchase' THEN 2
      WHEN EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL THEN 1
      ELSE 0
    END AS kind,
    SUM(CASE WHEN EffectiveCost IS NOT NULL THEN PricingQuantity * x_unit_hours END) AS hours,
    SUM(CASE WHEN ChargeCategory = 'Purchase' OR (PricingQuantity <> 0 AND x_hours_of IS NOT NULL)
      THEN EffectiveCost ELSE 0 END) AS cost
  FROM focus
  WHERE (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu')
    AND ChargeCategory IN ('Usage', 'Purchase')
    AND (ChargeCategory = 'Usage' OR (CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
    AND ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY ServiceProviderName, RegionId, SkuId, SkuMeter, ChargeDescription, PricingCategory, SkuPriceDetails, x_hours_of,
    CASE
      WHEN ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart THEN -1
      WHEN ChargeCategory = 'Purchase' THEN 2
      WHEN EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL THEN 1
      ELSE 0
    END
), parsed AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, hours_of, kind, hours, cost,
    CASE WHEN kind <= 0 THEN pricing_category ELSE 'Other' END AS pricing_category,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores,
    JSON_EXTRACT_STRING(details, '$."InstanceType"') AS instance_type,
    JSON_EXTRACT_STRING(details, '$."GpuModel"') AS gpu_model
  FROM texts
), rated AS (
  SELECT
    provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model, kind, cost,
    hours * CASE
      WHEN hours_of = 'gpu' THEN 1
      WHEN hours_of = 'machine' THEN gpus
      WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
    END AS gpu_hours
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
  COALESCE(SUM(CASE WHEN kind = 0 THEN gpu_hours END), 0) AS gpu_hours,
  COALESCE(SUM(CASE WHEN kind = 2 THEN gpu_hours END), 0) AS bought_gpu_hours,
  COALESCE(SUM(CASE WHEN kind = 1 THEN gpu_hours END), 0) AS free_gpu_hours,
  SUM(CASE WHEN kind = 2 THEN cost ELSE 0 END) AS bought_cost,
  SUM(CASE WHEN kind IN (0, 1) THEN cost ELSE 0 END) AS effective_cost
FROM rated
GROUP BY provider, region_id, sku_id, sku_meter, description, pricing_category, instance_type, gpu_model
