-- Quantity used by resource and month, with the change.
WITH monthly AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    ResourceId,
    SkuId,
    ConsumedUnit,
    x_month AS month,
    SUM(ConsumedQuantity) AS consumed_quantity
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage' AND ConsumedQuantity IS NOT NULL
  GROUP BY
    ServiceProviderName,
    ServiceName,
    ResourceId,
    SkuId,
    ConsumedUnit,
    x_month
)
SELECT
  ServiceProviderName,
  ServiceName,
  ResourceId,
  SkuId,
  ConsumedUnit,
  month,
  consumed_quantity,
  LAG(consumed_quantity) OVER (PARTITION BY ServiceProviderName, ServiceName, ResourceId, SkuId, ConsumedUnit ORDER BY month NULLS FIRST) AS month_before,
  consumed_quantity - LAG(consumed_quantity) OVER (PARTITION BY ServiceProviderName, ServiceName, ResourceId, SkuId, ConsumedUnit ORDER BY month NULLS FIRST) AS change
FROM monthly
ORDER BY ServiceProviderName, ServiceName, ResourceId, SkuId, ConsumedUnit, month
