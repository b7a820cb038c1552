-- name: spot
-- title: Spot share and spot savings
-- meaning: Share of compute bought at a variable price (spot, preemptible), and its saving against list prices. For
--   the overhead of preemption see gpu_units.
-- unit: ratio; costs are money in the billing currency
-- formula: share = effective cost of Dynamic rows / effective cost of compute, without credits and adjustments;
--   savings = 1 - effective / list cost of Dynamic rows with a known list price
-- source: FOCUS PricingCategory; AWS CUDOS kpi_tracker
-- columns: ChargePeriodStart, ServiceProviderName, ServiceCategory, PricingCategory, ChargeCategory,
--   CommitmentDiscountId, EffectiveCost, ListCost
-- gate: effective_zero, effective_zero_rows
-- since: 1.0
SELECT
  x_month,
  ServiceProviderName AS provider,
  SUM(EffectiveCost) AS compute_cost,
  SUM(CASE WHEN PricingCategory = 'Dynamic' THEN EffectiveCost ELSE 0 END) AS spot_cost,
  SUM(CASE WHEN PricingCategory = 'Dynamic' AND x_list_known THEN EffectiveCost ELSE 0 END) AS spot_cost_with_list,
  SUM(CASE WHEN PricingCategory = 'Dynamic' AND x_list_known THEN ListCost ELSE 0 END) AS spot_list_cost,
  SUM(CASE WHEN PricingCategory = 'Standard' THEN EffectiveCost ELSE 0 END) AS on_demand_cost,
  SUM(CASE WHEN PricingCategory = 'Committed' THEN EffectiveCost ELSE 0 END) AS committed_cost
FROM focus
WHERE ServiceCategory = 'Compute'
  AND ChargeCategory IN ('Usage', 'Purchase')
  AND NOT (ChargeCategory = 'Purchase' AND (CommitmentDiscountId IS NOT NULL OR EffectiveCost = 0))
  AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
    OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
GROUP BY x_month, ServiceProviderName
