-- Of the uses that are cheaper elsewhere (x_elsewhere) one row per kind, SKU and region of the SKUs that save :least or more.
-- Of those that save less, by kind and service, only the one that saves most: `alike` of them save `alike_saves` together.
WITH sums AS (
  SELECT kind AS of_kind, provider AS of_provider, service AS of_service, sku_id AS of_sku_id,
    pricing_unit AS of_pricing_unit, SUM(saves) AS sku_saves
  FROM x_elsewhere
  GROUP BY kind, provider, service, sku_id, pricing_unit
), ranked AS (
  SELECT of_kind, of_provider, of_service, of_sku_id, of_pricing_unit, sku_saves,
    ROW_NUMBER() OVER (
      PARTITION BY of_kind, of_provider, of_service, sku_saves >= :least
      ORDER BY sku_saves DESC, of_sku_id, of_pricing_unit
    ) AS place,
    COUNT(*) OVER (PARTITION BY of_kind, of_provider, of_service, sku_saves >= :least) AS alike,
    SUM(sku_saves) OVER (PARTITION BY of_kind, of_provider, of_service, sku_saves >= :least) AS alike_saves
  FROM sums
), shown AS (
  SELECT of_kind, of_provider, of_service, of_sku_id, of_pricing_unit,
    CASE WHEN sku_saves < :least THEN alike ELSE 0 END AS alike,
    CASE WHEN sku_saves < :least THEN alike_saves ELSE 0 END AS alike_saves
  FROM ranked
  WHERE sku_saves >= :least OR place = 1
)
SELECT kind, provider, service, sku_id, pricing_unit, region, to_region, price, there, saves, alike, alike_saves
FROM shown
JOIN x_elsewhere ON kind = of_kind AND provider = of_provider AND service = of_service AND sku_id = of_sku_id
  AND pricing_unit = of_pricing_unit
