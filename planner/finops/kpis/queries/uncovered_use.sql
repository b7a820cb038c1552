-- name: uncovered_use
-- title: Steady use without a commitment
-- meaning: What each SKU costs per day at standard price in the month: the part that is there every day is what a
--   commitment could carry without waste.
-- unit: money per day in the billing currency
-- formula: effective cost per day of usage at standard price that is eligible (FOCUS 1.4), or of compute before that
-- source: FOCUS 1.4 use case identify-eligible-uncovered-spend-by-program-type; FINOPS.md section 2
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ServiceCategory, SkuId, RegionId, ChargeCategory,
--   PricingCategory, CommitmentDiscountId, CommitmentProgramEligibilityDetails, EffectiveCost
-- gate: effective_zero
-- since: 1.0
SELECT
  ServiceProviderName AS provider,
  ServiceName AS service,
  SkuId AS sku_id,
  RegionId AS region_id,
  x_day,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND ChargeCategory = 'Usage'
  AND COALESCE(PricingCategory, 'Standard') = 'Standard'
  AND CommitmentDiscountId IS NULL
  AND (CommitmentProgramEligibilityDetails IS NOT NULL OR (x_focus_version <> '1.4' AND ServiceCategory = 'Compute'))
GROUP BY ServiceProviderName, ServiceName, SkuId, RegionId, x_day
