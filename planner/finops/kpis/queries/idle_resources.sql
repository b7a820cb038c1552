-- name: idle_resources
-- title: Paid but not used
-- meaning: Unused capacity reservations, and resources that were charged without consumption: candidates for
--   deletion.
-- unit: money in the billing currency
-- formula: effective cost of rows with CapacityReservationStatus Unused or ConsumedQuantity 0, net of refunds, by id,
--   in all regions; owner: the team (first mandatory tag) of the largest part, otherwise the account
-- source: FOCUS use case identify-unused-capacity-reservations
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, ResourceId, ResourceName,
--   CapacityReservationId, CapacityReservationStatus, ConsumedQuantity, EffectiveCost, ChargeCategory,
--   CommitmentDiscountStatus, PricingQuantity, PricingUnit, Tags, SubAccountName, SubAccountId, BillingAccountId
-- gate: effective_zero
-- since: 1.1
-- made_of: ChargeCategory = 'Usage' AND (CapacityReservationStatus = 'Unused' OR ConsumedQuantity = 0)
WITH stood AS (
  SELECT
    COALESCE(ServiceProviderName, '') AS provider,
    COALESCE(ServiceName, '') AS service,
    COALESCE(CapacityReservationId, ResourceId, '') AS resource_id,
    RegionId AS region_id,
    ResourceName AS resource_name,
    CASE WHEN CapacityReservationStatus = 'Unused' THEN 1 ELSE 0 END AS is_reservation,
    x_day,
    NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '') AS team,
    COALESCE(SubAccountName, SubAccountId, BillingAccountId) AS account,
    EffectiveCost AS cost,
    PricingQuantity AS quantity,
    PricingUnit AS pricing_unit
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory = 'Usage'
    AND CommitmentDiscountStatus IS NULL
    AND (CapacityReservationStatus = 'Unused' OR ConsumedQuantity = 0)
), summed AS (
  SELECT
    provider,
    service,
    resource_id,
    MIN(region_id) AS region_id,
    MAX(region_id) AS last_region_id,
    COUNT(DISTINCT region_id) AS regions_count,
    MAX(resource_name) AS resource_name,
    MAX(is_reservation) AS is_reservation,
    COUNT(DISTINCT CASE WHEN cost > 0 THEN x_day END) AS idle_days,
    SUM(cost) AS effective_cost,
    SUM(quantity) AS quantity,
    MAX(pricing_unit) AS pricing_unit
  FROM stood
  GROUP BY provider, service, resource_id
  HAVING SUM(cost) > 0
), owners AS (
  SELECT provider, service, resource_id, COALESCE(team, account) AS owner, CASE WHEN team IS NULL THEN 1 ELSE 0 END AS is_account,
    SUM(cost) AS cost
  FROM stood
  WHERE COALESCE(team, account) IS NOT NULL
  GROUP BY provider, service, resource_id, COALESCE(team, account), CASE WHEN team IS NULL THEN 1 ELSE 0 END
), ranked AS (
  SELECT provider AS of_provider, service AS of_service, resource_id AS of_resource, owner,
    ROW_NUMBER() OVER (PARTITION BY provider, service, resource_id ORDER BY is_account, cost DESC, owner) AS place
  FROM owners
)
SELECT
  provider,
  service,
  resource_id,
  region_id,
  last_region_id,
  regions_count,
  resource_name,
  is_reservation,
  idle_days,
  owner,
  effective_cost,
  quantity,
  pricing_unit
FROM summed
LEFT JOIN ranked
  ON of_provider = provider AND of_service = service AND of_resource = resource_id AND place = 1
