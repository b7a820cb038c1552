-- The rows of `movers` with the name of each thing, and whether other SKUs of the service go by the same one.
SELECT
  provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
  quantity, effective_cost, quantity_before, effective_cost_before, change, effect, price, volume,
  COALESCE(skus_of_name, 1) AS skus_of_name
FROM x_movers
LEFT JOIN x_names ON COALESCE(provider, '') = of_provider
  AND COALESCE(service, '') = of_service
  AND COALESCE(sku_id, '') = of_sku_id
  AND COALESCE(region_id, '') = of_region_id
  AND COALESCE(pricing_category, '') = of_pricing_category
  AND COALESCE(pricing_unit, '') = of_pricing_unit
  AND COALESCE(charge_kind, '') = of_charge_kind
