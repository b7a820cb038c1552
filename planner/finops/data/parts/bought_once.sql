-- Charges of what was bought once: one-time purchases of a SKU that was bought in one calendar month alone, with what was
-- refunded of them later, and the use of capacity reservations that such a purchase paid for. A SELECT from charges follows.
-- In braces: scope, an expression, and cost, a column. Parameter: :end, the first day that is not looked at.
WITH once AS (
  SELECT COALESCE(ServiceProviderName, '') AS provider, COALESCE(ServiceName, '') AS service, COALESCE(SkuId, '') AS sku
  FROM focus
  WHERE ChargeCategory = 'Purchase'
    AND ChargeFrequency = 'One-Time'
    AND (BilledCost > 0 OR EffectiveCost > 0)
    AND COALESCE(ChargeClass, '') <> 'Correction'
    AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
  GROUP BY COALESCE(ServiceProviderName, ''), COALESCE(ServiceName, ''), COALESCE(SkuId, '')
  HAVING COUNT(DISTINCT x_month) = 1
), purchases AS (
  SELECT once.provider, once.service, once.sku, {scope} AS scope, x_day, {cost} AS cost, CapacityReservationId AS reservation,
    CommitmentDiscountId AS commitment
  FROM focus
  JOIN once
    ON COALESCE(ServiceProviderName, '') = once.provider
    AND COALESCE(ServiceName, '') = once.service
    AND COALESCE(SkuId, '') = once.sku
  WHERE ChargeCategory = 'Purchase'
    AND ChargeFrequency = 'One-Time'
    AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
), reservations AS (
  SELECT provider, reservation, MIN(service) AS service, MIN(sku) AS sku
  FROM purchases
  WHERE reservation IS NOT NULL AND commitment IS NULL
  GROUP BY provider, reservation
), charges AS (
  SELECT provider, service, sku, scope, x_day, cost, 0 AS used
  FROM purchases
  WHERE cost <> 0
  UNION ALL
  SELECT reservations.provider, reservations.service, reservations.sku, {scope} AS scope, x_day, {cost} AS cost,
    {cost} AS used
  FROM focus
  JOIN reservations
    ON COALESCE(ServiceProviderName, '') = reservations.provider AND CapacityReservationId = reservations.reservation
  WHERE ChargeCategory = 'Usage'
    AND {cost} <> 0
    AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
)
