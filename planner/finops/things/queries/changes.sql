-- The effects by provider, service and unit, the sums that part volume from mix, and how much moved at all.
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
FROM x_things
GROUP BY provider, service, pricing_unit
