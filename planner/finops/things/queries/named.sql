-- The names of all things, where the table of things has them.
SELECT provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type
FROM x_things
