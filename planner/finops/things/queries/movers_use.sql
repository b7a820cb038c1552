-- All use of the SKUs of the :top things whose cost changed most: where their quantity may have come from or gone to.
WITH first_ones AS (
  SELECT provider, sku_id, pricing_unit, charge_kind
  FROM x_things
  WHERE COALESCE(provider, '(unnamed)') NOT IN (:left_out)
  ORDER BY
    ABS(change) DESC, provider NULLS FIRST, service NULLS FIRST, sku_id NULLS FIRST, region_id NULLS FIRST,
    pricing_category NULLS FIRST, pricing_unit NULLS FIRST, charge_kind NULLS FIRST
  LIMIT :top
), skus AS (
  SELECT DISTINCT provider AS of_provider, sku_id AS of_sku_id, pricing_unit AS of_pricing_unit
  FROM first_ones
  WHERE charge_kind = 'use'
)
SELECT provider, service, sku_id, region_id, pricing_category, pricing_unit, quantity, quantity_before
FROM x_things
JOIN skus ON provider = of_provider AND sku_id = of_sku_id AND pricing_unit = of_pricing_unit
WHERE charge_kind = 'use'
