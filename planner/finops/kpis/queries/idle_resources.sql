-- name: idle_resources
-- title: Paid and not used
-- meaning: Capacity reservations that stood unused, and resources that were charged while nothing was consumed: what can
--   be deleted.
-- unit: money in the billing currency
-- formula: effective cost of rows with CapacityReservationStatus Unused, or with ConsumedQuantity 0, net of
--   refunds; owner: the team (first mandatory tag) of the resource, else its account
-- source: FOCUS use case identify-unused-capacity-reservations; FINOPS.md section 2
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, ResourceId, ResourceName,
--   CapacityReservationId, CapacityReservationStatus, ConsumedQuantity, EffectiveCost, ChargeCategory,
--   CommitmentDiscountStatus, PricingQuantity, PricingUnit, Tags, SubAccountName, SubAccountId, BillingAccountId
-- gate: effective_zero
-- since: 1.1
-- made_of: ChargeCategory = 'Usage' AND (CapacityReservationStatus = 'Unused' OR ConsumedQuantity = 0)
SELECT
  ServiceProviderName AS provider,
  ServiceName AS service,
  RegionId AS region_id,
  COALESCE(CapacityReservationId, ResourceId) AS resource_id,
  MAX(ResourceName) AS resource_name,
  MAX(CASE WHEN CapacityReservationStatus = 'Unused' THEN 1 ELSE 0 END) AS is_reservation,
  COUNT(DISTINCT CASE WHEN EffectiveCost > 0 THEN x_day END) AS idle_days,
  COALESCE(
    MAX(NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '')),
    MAX(COALESCE(SubAccountName, SubAccountId, BillingAccountId))
  ) AS owner,
  SUM(EffectiveCost) AS effective_cost,
  SUM(PricingQuantity) AS quantity,
  MAX(PricingUnit) AS pricing_unit
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  AND ChargeCategory = 'Usage'
  AND CommitmentDiscountStatus IS NULL
  AND (CapacityReservationStatus = 'Unused' OR ConsumedQuantity = 0)
GROUP BY ServiceProviderName, ServiceName, RegionId, COALESCE(CapacityReservationId, ResourceId)
HAVING SUM(EffectiveCost) > 0
