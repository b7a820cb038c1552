-- Everything bought in the two months with the effects of its change, from the rows of the KPI price_volume: mid-point
-- decomposition as in planner/finops/bridge.py. What has no unit, and effects that are :absurd times the cost itself, are
-- in `other`: a unit was changed, or what was paid became free. So are refunds, which state what they refund as quantity.
-- Of a bill with many things names are NULL here: they cost more to group than sums, and few are shown (x_named).
WITH filled AS (
  SELECT
    provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
    COALESCE(quantity, 0) AS quantity,
    COALESCE(effective_cost, 0) AS effective_cost,
    COALESCE(quantity_before, 0) AS quantity_before,
    COALESCE(effective_cost_before, 0) AS effective_cost_before,
    CASE WHEN pricing_unit IS NOT NULL AND charge_kind = 'use' THEN 1 ELSE 0 END AS has_unit
  FROM price_volume
), moved AS (
  SELECT
    provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
    quantity, effective_cost, quantity_before, effective_cost_before, has_unit,
    effective_cost - effective_cost_before AS change,
    CASE WHEN has_unit = 1 AND quantity > 0 AND quantity_before > 0
      THEN (quantity - quantity_before) * (effective_cost_before / quantity_before + effective_cost / quantity) / 2
    END AS volume
  FROM filled
), parted AS (
  SELECT
    provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
    quantity, effective_cost, quantity_before, effective_cost_before, change, volume,
    CASE
      WHEN ABS(volume) <= :absurd * GREATEST(ABS(effective_cost_before), ABS(effective_cost)) THEN 'both'
      WHEN has_unit = 1 AND quantity_before = 0 AND effective_cost_before = 0 AND quantity > 0
        AND effective_cost >= 0 THEN 'new'
      WHEN has_unit = 1 AND quantity = 0 AND effective_cost = 0 AND quantity_before > 0
        AND effective_cost_before >= 0 THEN 'retired'
      ELSE 'other'
    END AS effect
  FROM moved
)
SELECT
  provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type,
  quantity, effective_cost, quantity_before, effective_cost_before, change, effect,
  CASE WHEN effect = 'both' THEN change - volume ELSE 0 END AS price,
  CASE WHEN effect = 'both' THEN volume ELSE 0 END AS volume
FROM parted
