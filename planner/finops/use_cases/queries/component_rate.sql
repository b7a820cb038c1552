-- Effective cost per core and pricing unit (core-hour where the unit is an hour).
WITH priced AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    RegionName,
    PricingUnit,
    SkuPriceDetails,
    SUM(PricingQuantity) AS pricing_quantity,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage'
  GROUP BY
    ServiceProviderName,
    ServiceName,
    RegionName,
    PricingUnit,
    SkuPriceDetails
), counted AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    RegionName,
    PricingUnit,
    pricing_quantity,
    effective_cost,
    TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$.CoreCount') AS DOUBLE) AS cores
  FROM priced
)
SELECT
  ServiceProviderName,
  ServiceName,
  RegionName,
  PricingUnit,
  SUM(pricing_quantity * cores) AS core_units,
  SUM(effective_cost) / NULLIF(SUM(pricing_quantity * cores), 0) AS cost_per_core_unit
FROM counted
WHERE cores IS NOT NULL
GROUP BY
  ServiceProviderName,
  ServiceName,
  RegionName,
  PricingUnit
ORDER BY ServiceProviderName, ServiceName, RegionName, PricingUnit
