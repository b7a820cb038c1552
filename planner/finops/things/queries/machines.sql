-- Services whose use of the month names machines: what `planner commit --from-focus` can plan.
SELECT ServiceProviderName AS provider, ServiceName AS service
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND ChargeCategory IN ('Usage', 'Purchase')
  AND NOT (ChargeCategory = 'Purchase' AND EffectiveCost = 0)
  AND RegionId IS NOT NULL
  AND PricingQuantity > 0
  AND LOWER(PricingUnit) IN ('hour', 'hours', 'hrs', 'hr', 'h')
  AND NULLIF(JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"'), '') IS NOT NULL
GROUP BY ServiceProviderName, ServiceName
