-- What listed idle resources (KPI idle_resources) cost at standard price, by SKU and region. Those below :least count where
-- those of a service come to :least. What is refunded of one SKU of a resource leaves nothing of it idle.
WITH charged AS (
  SELECT COALESCE(ServiceProviderName, '') AS provider, COALESCE(ServiceName, '') AS service,
    COALESCE(RegionId, '') AS region, COALESCE(CapacityReservationId, ResourceId, '') AS resource,
    COALESCE(SkuId, '') AS sku_id,
    SUM(EffectiveCost) AS cost,
    SUM(CASE WHEN COALESCE(PricingCategory, 'Standard') = 'Standard' THEN EffectiveCost ELSE 0 END) AS idle
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory = 'Usage'
    AND CommitmentDiscountStatus IS NULL
    AND (CapacityReservationStatus = 'Unused' OR ConsumedQuantity = 0)
  GROUP BY COALESCE(ServiceProviderName, ''), COALESCE(ServiceName, ''), COALESCE(RegionId, ''),
    COALESCE(CapacityReservationId, ResourceId, ''), COALESCE(SkuId, '')
), summed AS (
  SELECT provider, service, region, sku_id, cost, idle,
    SUM(cost) OVER (PARTITION BY provider, service, resource) AS line
  FROM charged
), listed AS (
  SELECT provider, service, region, sku_id, idle, line,
    SUM(CASE WHEN line > 0 AND line < :least THEN cost ELSE 0 END) OVER (PARTITION BY provider, service) AS smaller
  FROM summed
)
SELECT provider, service, sku_id, region, GREATEST(SUM(idle), 0) AS idle
FROM listed
WHERE line >= :least OR (line > 0 AND smaller >= :least)
GROUP BY provider, service, sku_id, region
