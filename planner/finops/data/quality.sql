-- Measures of the data quality of one or two months; weights are amounts of billed or effective cost, whichever is
-- larger. Rows are first summed by what is true of them, which is cheaper than asking each row twenty questions.
-- Parameters: :start, :end: first days of the later month and of the month after it; :before_start, :before_end: those of
-- the earlier month, which is the same where one is asked for alone.
WITH charges AS (
  SELECT
    x_day,
    ChargeCategory = 'Usage' AS is_use,
    COALESCE(ChargeCategory IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'), FALSE) AS is_told,
    ChargeCategory IN ('Credit', 'Adjustment', 'Tax') OR COALESCE(ChargeClass, '') = 'Correction' AS may_be_negative,
    BilledCost IS NULL OR EffectiveCost IS NULL AS is_unknown,
    x_list_known,
    x_contracted_known,
    x_list_known AND x_contracted_known AND COALESCE(ContractedCost > 1.001 * ListCost AND ListCost > 0, FALSE)
      AS is_above_list,
    -- of what nobody used of a commitment there may be no quantity and no SKU
    PricingQuantity IS NOT NULL OR COALESCE(CommitmentDiscountStatus, '') = 'Unused' AS is_measured,
    (PricingQuantity IS NOT NULL AND (SkuId IS NOT NULL OR SkuPriceId IS NOT NULL))
      OR COALESCE(CommitmentDiscountStatus, '') = 'Unused' AS has_quantity,
    Tags IS NOT NULL AS has_tags,
    CommitmentDiscountId IS NOT NULL AS is_committed,
    CommitmentDiscountStatus IS NULL AS no_status,
    COALESCE(BilledCost > 0, FALSE) AS is_billed,
    COALESCE(EffectiveCost = 0, FALSE) AS is_zero,
    COALESCE(EffectiveCost < 0, FALSE) AS is_negative,
    COALESCE(DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) <= 1, TRUE) AS is_short,
    CASE WHEN SkuPriceDetails LIKE '%GpuCount%'
      THEN COALESCE(TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."GpuCount"') AS DOUBLE) > 0, FALSE)
      ELSE FALSE END AS is_gpu,
    CASE WHEN SkuPriceDetails LIKE '%GpuCount%' THEN COALESCE(x_hours_of IN ('machine', 'gpu')
      OR (x_hours_of = 'core' AND TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."CoreCount"') AS DOUBLE) > 0), FALSE)
      ELSE FALSE END AS is_hourly,
    COUNT(*) AS n,
    SUM(BilledCost) AS billed,
    SUM(EffectiveCost) AS effective,
    SUM(CASE WHEN ABS(COALESCE(EffectiveCost, 0)) > ABS(COALESCE(BilledCost, 0))
      THEN ABS(COALESCE(EffectiveCost, 0)) ELSE ABS(COALESCE(BilledCost, 0)) END) AS weight,
    MAX(CASE WHEN ChargePeriodEnd <= CASE WHEN ChargePeriodStart < CAST(:start AS TIMESTAMP)
        THEN CAST(:before_end AS TIMESTAMP) ELSE CAST(:end AS TIMESTAMP) END
      THEN ChargePeriodEnd END) AS up_to
  FROM focus
  WHERE (ChargePeriodStart >= CAST(:before_start AS TIMESTAMP) AND ChargePeriodStart < CAST(:before_end AS TIMESTAMP))
    OR (ChargePeriodStart >= CAST(:start AS TIMESTAMP) AND ChargePeriodStart < CAST(:end AS TIMESTAMP))
  GROUP BY
    x_day,
    ChargeCategory = 'Usage',
    COALESCE(ChargeCategory IN ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'), FALSE),
    ChargeCategory IN ('Credit', 'Adjustment', 'Tax') OR COALESCE(ChargeClass, '') = 'Correction',
    BilledCost IS NULL OR EffectiveCost IS NULL,
    x_list_known,
    x_contracted_known,
    x_list_known AND x_contracted_known AND COALESCE(ContractedCost > 1.001 * ListCost AND ListCost > 0, FALSE),
    PricingQuantity IS NOT NULL OR COALESCE(CommitmentDiscountStatus, '') = 'Unused',
    (PricingQuantity IS NOT NULL AND (SkuId IS NOT NULL OR SkuPriceId IS NOT NULL))
      OR COALESCE(CommitmentDiscountStatus, '') = 'Unused',
    Tags IS NOT NULL,
    CommitmentDiscountId IS NOT NULL,
    CommitmentDiscountStatus IS NULL,
    COALESCE(BilledCost > 0, FALSE),
    COALESCE(EffectiveCost = 0, FALSE),
    COALESCE(EffectiveCost < 0, FALSE),
    COALESCE(DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) <= 1, TRUE),
    CASE WHEN SkuPriceDetails LIKE '%GpuCount%'
      THEN COALESCE(TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."GpuCount"') AS DOUBLE) > 0, FALSE)
      ELSE FALSE END,
    CASE WHEN SkuPriceDetails LIKE '%GpuCount%' THEN COALESCE(x_hours_of IN ('machine', 'gpu')
      OR (x_hours_of = 'core' AND TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."CoreCount"') AS DOUBLE) > 0), FALSE)
      ELSE FALSE END
)
SELECT
  CAST(DATE_TRUNC('month', x_day) AS DATE) AS x_month,
  SUM(n) AS charge_rows,
  SUM(CASE WHEN is_unknown THEN n ELSE 0 END) AS unknown_cost_rows,
  SUM(CASE WHEN is_told THEN 0 ELSE n END) AS no_category_rows,
  SUM(CASE WHEN is_told THEN 0 ELSE weight END) AS no_category_weight,
  SUM(weight) AS weight,
  SUM(CASE WHEN is_use THEN weight ELSE 0 END) AS use_weight,
  SUM(CASE WHEN is_use AND x_list_known THEN weight ELSE 0 END) AS list_known_weight,
  SUM(CASE WHEN is_use AND x_contracted_known THEN weight ELSE 0 END) AS contracted_known_weight,
  SUM(CASE WHEN is_use AND is_above_list THEN weight ELSE 0 END) AS contracted_above_list_weight,
  SUM(CASE WHEN is_use AND is_measured THEN weight ELSE 0 END) AS quantity_priced_weight,
  SUM(CASE WHEN is_use AND has_quantity THEN weight ELSE 0 END) AS quantity_known_weight,
  SUM(CASE WHEN is_use AND is_billed THEN n ELSE 0 END) AS billed_use_rows,
  SUM(CASE WHEN is_use AND is_billed THEN billed ELSE 0 END) AS billed_use,
  SUM(CASE WHEN is_use AND is_billed AND is_zero AND NOT is_committed THEN n ELSE 0 END) AS effective_zero_rows,
  SUM(CASE WHEN is_use AND is_billed AND is_zero AND NOT is_committed THEN billed ELSE 0 END) AS effective_zero,
  SUM(ABS(effective)) AS effective_weight,
  SUM(CASE WHEN is_negative AND NOT may_be_negative THEN -effective ELSE 0 END) AS negative_effective,
  SUM(CASE WHEN is_use AND is_gpu THEN weight ELSE 0 END) AS gpu_weight,
  SUM(CASE WHEN is_use AND is_gpu AND is_hourly THEN weight ELSE 0 END) AS gpu_unit_known_weight,
  SUM(CASE WHEN is_use AND has_tags THEN weight ELSE 0 END) AS tags_known_weight,
  SUM(CASE WHEN is_committed AND is_use THEN n ELSE 0 END) AS commitment_rows,
  SUM(CASE WHEN is_committed AND is_use AND no_status THEN n ELSE 0 END) AS commitment_status_unknown_rows,
  SUM(billed) AS billed,
  MAX(CASE WHEN is_use AND NOT is_short THEN DATE_DIFF('day', CAST(DATE_TRUNC('month', x_day) AS TIMESTAMP), up_to) END)
    AS used_up_to_days,
  MAX(CASE WHEN NOT may_be_negative AND NOT is_short
    THEN DATE_DIFF('day', CAST(DATE_TRUNC('month', x_day) AS TIMESTAMP), up_to) END) AS charged_up_to_days,
  SUM(CASE WHEN is_use THEN n ELSE 0 END) AS use_rows,
  SUM(CASE WHEN is_use AND is_short THEN n ELSE 0 END) AS short_use_rows,
  COUNT(DISTINCT CASE WHEN is_use AND is_short THEN x_day END) AS used_days,
  COUNT(DISTINCT CASE WHEN NOT may_be_negative AND is_short THEN x_day END) AS short_days,
  COUNT(DISTINCT x_day) AS charged_days
FROM charges
GROUP BY CAST(DATE_TRUNC('month', x_day) AS DATE)
