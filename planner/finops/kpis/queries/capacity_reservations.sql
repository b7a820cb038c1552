-- name: capacity_reservations
-- title: Capacity reservations and their use
-- meaning: What every capacity reservation or block cost in the month, used and unused.
-- unit: money in the billing currency
-- formula: effective cost by CapacityReservationId and CapacityReservationStatus; use = used / (used + unused)
-- source: FOCUS 1.1 CapacityReservationId and CapacityReservationStatus
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, CapacityReservationId,
--   CapacityReservationStatus, EffectiveCost, ChargeCategory
-- gate: effective_zero
-- since: 1.1
-- made_of: CapacityReservationId IS NOT NULL AND ChargeCategory = 'Usage'
SELECT
  ServiceProviderName AS provider,
  ServiceName AS service,
  RegionId AS region_id,
  CapacityReservationId AS reservation_id,
  SUM(CASE WHEN CapacityReservationStatus = 'Used' THEN EffectiveCost ELSE 0 END) AS used_cost,
  SUM(CASE WHEN CapacityReservationStatus = 'Unused' THEN EffectiveCost ELSE 0 END) AS unused_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND ChargeCategory = 'Usage'
  AND CapacityReservationId IS NOT NULL
GROUP BY ServiceProviderName, ServiceName, RegionId, CapacityReservationId
