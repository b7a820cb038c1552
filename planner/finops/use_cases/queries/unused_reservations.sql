-- Capacity reserved and not used.
SELECT
  ServiceProviderName,
  BillingAccountId,
  CapacityReservationId,
  CapacityReservationStatus,
  CommitmentDiscountStatus,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND CapacityReservationStatus = 'Unused'
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  CapacityReservationId,
  CapacityReservationStatus,
  CommitmentDiscountStatus
ORDER BY ServiceProviderName, BillingAccountId, CapacityReservationId, CapacityReservationStatus, CommitmentDiscountStatus
