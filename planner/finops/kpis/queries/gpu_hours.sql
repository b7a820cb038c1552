-- name: gpu_hours
-- title: GPU-hours and their cost
-- meaning: Accelerator hours paid for, by region and purchase option. The number of accelerators comes from
--   SkuPriceDetails (FOCUS 1.1), otherwise from the machine that the charge names, or the unit counts them (GPU-Hours);
--   other charges are not included. Capacity blocks are, where the purchase bears the cost.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: PricingQuantity in hours (units of planner/finops/data/hour_units.csv) x GpuCount; the hours alone where
--   the unit counts GPUs; hours x GpuCount / CoreCount where it counts cores. Cost per GPU-hour is that of rows whose
--   hours are known and not 0 (counted_cost): some refunds state none. Hours without a cost and of corrections of closed
--   billing periods do not count. Of hours bought and hours of their use, which are the same hours, the larger sum counts, priced as Other, in the
--   month of the purchase; a review moves the share of other months there (bought_ahead)
-- source: FOCUS SkuPriceDetails property GpuCount; FinOps for AI overview (finops.org/wg/finops-for-ai-overview)
-- columns: BillingPeriodStart, ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, PricingCategory,
--   PricingUnit, PricingQuantity, SkuPriceDetails, EffectiveCost, CapacityReservationStatus, CommitmentDiscountId,
--   CommitmentDiscountStatus, ChargeCategory, ChargeClass
-- gate: effective_zero, effective_zero_rows, quantity_priced, gpu_unit_known
-- since: 1.1
-- made_of: SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu'
WITH texts AS (
  SELECT
    x_month,
    ServiceProviderName AS provider,
    ServiceName AS service,
    RegionId AS region_id,
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
    MAX(CASE WHEN x_hours_of IS NULL THEN COALESCE(PricingUnit, '(none)') END) AS unknown_unit,
    SUM(CASE WHEN EffectiveCost IS NOT NULL
        AND (CapacityReservationStatus = 'Unused' OR CommitmentDiscountStatus = 'Unused')
      THEN PricingQuantity * x_unit_hours ELSE 0 END) AS unused_hours,
    SUM(EffectiveCost) AS effective_cost,
    SUM(CASE WHEN PricingQuantity <> 0 AND x_hours_of IS NOT NULL THEN EffectiveCost ELSE 0 END)
      AS counted_cost
  FROM focus
  WHERE (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu')
    AND ChargeCategory IN ('Usage', 'Purchase')
    AND (ChargeCategory = 'Usage' OR (CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
  GROUP BY x_month, ServiceProviderName, ServiceName, RegionId, PricingCategory, SkuPriceDetails, x_hours_of,
    CASE
      WHEN ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart THEN -1
      WHEN ChargeCategory = 'Purchase' THEN 2
      WHEN EffectiveCost = 0 AND CommitmentDiscountStatus IS NULL THEN 1
      ELSE 0
    END
), counted AS (
  SELECT
    x_month, provider, service, region_id, pricing_category, hours_of, kind, hours, unused_hours, effective_cost,
    counted_cost, unknown_unit,
    CASE WHEN kind > 0 THEN JSON_EXTRACT_STRING(details, '$."InstanceType"') END AS machine,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores
  FROM texts
), rated AS (
  SELECT
    x_month, provider, service, region_id, machine, kind, hours, unused_hours, effective_cost, counted_cost,
    CASE WHEN kind <= 0 THEN pricing_category ELSE 'Other' END AS pricing_category,
    CASE WHEN hours_of = 'core' AND COALESCE(cores, 0) <= 0 THEN 'cores of an unknown number'
      ELSE unknown_unit END AS unknown_unit,
    CASE
      WHEN hours_of = 'gpu' THEN 1
      WHEN hours_of = 'machine' THEN gpus
      WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
    END AS gpus_per_unit
  FROM counted
  WHERE gpus > 0 OR hours_of = 'gpu'
), summed AS (
  SELECT
    x_month, provider, service, region_id, pricing_category,
    COALESCE(SUM(CASE WHEN kind = 0 THEN hours * gpus_per_unit END), 0) AS paid_hours,
    COALESCE(SUM(CASE WHEN kind = 1 THEN hours * gpus_per_unit END), 0) AS free_hours,
    COALESCE(SUM(CASE WHEN kind = 2 THEN hours * gpus_per_unit END), 0) AS bought_hours,
    COALESCE(SUM(CASE WHEN kind >= 0 THEN unused_hours * gpus_per_unit END), 0) AS unused_gpu_hours,
    SUM(effective_cost) AS effective_cost,
    SUM(CASE WHEN kind = 2 THEN effective_cost ELSE 0 END) AS bought_cost,
    SUM(CASE WHEN kind IN (-1, 2) OR gpus_per_unit IS NULL THEN 0 ELSE counted_cost END) AS counted_cost,
    SUM(CASE WHEN kind IN (0, 1) AND gpus_per_unit IS NULL THEN effective_cost ELSE 0 END) AS unknown_unit_cost,
    MAX(unknown_unit) AS unknown_unit
  FROM rated
  GROUP BY x_month, provider, service, region_id, machine, pricing_category
)
SELECT
  x_month,
  provider,
  service,
  region_id,
  pricing_category,
  SUM(paid_hours + CASE WHEN bought_hours > free_hours THEN bought_hours ELSE free_hours END) AS gpu_hours,
  SUM(unused_gpu_hours) AS unused_gpu_hours,
  SUM(effective_cost) AS effective_cost,
  SUM(counted_cost + CASE WHEN bought_hours > 0 OR free_hours > 0 THEN bought_cost ELSE 0 END) AS counted_cost,
  SUM(unknown_unit_cost + CASE WHEN bought_hours > 0 OR free_hours > 0 THEN 0 ELSE bought_cost END) AS unknown_unit_cost,
  MAX(unknown_unit) AS unknown_unit
FROM summed
GROUP BY x_month, provider, service, region_id, pricing_category
