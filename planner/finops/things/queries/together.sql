-- What the listed actions on use save together: of a SKU in a region every part of the cost one way.
-- What was not used (x_idle) is deleted, and counts with its own action. Of the rest, steady use gets commitments (x_steady,
-- at the rates of x_rates), and what has a cheaper region or spot price (x_elsewhere) goes to the better of both; of what
-- could have either, whichever saves more. Moves that save less than :least count where those of a service come to :least.
WITH lines AS (
  SELECT kind, provider, service, sku_id, pricing_unit, SUM(saves) AS line
  FROM x_elsewhere
  GROUP BY kind, provider, service, sku_id, pricing_unit
), listed AS (
  SELECT kind AS of_kind, provider AS of_provider, service AS of_service, sku_id AS of_sku_id,
    pricing_unit AS of_pricing_unit, line,
    SUM(CASE WHEN line < :least THEN line ELSE 0 END) OVER (PARTITION BY kind, provider, service) AS smaller
  FROM lines
), ways AS (
  SELECT provider, service, sku_id, region, pricing_unit, SUM(cost) AS cost, SUM(saves) AS saves
  FROM x_elsewhere
  JOIN listed ON kind = of_kind AND provider = of_provider AND service = of_service AND sku_id = of_sku_id
    AND pricing_unit = of_pricing_unit
  WHERE line >= :least OR smaller >= :least
  GROUP BY kind, provider, service, sku_id, region, pricing_unit
), elsewhere AS (
  SELECT provider, service, sku_id, region, pricing_unit, MAX(cost) AS movable, MAX(saves) AS saves
  FROM ways
  GROUP BY provider, service, sku_id, region, pricing_unit
), steady AS (
  SELECT COALESCE(provider, '') AS provider, COALESCE(service, '') AS service, COALESCE(sku_id, '') AS sku_id,
    COALESCE(region_id, '') AS region, share * steady_cost AS steady,
    share * ((steady_cost - steady_gpu_cost) * plain_rate + steady_gpu_cost * gpu_rate) AS committed
  FROM x_steady
  JOIN x_rates ON COALESCE(provider, '') = of_provider AND COALESCE(service, '') = of_service
), overlapping AS (
  SELECT sku_id AS of_sku_id FROM steady
  UNION
  SELECT sku_id AS of_sku_id FROM x_idle
), parts AS (
  SELECT provider, service, sku_id, region, movable, saves, 0.0 AS steady, 0.0 AS committed, 0.0 AS cost, 0.0 AS idle
  FROM elsewhere
  UNION ALL
  SELECT provider, service, sku_id, region, 0.0 AS movable, 0.0 AS saves, steady, committed, 0.0 AS cost, 0.0 AS idle
  FROM steady
  UNION ALL
  SELECT provider, service, sku_id, region, 0.0 AS movable, 0.0 AS saves, 0.0 AS steady, 0.0 AS committed, 0.0 AS cost, idle
  FROM x_idle
  UNION ALL
  SELECT COALESCE(provider, '') AS provider, COALESCE(service, '') AS service, COALESCE(sku_id, '') AS sku_id,
    COALESCE(region_id, '') AS region, 0.0 AS movable, 0.0 AS saves, 0.0 AS steady, 0.0 AS committed,
    effective_cost AS cost, 0.0 AS idle
  FROM x_things
  JOIN overlapping ON COALESCE(sku_id, '') = of_sku_id
  WHERE charge_kind = 'use' AND COALESCE(pricing_category, 'Standard') = 'Standard'
), uses AS (
  SELECT provider, service, sku_id, region, SUM(movable) AS movable, SUM(saves) AS saves, SUM(steady) AS steady,
    SUM(committed) AS committed, SUM(cost) AS cost, SUM(idle) AS idle
  FROM parts
  GROUP BY provider, service, sku_id, region
), remaining AS (
  SELECT
    GREATEST(movable - idle, 0) AS can_move,
    CASE WHEN movable > 0 THEN saves * GREATEST(movable - idle, 0) / movable ELSE 0 END AS move_saves,
    CASE WHEN idle > 0 THEN LEAST(steady, GREATEST(cost - idle, 0)) ELSE steady END AS can_commit,
    CASE WHEN steady <> 0 THEN committed / steady ELSE 0 END AS rate,
    GREATEST(cost - GREATEST(movable, idle), 0) AS fixed
  FROM uses
  WHERE saves > 0 OR committed <> 0
)
SELECT COALESCE(SUM(GREATEST(
  rate * LEAST(can_commit, fixed) + move_saves,
  rate * can_commit
    + CASE WHEN can_move > 0 THEN move_saves * GREATEST(1 - GREATEST(can_commit - fixed, 0) / can_move, 0) ELSE 0 END
)), 0) AS joint_saves
FROM remaining
