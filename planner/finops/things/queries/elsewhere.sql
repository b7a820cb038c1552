-- Uses at standard price that the bill knows a cheaper price for: the same SKU in the region where it is cheapest
-- (move_region, cheaper by more than :least_ratio) or as spot in the same region (switch_option).
-- One row per kind, SKU, unit and region. Only SKUs whose prices differ so much are sorted: most of a large bill do not.
WITH uses AS (
  SELECT provider, service, sku_id, pricing_unit, COALESCE(region_id, '') AS region,
    COALESCE(pricing_category, 'Standard') AS priced, effective_cost / quantity AS price, quantity
  FROM x_things
  WHERE charge_kind = 'use' AND quantity > 0
    AND provider IS NOT NULL AND service IS NOT NULL AND sku_id IS NOT NULL AND pricing_unit IS NOT NULL
), plain AS (
  SELECT provider, service, sku_id, pricing_unit, region, price, quantity
  FROM uses
  WHERE priced = 'Standard' AND region <> '' AND price > 0
), differing AS (
  SELECT provider AS of_provider, service AS of_service, sku_id AS of_sku_id, pricing_unit AS of_pricing_unit
  FROM plain
  GROUP BY provider, service, sku_id, pricing_unit
  HAVING MIN(price) < MAX(price) * (1 - :least_ratio)
), compared AS (
  SELECT provider, service, sku_id, pricing_unit, region, price, quantity,
    FIRST_VALUE(region) OVER (PARTITION BY provider, service, sku_id, pricing_unit ORDER BY price, region) AS cheapest,
    FIRST_VALUE(price) OVER (PARTITION BY provider, service, sku_id, pricing_unit ORDER BY price, region) AS least_price
  FROM plain
  JOIN differing ON provider = of_provider AND service = of_service AND sku_id = of_sku_id
    AND pricing_unit = of_pricing_unit
), spot AS (
  SELECT provider AS spot_provider, service AS spot_service, sku_id AS spot_sku_id, pricing_unit AS spot_pricing_unit,
    region AS spot_region, price AS spot_price
  FROM uses
  WHERE priced = 'Dynamic' AND price > 0
)
SELECT 'move_region' AS kind, provider, service, sku_id, pricing_unit, region, cheapest AS to_region, price,
  least_price AS there, quantity * price AS cost, quantity * (price - least_price) AS saves
FROM compared
WHERE least_price < price * (1 - :least_ratio)
UNION ALL
SELECT 'switch_option' AS kind, provider, service, sku_id, pricing_unit, region, region AS to_region, price,
  spot_price AS there, quantity * price AS cost, quantity * (price - spot_price) AS saves
FROM plain
JOIN spot ON provider = spot_provider AND service = spot_service AND sku_id = spot_sku_id
  AND pricing_unit = spot_pricing_unit AND region = spot_region
WHERE spot_price < price
