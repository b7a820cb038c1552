-- name: capacity_reservations
-- title: Capacity reservations and their use
-- meaning: Cost of every capacity reservation or block in the month, used and unused.
-- unit: money in the billing currency
-- formula: effective cost by CapacityReservationId and CapacityReservationStatus; use = used / (used + unused). The
--   cost of what was bought ahead is divided by the hours bought and used
-- source: FOCUS 1.1 CapacityReservationId and CapacityReservationStatus
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, CapacityReservationId,
--   CapacityReservationStatus, EffectiveCost, PricingQuantity, PricingUnit, CommitmentDiscountId, ChargeCategory
-- gate: effective_zero
-- since: 1.1
-- made_of: CapacityReservationId IS NOT NULL AND ChargeCategory IN ('Usage', 'Purchase')
SELECT
  ServiceProviderName AS provider,
  MAX(ServiceName) AS service,
  RegionId AS region_id,
  CapacityReservationId AS reservation_id,
  SUM(CASE WHEN ChargeCategory = 'Usage' AND CapacityReservationStatus = 'Used' THEN EffectiveCost ELSE 0 END)
    AS used_cost,
  SUM(CASE WHEN ChargeCategory = 'Usage' AND CapacityReservationStatus = 'Unused' THEN EffectiveCost ELSE 0 END)
    AS unused_cost,
  SUM(CASE WHEN ChargeCategory = 'Purchase' THEN EffectiveCost ELSE 0 END) AS bought_cost,
  SUM(CASE WHEN ChargeCategory = 'Purchase' THEN PricingQuantity * x_unit_hours END) AS bought_hours,
  SUM(CASE WHEN ChargeCategory = 'Usage' AND CapacityReservationStatus = 'Used' AND EffectiveCost = 0
    THEN PricingQuantity * x_unit_hours END) AS free_hours
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND (ChargeCategory = 'Usage'
    OR (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NULL AND EffectiveCost <> 0))
  AND CapacityReservationId IS NOT NULL
GROUP BY ServiceProviderName, RegionId, CapacityReservationId
