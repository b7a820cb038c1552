-- Compute cost by state of the capacity reservation behind it; no reservation is a row of its own.
SELECT
  ServiceProviderName,
  BillingAccountId,
  CapacityReservationId,
  CapacityReservationStatus,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ServiceCategory = 'Compute'
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  CapacityReservationId,
  CapacityReservationStatus
ORDER BY ServiceProviderName, BillingAccountId, CapacityReservationId, CapacityReservationStatus
