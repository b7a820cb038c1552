-- name: use_by_day
-- title: Use of one SKU, resource, commitment or service by day
-- meaning: Quantity and cost by day, region and pricing, which measure an accepted action before and after.
-- unit: money per day in the billing currency; quantities in their pricing unit
-- formula: sums of PricingQuantity, EffectiveCost and ContractedCost of use by day; of a commitment its unused part only
-- source: FinOps Framework, Rate Optimization (realised savings); FOCUS columns
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, SkuId, ResourceId, CapacityReservationId,
--   CommitmentDiscountId, CommitmentDiscountStatus, RegionId, PricingCategory, PricingQuantity, EffectiveCost,
--   ContractedCost, ChargeCategory
-- gate: effective_zero, effective_zero_rows, quantity_known
-- since: 1.0
SELECT
  x_month,
  x_day,
  ServiceName AS service,
  RegionId AS region_id,
  PricingCategory AS pricing_category,
  SUM(PricingQuantity) AS quantity,
  SUM(EffectiveCost) AS effective_cost,
  SUM(CASE WHEN x_contracted_known THEN ContractedCost ELSE EffectiveCost END) AS contracted_cost
FROM focus
WHERE ServiceProviderName = :provider
  AND ChargeCategory = 'Usage'
  AND CASE
    WHEN :scope = 'sku' THEN SkuId
    WHEN :scope = 'resource' THEN COALESCE(CapacityReservationId, ResourceId)
    WHEN :scope = 'commitment' AND CommitmentDiscountStatus = 'Unused' THEN CommitmentDiscountId
    WHEN :scope = 'service' THEN ServiceName
  END = :thing
GROUP BY x_month, x_day, ServiceName, RegionId, PricingCategory
