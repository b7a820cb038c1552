-- The rows of `cheaper` with the name of each SKU: that of its plain use, in the first region.
WITH words AS (
  SELECT of_provider, of_service, of_sku_id, product, instance_type, skus_of_name,
    ROW_NUMBER() OVER (
      PARTITION BY of_provider, of_service, of_sku_id
      ORDER BY CASE WHEN of_pricing_category IN ('Standard', '') THEN 0 ELSE 1 END, of_region_id, of_pricing_category,
        of_pricing_unit
    ) AS nth
  FROM x_names
  WHERE of_charge_kind = 'use'
)
SELECT kind, provider, service, sku_id, pricing_unit, region, to_region, price, there, saves, alike, alike_saves,
  product, instance_type, 'use' AS charge_kind, skus_of_name
FROM x_cheaper
JOIN words ON provider = of_provider AND service = of_service AND sku_id = of_sku_id AND nth = 1
