-- Services whose use names machines: what `planner commit --from-focus` can plan.
SELECT provider, service
FROM x_things
WHERE charge_kind = 'use' AND instance_type IS NOT NULL AND region_id IS NOT NULL AND quantity > 0
  AND LOWER(pricing_unit) IN ('hour', 'hours', 'hrs', 'hr', 'h')
GROUP BY provider, service
