-- name: use_by_day
-- title: Use of one SKU, resource, commitment or service by day
-- meaning: Quantity and cost by day, region and pricing, which measure an accepted action before and after.
-- unit: money per day in the billing currency; quantities in their pricing unit
-- formula: sums of PricingQuantity, EffectiveCost and ContractedCost of use by day; of a commitment its unused part only.
--   Corrections of closed billing periods are no use of the day, nor are refunds that state a quantity of 0 of a SKU or
--   service
-- source: FinOps Framework, Rate Optimization (realised savings); FOCUS columns
-- columns: BillingPeriodStart, ChargePeriodStart, ChargeClass, ServiceProviderName, ServiceName, SkuId, ResourceId, CapacityReservationId,
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
  AND NOT COALESCE(ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart, FALSE)
  AND NOT COALESCE(:scope IN ('sku', 'service') AND PricingQuantity = 0 AND EffectiveCost < 0, FALSE)
  AND CASE
    WHEN :scope = 'sku' THEN SkuId
    WHEN :scope = 'resource' THEN COALESCE(CapacityReservationId, ResourceId)
    WHEN :scope = 'commitment' AND CommitmentDiscountStatus = 'Unused' THEN CommitmentDiscountId
    WHEN :scope = 'service' THEN ServiceName
  END = :thing
GROUP BY x_month, x_day, ServiceName, RegionId, PricingCategory
