-- name: price_volume
-- title: Price, volume, mix, new and retired
-- meaning: Quantity and cost of everything bought in the two months, from which the change is split exactly into
--   price, volume, mix, new and retired. Credits, fees without a quantity, refunds that state a quantity of 0, and
--   corrections of closed billing periods that are dated after them are separate. Quantities of rows without a cost do not count.
-- unit: money in the billing currency; quantities in their pricing unit
-- formula: per provider, SKU, region and pricing category: volume = (q1 - q0)(p0 + p1)/2, price = (p1 - p0)(q0 + q1)/2;
--   inside a service of one unit pure volume = (Q1 - Q0) x mean price, mix = sum of volumes - pure volume; q0 = 0 is new,
--   q1 = 0 is retired, unless the SKU is used in the region in both months: then volume = its change. The sum is the
--   change, to 1e-9.
-- source: Bennet 1920 (J. R. Stat. Soc. 83): mid-point, symmetric decomposition; FOCUS ChargeClass: a correction is of
--   an earlier billing period, so one dated within its own is not of the use beside it
-- columns: BillingPeriodStart, ChargePeriodStart, ServiceProviderName, ServiceName, SkuId, RegionId, PricingCategory,
--   PricingUnit, PricingQuantity, EffectiveCost, ContractedCost, ChargeCategory, ChargeClass, SkuMeter,
--   ChargeDescription, SkuPriceDetails
-- gate: effective_zero, quantity_known
-- since: 1.0
SELECT
  ServiceProviderName AS provider,
  ServiceName AS service,
  SkuId AS sku_id,
  RegionId AS region_id,
  PricingCategory AS pricing_category,
  PricingUnit AS pricing_unit,
  CASE
    WHEN ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart THEN 'Correction'
    WHEN PricingQuantity = 0 AND EffectiveCost < 0 AND ChargeCategory IN ('Usage', 'Purchase') THEN 'Refund'
    WHEN ChargeCategory IN ('Usage', 'Purchase') THEN 'use'
    ELSE ChargeCategory
  END AS charge_kind,
  COALESCE(
    NULLIF(MAX(SkuMeter), ''),
    CASE WHEN MIN(CASE WHEN SkuMeter IS NULL THEN ChargeDescription END)
      = MAX(CASE WHEN SkuMeter IS NULL THEN ChargeDescription END) THEN NULLIF(MAX(ChargeDescription), '') END,
    NULLIF(JSON_EXTRACT_STRING(MAX(SkuPriceDetails), '$."InstanceType"'), ''),
    NULLIF(MIN(CASE WHEN SkuMeter IS NULL THEN ChargeDescription END), '') || ' and others'
  ) AS product,
  NULLIF(JSON_EXTRACT_STRING(MAX(SkuPriceDetails), '$."InstanceType"'), '') AS instance_type,
  SUM(CASE WHEN ChargePeriodStart >= :start AND ChargePeriodStart < :end AND EffectiveCost IS NOT NULL
    THEN COALESCE(PricingQuantity, 0) ELSE 0 END) AS quantity,
  SUM(CASE WHEN ChargePeriodStart >= :start AND ChargePeriodStart < :end THEN EffectiveCost ELSE 0 END)
    AS effective_cost,
  SUM(CASE WHEN ChargePeriodStart >= :start AND ChargePeriodStart < :end AND x_contracted_known
    THEN ContractedCost ELSE 0 END) AS contracted_cost,
  SUM(CASE WHEN ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end AND EffectiveCost IS NOT NULL
    THEN COALESCE(PricingQuantity, 0) ELSE 0 END) AS quantity_before,
  SUM(CASE WHEN ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end THEN EffectiveCost ELSE 0 END)
    AS effective_cost_before
FROM focus
WHERE ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
    OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
  AND COALESCE(ChargeCategory, '') <> 'Tax'
  AND NOT (COALESCE(ChargeCategory, '') = 'Purchase' AND EffectiveCost = 0)
GROUP BY
  ServiceProviderName,
  ServiceName,
  SkuId,
  RegionId,
  PricingCategory,
  PricingUnit,
  CASE
    WHEN ChargeClass = 'Correction' AND BillingPeriodStart <= ChargePeriodStart THEN 'Correction'
    WHEN PricingQuantity = 0 AND EffectiveCost < 0 AND ChargeCategory IN ('Usage', 'Purchase') THEN 'Refund'
    WHEN ChargeCategory IN ('Usage', 'Purchase') THEN 'use'
    ELSE ChargeCategory
  END
