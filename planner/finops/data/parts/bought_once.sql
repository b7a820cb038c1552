-- Charges of what was bought once: one-time purchases of a SKU that was bought in one calendar month alone, with what was
-- refunded of them later, and the use of capacity reservations that such a purchase paid for. Capacity reservations of a
-- service are one thing, whatever their SKUs: blocks of another size each month recur. A SELECT from charges follows.
-- In braces: scope, an expression, and cost, a column. Parameter: :end, the first day that is not looked at.
WITH bought AS (
  SELECT COALESCE(ServiceProviderName, '') AS provider, COALESCE(ServiceName, '') AS service, COALESCE(SkuId, '') AS sku,
    {scope} AS scope, x_day, {cost} AS cost, CapacityReservationId AS reservation, CommitmentDiscountId AS commitment,
    CASE WHEN (BilledCost > 0 OR EffectiveCost > 0) AND COALESCE(ChargeClass, '') <> 'Correction' THEN x_month
      END AS bought_in
  FROM focus
  WHERE ChargeCategory = 'Purchase'
    AND ChargeFrequency = 'One-Time'
    AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
), skus AS (
  SELECT provider, service, sku, MIN(bought_in) AS first_month, MAX(bought_in) AS last_month,
    CASE WHEN SUM(CASE WHEN reservation IS NOT NULL AND commitment IS NULL THEN 1 ELSE 0 END) > 0 THEN 'capacity'
      ELSE CONCAT('SKU ', sku) END AS thing
  FROM bought
  GROUP BY provider, service, sku
), once AS (
  SELECT provider, service, thing
  FROM skus
  GROUP BY provider, service, thing
  HAVING MIN(first_month) = MAX(last_month)
), purchases AS (
  SELECT bought.provider AS provider, bought.service AS service, bought.sku AS sku, scope, x_day, cost, reservation,
    commitment
  FROM bought
  JOIN skus ON bought.provider = skus.provider AND bought.service = skus.service AND bought.sku = skus.sku
  JOIN once ON skus.provider = once.provider AND skus.service = once.service AND skus.thing = once.thing
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
