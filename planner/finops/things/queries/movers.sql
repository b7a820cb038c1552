-- The :top things whose cost changed most, but of providers that are left out of the comparison.
SELECT
  provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind,
  quantity, effective_cost, quantity_before, effective_cost_before, change, effect, price, volume
FROM x_things
WHERE COALESCE(provider, '(unnamed)') NOT IN (:left_out)
ORDER BY
  ABS(change) DESC, provider NULLS FIRST, service NULLS FIRST, sku_id NULLS FIRST, region_id NULLS FIRST,
  pricing_category NULLS FIRST, pricing_unit NULLS FIRST, charge_kind NULLS FIRST
LIMIT :top
