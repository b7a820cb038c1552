-- name: bought_ahead
-- title: Prepaid capacity and its use
-- meaning: Prepaid capacity that carries the cost of machines (capacity blocks; reservations in bills without
--   EffectiveCost), and its use, which is free of charge, over all months of the bill. Runs and months get their
--   share of the price from it.
-- unit: money in the billing currency; hours; CommitmentDiscountQuantity in the units of the commitment
-- formula: EffectiveCost of purchases where it is not 0, and hours of use where it is 0, by month, thing and run;
--   planner.finops.bought_ahead divides them
-- source: FOCUS EffectiveCost (use bears its part of prepaid purchases), CapacityReservationId, CommitmentDiscountQuantity
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, RegionId, CapacityReservationId,
--   CapacityReservationStatus, CommitmentDiscountId, CommitmentDiscountStatus, CommitmentDiscountQuantity, PricingUnit,
--   PricingQuantity, SkuPriceDetails, Tags, EffectiveCost, ChargeCategory
-- gate: effective_zero, effective_zero_rows, quantity_priced
-- since: 1.0
-- made_of: ChargeCategory = 'Purchase' AND EffectiveCost <> 0 AND (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu'
--   OR CapacityReservationId IS NOT NULL OR CommitmentDiscountId IS NOT NULL)
WITH texts AS (
  SELECT
    x_month,
    ServiceProviderName AS provider,
    ServiceName AS service,
    RegionId AS region_id,
    CapacityReservationId AS reservation_id,
    CASE WHEN ChargeCategory = 'Purchase' OR CommitmentDiscountStatus IS NOT NULL THEN CommitmentDiscountId END
      AS commitment_id,
    ChargeCategory AS charge_category,
    CASE WHEN CapacityReservationStatus = 'Unused' THEN 1 ELSE 0 END AS is_unused,
    CASE WHEN ChargeCategory = 'Usage' AND Tags LIKE :like_tag THEN Tags END AS tag_text,
    SkuPriceDetails AS details,
    x_hours_of AS hours_of,
    SUM(PricingQuantity * x_unit_hours) AS hours,
    SUM(CommitmentDiscountQuantity) AS committed_quantity,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ((ChargeCategory = 'Purchase' AND EffectiveCost <> 0)
      OR (ChargeCategory = 'Usage' AND EffectiveCost = 0 AND COALESCE(CommitmentDiscountStatus, 'Used') = 'Used'))
    AND (SkuPriceDetails LIKE '%GpuCount%' OR x_hours_of = 'gpu' OR CapacityReservationId IS NOT NULL
      OR CommitmentDiscountId IS NOT NULL)
  GROUP BY x_month, ServiceProviderName, ServiceName, RegionId, CapacityReservationId,
    CASE WHEN ChargeCategory = 'Purchase' OR CommitmentDiscountStatus IS NOT NULL THEN CommitmentDiscountId END,
    ChargeCategory, CASE WHEN CapacityReservationStatus = 'Unused' THEN 1 ELSE 0 END,
    CASE WHEN ChargeCategory = 'Usage' AND Tags LIKE :like_tag THEN Tags END, SkuPriceDetails, x_hours_of
), parsed AS (
  SELECT
    x_month, provider, service, region_id, reservation_id, commitment_id, charge_category, is_unused, hours_of, hours,
    committed_quantity, effective_cost,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :run_tag)), '') AS run_id,
    JSON_EXTRACT_STRING(details, '$."InstanceType"') AS machine,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."GpuCount"') AS DOUBLE) AS gpus,
    TRY_CAST(JSON_EXTRACT_STRING(details, '$."CoreCount"') AS DOUBLE) AS cores
  FROM texts
)
SELECT
  x_month,
  provider,
  service,
  region_id,
  machine,
  reservation_id,
  commitment_id,
  charge_category,
  run_id,
  is_unused,
  MAX(CASE WHEN hours_of = 'gpu' OR gpus > 0 THEN 1 ELSE 0 END) AS has_gpus,
  COALESCE(SUM(hours), 0) AS hours,
  COALESCE(SUM(hours * CASE
    WHEN hours_of = 'gpu' THEN 1
    WHEN hours_of = 'machine' THEN gpus
    WHEN hours_of = 'core' AND cores > 0 THEN gpus / cores
  END), 0) AS gpu_hours,
  COALESCE(SUM(committed_quantity), 0) AS committed_quantity,
  SUM(effective_cost) AS effective_cost
FROM parsed
WHERE (SELECT COUNT(*) FROM parsed WHERE charge_category = 'Purchase') > 0
GROUP BY x_month, provider, service, region_id, machine, reservation_id, commitment_id, charge_category, run_id, is_unused
