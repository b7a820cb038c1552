-- name: gpu_hours
-- title: GPU-hours and their cost
-- meaning: Accelerator hours paid for, by region and purchase option. The number of accelerators of a machine is told by
--   SkuPriceDetails (FOCUS 1.1 and later); bills without it have no such figure.
-- unit: GPU-hours; cost is money in the billing currency
-- formula: sum of PricingQuantity x GpuCount over rows priced by the hour whose SKU has GpuCount above 0; the cost per
--   GPU-hour is that of the rows with a quantity (counted_cost), the others would add cost without hours
-- source: FOCUS SkuPriceDetails property GpuCount; FinOps for AI overview (finops.org/wg/finops-for-ai-overview)
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, PricingCategory, PricingUnit,
--   PricingQuantity, SkuPriceDetails, EffectiveCost, CapacityReservationStatus, CommitmentDiscountStatus,
--   ChargeCategory
-- gate: effective_zero, effective_zero_rows, quantity_priced
-- since: 1.1
WITH texts AS (
  SELECT
    x_month,
    ServiceProviderName AS provider,
    ServiceName AS service,
    RegionId AS region_id,
    PricingCategory AS pricing_category,
    SkuPriceDetails AS details,
    SUM(PricingQuantity) AS quantity,
    SUM(CASE WHEN CapacityReservationStatus = 'Unused' OR CommitmentDiscountStatus = 'Unused'
      THEN PricingQuantity ELSE 0 END) AS unused_quantity,
    SUM(EffectiveCost) AS effective_cost,
    SUM(CASE WHEN PricingQuantity IS NOT NULL THEN EffectiveCost ELSE 0 END) AS counted_cost
  FROM focus
  WHERE SkuPriceDetails LIKE '%GpuCount%'
    AND LOWER(PricingUnit) IN ('hour', 'hours', 'hrs', 'hrs.', '1 hour', 'instance-hours', 'h')
    AND ChargeCategory = 'Usage'
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
  GROUP BY x_month, ServiceProviderName, ServiceName, RegionId, PricingCategory, SkuPriceDetails
), counted AS (
  SELECT
    x_month, provider, service, region_id, pricing_category, quantity, unused_quantity, effective_cost, counted_cost,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus
  FROM texts
)
SELECT
  x_month,
  provider,
  service,
  region_id,
  pricing_category,
  SUM(quantity * gpus) AS gpu_hours,
  SUM(unused_quantity * gpus) AS unused_gpu_hours,
  SUM(effective_cost) AS effective_cost,
  SUM(counted_cost) AS counted_cost
FROM counted
WHERE gpus > 0
GROUP BY x_month, provider, service, region_id, pricing_category
