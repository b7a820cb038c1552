-- Quantity and average effective rate by month, the two halves of a forecast.
SELECT
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  ServiceProviderName,
  ServiceCategory,
  ServiceName,
  RegionId,
  RegionName,
  PricingUnit,
  SUM(PricingQuantity) AS pricing_quantity,
  SUM(EffectiveCost) AS effective_cost,
  SUM(EffectiveCost) / NULLIF(SUM(PricingQuantity), 0) AS cost_per_unit
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND PricingQuantity IS NOT NULL
GROUP BY
  CAST(BillingPeriodStart AS DATE),
  ServiceProviderName,
  ServiceCategory,
  ServiceName,
  RegionId,
  RegionName,
  PricingUnit
ORDER BY billing_month, ServiceProviderName, ServiceCategory, ServiceName, RegionId, RegionName, PricingUnit
