-- name: uncovered_use
-- title: Steady use without a commitment
-- meaning: Cost of each SKU in a region at standard price that is exceeded on nine days of ten: the part that a
--   commitment could cover with little waste.
-- unit: money per month in the billing currency
-- formula: per SKU and region with charges on 14 days or more, the 10 % quantile of daily effective costs (days
--   without a charge are 0) x the days of the month, or of those so far; usage at standard price that is eligible
--   (FOCUS 1.4), and compute of a provider whose charges do not say; no unused capacity reservations; steady_gpu_cost:
--   the part of SKUs with GPUs
-- source: FOCUS 1.4 use case identify-eligible-uncovered-spend-by-program-type
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ServiceCategory, SkuId, RegionId, ChargeCategory,
--   PricingCategory, PricingUnit, CommitmentDiscountId, CommitmentProgramEligibilityDetails, SkuPriceDetails,
--   CapacityReservationStatus, EffectiveCost
-- gate: effective_zero
-- since: 1.0
WITH stating AS (
  SELECT COALESCE(ServiceProviderName, '') AS stating_provider
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory = 'Usage'
    AND CommitmentProgramEligibilityDetails IS NOT NULL
  GROUP BY COALESCE(ServiceProviderName, '')
), daily AS (
  SELECT
    ServiceProviderName AS provider,
    ServiceName AS service,
    SkuId AS sku_id,
    RegionId AS region_id,
    x_day,
    MAX(CASE
      WHEN x_hours_of = 'gpu' THEN 1
      WHEN SkuPriceDetails LIKE '%GpuCount%'
        AND TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."GpuCount"') AS DOUBLE) > 0 THEN 1
      ELSE 0
    END) AS is_gpu,
    COALESCE(SUM(EffectiveCost), 0) AS effective_cost
  FROM focus
  LEFT JOIN stating ON COALESCE(ServiceProviderName, '') = stating_provider
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory = 'Usage'
    AND COALESCE(PricingCategory, 'Standard') = 'Standard'
    AND CommitmentDiscountId IS NULL
    AND COALESCE(CapacityReservationStatus, 'Used') <> 'Unused'
    AND (CommitmentProgramEligibilityDetails IS NOT NULL OR (stating_provider IS NULL AND ServiceCategory = 'Compute'))
  GROUP BY ServiceProviderName, ServiceName, SkuId, RegionId, x_day
), ranked AS (
  SELECT
    provider,
    service,
    sku_id,
    region_id,
    is_gpu,
    effective_cost,
    COUNT(*) OVER (PARTITION BY provider, service, sku_id, region_id) AS charged_days,
    ROW_NUMBER() OVER (PARTITION BY provider, service, sku_id, region_id ORDER BY effective_cost) - 1 AS charged_rank,
    DATE_DIFF('day', :start, :end) AS month_days
  FROM daily
), placed AS (
  SELECT
    provider,
    service,
    sku_id,
    region_id,
    effective_cost,
    month_days,
    is_gpu,
    ABS(
      charged_rank
      + CASE WHEN effective_cost < 0 THEN 0 ELSE month_days - charged_days END
      - 0.1 * (month_days - 1)
    ) AS ranks_away
  FROM ranked
  WHERE charged_days >= 14
)
SELECT
  provider,
  service,
  sku_id,
  region_id,
  SUM(CASE WHEN ranks_away < 1 THEN effective_cost * (1 - ranks_away) * month_days ELSE 0 END) AS steady_cost,
  SUM(CASE WHEN ranks_away < 1 AND is_gpu = 1 THEN effective_cost * (1 - ranks_away) * month_days ELSE 0 END)
    AS steady_gpu_cost
FROM placed
GROUP BY provider, service, sku_id, region_id
