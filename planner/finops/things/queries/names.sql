-- Names of all things of the SKUs that moved or are cheaper elsewhere, and how many SKUs of the service go by the same
-- one. `x_named` has the names of these things and of all others that share one.
WITH found_skus AS (
  SELECT COALESCE(sku_id, '') AS found_sku_id FROM x_cheaper
  UNION
  SELECT COALESCE(sku_id, '') AS found_sku_id FROM x_movers
), named AS (
  SELECT
    COALESCE(provider, '') AS of_provider,
    COALESCE(service, '') AS of_service,
    COALESCE(sku_id, '') AS of_sku_id,
    COALESCE(region_id, '') AS of_region_id,
    COALESCE(pricing_category, '') AS of_pricing_category,
    COALESCE(pricing_unit, '') AS of_pricing_unit,
    COALESCE(charge_kind, '') AS of_charge_kind,
    sku_id,
    product,
    instance_type
  FROM x_named
), shared AS (
  SELECT
    of_provider AS in_provider, of_service AS in_service, product AS in_product,
    COALESCE(instance_type, '') AS in_machine, COUNT(DISTINCT sku_id) AS skus
  FROM named
  WHERE product IS NOT NULL
  GROUP BY of_provider, of_service, product, COALESCE(instance_type, '')
)
SELECT
  of_provider, of_service, of_sku_id, of_region_id, of_pricing_category, of_pricing_unit, of_charge_kind,
  MAX(product) AS product,
  MAX(instance_type) AS instance_type,
  COALESCE(MAX(skus), 1) AS skus_of_name
FROM named
JOIN found_skus ON of_sku_id = found_sku_id
LEFT JOIN shared ON of_provider = in_provider AND of_service = in_service AND product = in_product
  AND COALESCE(instance_type, '') = in_machine
GROUP BY of_provider, of_service, of_sku_id, of_region_id, of_pricing_category, of_pricing_unit, of_charge_kind
