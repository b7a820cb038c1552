-- name: ai_units
-- title: Units of AI work
-- meaning: Cost per token, request, image or other unit of a model, or in a virtual currency (credits, DBU), with the
--   text that names the model. Requests, images and characters count only for services of the category AI and Machine
--   Learning, because buckets and queues have requests too.
-- unit: units as the bill counts them; cost is money in the billing currency
-- formula: sums of ConsumedQuantity, PricingQuantity, EffectiveCost and PricingCurrencyEffectiveCost by SKU, of use
--   whose cost is known
-- source: FinOps for AI overview (cost per token, per request); FOCUS 1.2 PricingCurrency
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ServiceCategory, SkuId, SkuMeter, ChargeDescription,
--   SkuPriceDetails, ConsumedQuantity, ConsumedUnit, PricingQuantity, PricingUnit, PricingCurrency,
--   PricingCurrencyEffectiveCost, BillingCurrency, EffectiveCost, ChargeCategory
-- gate: effective_zero, effective_zero_rows
-- since: 1.0
-- made_of: LOWER(COALESCE(ConsumedUnit, '')) LIKE '%token%' OR LOWER(COALESCE(PricingUnit, '')) LIKE '%token%'
--   OR PricingCurrency <> COALESCE(BillingCurrency, '') OR ServiceCategory = 'AI and Machine Learning'
WITH texts AS (
  SELECT
    ServiceProviderName AS provider,
    ServiceName AS service,
    ServiceCategory AS service_category,
    SkuId AS sku_id,
    SkuMeter AS sku_meter,
    ChargeDescription AS description,
    SkuPriceDetails AS details,
    ConsumedUnit AS consumed_unit,
    PricingUnit AS pricing_unit,
    CASE WHEN PricingCurrency <> COALESCE(BillingCurrency, '') THEN PricingCurrency END AS pricing_currency,
    SUM(CASE WHEN EffectiveCost IS NOT NULL THEN ConsumedQuantity END) AS consumed_quantity,
    SUM(CASE WHEN EffectiveCost IS NOT NULL THEN PricingQuantity END) AS pricing_quantity,
    SUM(CASE WHEN EffectiveCost IS NOT NULL THEN PricingCurrencyEffectiveCost END) AS pricing_currency_cost,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory = 'Usage'
    AND (
      LOWER(COALESCE(ConsumedUnit, '')) LIKE '%token%'
      OR LOWER(COALESCE(PricingUnit, '')) LIKE '%token%'
      OR PricingCurrency <> COALESCE(BillingCurrency, '')
      OR ServiceCategory = 'AI and Machine Learning'
    )
  GROUP BY ServiceProviderName, ServiceName, ServiceCategory, SkuId, SkuMeter, ChargeDescription, SkuPriceDetails,
    ConsumedUnit, PricingUnit, CASE WHEN PricingCurrency <> COALESCE(BillingCurrency, '') THEN PricingCurrency END
)
SELECT
  provider,
  service,
  service_category,
  sku_id,
  sku_meter,
  description,
  COALESCE(JSON_EXTRACT_STRING(details, '$."ModelName"'), JSON_EXTRACT_STRING(details, '$."Model"')) AS model,
  consumed_unit,
  pricing_unit,
  pricing_currency,
  consumed_quantity,
  pricing_quantity,
  pricing_currency_cost,
  effective_cost
FROM texts
