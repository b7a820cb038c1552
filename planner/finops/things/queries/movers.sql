-- The :top things whose cost changed most, and whether other SKUs of the service go by the same name.
WITH first_ones AS (
  SELECT
    provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
    quantity, effective_cost, quantity_before, effective_cost_before, change, effect, price, volume
  FROM x_things
  ORDER BY
    ABS(change) DESC, provider NULLS FIRST, service NULLS FIRST, sku_id NULLS FIRST, region_id NULLS FIRST,
    pricing_category NULLS FIRST, pricing_unit NULLS FIRST, charge_kind NULLS FIRST
  LIMIT :top
), named AS (
  SELECT DISTINCT COALESCE(provider, '') AS in_provider, COALESCE(service, '') AS in_service, product AS in_product,
    COALESCE(instance_type, '') AS in_instance_type
  FROM first_ones
  WHERE product IS NOT NULL
), alike AS (
  SELECT in_provider, in_service, in_product, in_instance_type, COUNT(DISTINCT x_things.sku_id) AS skus
  FROM named
  JOIN x_things ON x_things.product = named.in_product
    AND COALESCE(x_things.provider, '') = named.in_provider
    AND COALESCE(x_things.service, '') = named.in_service
    AND COALESCE(x_things.instance_type, '') = named.in_instance_type
  GROUP BY in_provider, in_service, in_product, in_instance_type
)
SELECT
  provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
  quantity, effective_cost, quantity_before, effective_cost_before, change, effect, price, volume,
  COALESCE(skus, 1) AS skus_of_name
FROM first_ones
LEFT JOIN alike ON first_ones.product = alike.in_product
  AND COALESCE(first_ones.provider, '') = alike.in_provider
  AND COALESCE(first_ones.service, '') = alike.in_service
  AND COALESCE(first_ones.instance_type, '') = alike.in_instance_type
