-- The effects by provider, service and unit, the sums that part volume from mix, and how much moved at all. A SKU that one
-- month has under a pricing category that the other lacks, while both use it, is neither new nor ended: its whole change
-- is a volume effect, of which what is not pure volume is mix.
WITH turned AS (
  SELECT sku_id AS turned_sku_id
  FROM x_things
  WHERE effect IN ('both', 'new', 'retired') AND sku_id IS NOT NULL
  GROUP BY sku_id
  HAVING MAX(quantity_before) > 0 AND MAX(quantity) > 0
    AND MAX(CASE WHEN effect IN ('new', 'retired') THEN 1 ELSE 0 END) = 1
), repriced AS (
  SELECT COALESCE(provider, '') AS of_provider, COALESCE(service, '') AS of_service, sku_id AS of_sku_id,
    COALESCE(region_id, '') AS of_region_id, pricing_unit AS of_pricing_unit
  FROM x_things
  JOIN turned ON sku_id = turned_sku_id
  WHERE effect IN ('both', 'new', 'retired')
  GROUP BY COALESCE(provider, ''), COALESCE(service, ''), sku_id, COALESCE(region_id, ''), pricing_unit
  HAVING MAX(quantity_before) > 0 AND MAX(quantity) > 0
), parted AS (
  SELECT
    provider, service, pricing_unit, quantity, effective_cost, quantity_before, effective_cost_before, change, price,
    CASE WHEN effect IN ('new', 'retired') AND of_sku_id IS NOT NULL THEN 'both' ELSE effect END AS effect,
    CASE WHEN effect IN ('new', 'retired') AND of_sku_id IS NOT NULL THEN change ELSE volume END AS volume
  FROM x_things
  LEFT JOIN repriced ON COALESCE(provider, '') = of_provider
    AND COALESCE(service, '') = of_service
    AND sku_id = of_sku_id
    AND COALESCE(region_id, '') = of_region_id
    AND pricing_unit = of_pricing_unit
)
SELECT
  provider,
  service,
  pricing_unit,
  SUM(effective_cost_before) AS cost_before,
  SUM(effective_cost) AS cost_after,
  SUM(price) AS price,
  SUM(volume) AS volume,
  SUM(CASE WHEN effect = 'new' THEN change ELSE 0 END) AS new_cost,
  SUM(CASE WHEN effect = 'retired' THEN change ELSE 0 END) AS retired_cost,
  SUM(CASE WHEN effect = 'other' THEN change ELSE 0 END) AS other_cost,
  SUM(ABS(change)) AS moved_cost,
  SUM(CASE WHEN effect = 'both' THEN quantity_before ELSE 0 END) AS both_quantity_before,
  SUM(CASE WHEN effect = 'both' THEN effective_cost_before ELSE 0 END) AS both_cost_before,
  SUM(CASE WHEN effect = 'both' THEN quantity ELSE 0 END) AS both_quantity,
  SUM(CASE WHEN effect = 'both' THEN effective_cost ELSE 0 END) AS both_cost,
  SUM(CASE WHEN effect = 'both' THEN ABS(effective_cost_before) + ABS(effective_cost) ELSE 0 END) AS both_known
FROM parted
GROUP BY provider, service, pricing_unit
