-- Machines by the hour of the month: what `planner commit --from-focus` can plan, with the cost of those under
-- commitments of which the price without is known.
SELECT
  ServiceProviderName AS provider,
  ServiceName AS service,
  RegionId AS region_id,
  JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"') AS instance_type,
  SUM(CASE
    WHEN CommitmentDiscountStatus = 'Used' AND (x_contracted_known OR x_list_known) THEN EffectiveCost ELSE 0
  END) AS committed_cost,
  SUM(CASE
    WHEN CommitmentDiscountStatus <> 'Used' OR CommitmentDiscountStatus IS NULL THEN 0
    WHEN x_contracted_known THEN ContractedCost
    WHEN x_list_known THEN ListCost
    ELSE 0
  END) AS committed_price
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND ChargeCategory IN ('Usage', 'Purchase')
  AND NOT (ChargeCategory = 'Purchase' AND EffectiveCost = 0)
  AND RegionId IS NOT NULL
  AND PricingQuantity > 0
  AND LOWER(PricingUnit) IN ('hour', 'hours', 'hrs', 'hr', 'h')
  AND NULLIF(JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"'), '') IS NOT NULL
GROUP BY ServiceProviderName, ServiceName, RegionId, JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"')
