-- name: gpu_resources
-- title: GPU machines by day
-- meaning: Accelerator hours and cost of every machine with accelerators on every day, with its id, name, account and
--   tags, for matching with usage from Slurm, DCGM and Kubernetes.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: as gpu_hours, by resource and day; charges longer than a day keep their length. Purchases and their use
--   are told apart by kind (planner.finops.usage.ahead)
-- source: FOCUS ResourceId, ResourceName, SubAccountId, SubAccountName, Tags, SkuPriceDetails property GpuCount
-- columns: ChargePeriodStart, ChargePeriodEnd, ServiceProviderName, RegionId, ResourceId, ResourceName, SubAccountId,
--   SubAccountName, Tags, PricingUnit, PricingQuantity, SkuPriceDetails, EffectiveCost, CommitmentDiscountId,
--   CommitmentDiscountStatus, ChargeCategory
-- gate: effective_zero, effective_zero_rows, quantity_priced, gpu_unit_known
-- since: 1.1
-- made_of: SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu'
WITH texts AS (
  SELECT
    x_day,
    ResourceId AS resource_id,
    ResourceName AS resource_name,
    SubAccountId AS sub_account_id,
    SubAccountName AS sub_account_name,
    Tags AS tag_text,
    SkuPriceDetails AS details,
    x_hours_of AS hours_of,
    ServiceProviderName AS provider,
    RegionId AS region_id,
    CASE
      WHEN ChargeCategory = 'Purchase' THEN 'bought'
      WHEN EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL THEN 'free'
      ELSE 'paid'
    END AS kind,
    DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) AS days_count,
    SUM(PricingQuantity * x_unit_hours) AS hours,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu')
    AND (ChargeCategory = 'Usage'
      OR (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
    AND ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY x_day, ResourceId, ResourceName, SubAccountId, SubAccountName, Tags, SkuPriceDetails, x_hours_of,
    ServiceProviderName, RegionId,
    CASE
      WHEN ChargeCategory = 'Purchase' THEN 'bought'
      WHEN EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL THEN 'free'
      ELSE 'paid'
    END,
    DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd)
), counted AS (
  SELECT
    x_day, resource_id, resource_name, sub_account_id, sub_account_name, tag_text, details, provider, region_id, kind, hours_of,
    days_count, hours, effective_cost,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores
  FROM texts
)
SELECT
  x_day,
  resource_id,
  resource_name,
  sub_account_id,
  sub_account_name,
  tag_text,
  provider,
  region_id,
  details,
  kind,
  days_count,
  COALESCE(SUM(hours * CASE
    WHEN hours_of = 'gpu' THEN 1
    WHEN hours_of = 'machine' THEN gpus
    WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
  END), 0) AS gpu_hours,
  SUM(effective_cost) AS effective_cost
FROM counted
WHERE gpus > 0 OR hours_of = 'gpu'
GROUP BY x_day, resource_id, resource_name, sub_account_id, sub_account_name, tag_text, provider, region_id, details, kind,
  days_count
