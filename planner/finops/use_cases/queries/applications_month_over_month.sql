-- Effective cost per value of one tag, service and month.
WITH by_tags AS (
  SELECT
    x_month,
    ServiceName,
    Tags,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY
    x_month,
    ServiceName,
    Tags
)
SELECT
  JSON_EXTRACT_STRING(Tags, :tag) AS application,
  x_month,
  ServiceName,
  SUM(effective_cost) AS effective_cost
FROM by_tags
GROUP BY
  JSON_EXTRACT_STRING(Tags, :tag),
  x_month,
  ServiceName
ORDER BY application, x_month, ServiceName
