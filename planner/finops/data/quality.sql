-- Measures of one month's data quality; weights are amounts of billed or effective cost, whichever is larger.
-- Parameters: :month, :next: first days of the month and of the next.
SELECT
  COUNT(*) AS charge_rows,
  SUM(CASE WHEN BilledCost IS NULL OR EffectiveCost IS NULL THEN 1 ELSE 0 END) AS unknown_cost_rows,
  SUM(CASE WHEN is_use THEN weight ELSE 0 END) AS use_weight,
  SUM(CASE WHEN is_use AND x_list_known THEN weight ELSE 0 END) AS list_known_weight,
  SUM(CASE WHEN is_use AND x_contracted_known THEN weight ELSE 0 END) AS contracted_known_weight,
  SUM(CASE WHEN is_use AND PricingQuantity IS NOT NULL AND (SkuId IS NOT NULL OR SkuPriceId IS NOT NULL)
    THEN weight ELSE 0 END) AS quantity_known_weight,
  SUM(CASE WHEN is_use AND BilledCost > 0 THEN 1 ELSE 0 END) AS billed_use_rows,
  SUM(CASE WHEN is_use AND BilledCost > 0 THEN BilledCost ELSE 0 END) AS billed_use,
  SUM(CASE WHEN is_use AND BilledCost > 0 AND EffectiveCost = 0 AND CommitmentDiscountId IS NULL
    THEN 1 ELSE 0 END) AS effective_zero_rows,
  SUM(CASE WHEN is_use AND BilledCost > 0 AND EffectiveCost = 0 AND CommitmentDiscountId IS NULL
    THEN BilledCost ELSE 0 END) AS effective_zero,
  SUM(ABS(EffectiveCost)) AS effective_weight,
  SUM(CASE WHEN EffectiveCost < 0 AND ChargeCategory NOT IN ('Credit', 'Adjustment', 'Tax')
    AND COALESCE(ChargeClass, '') <> 'Correction' THEN -EffectiveCost ELSE 0 END) AS negative_effective,
  SUM(CASE WHEN is_use AND Tags IS NOT NULL THEN weight ELSE 0 END) AS tags_known_weight,
  SUM(CASE WHEN CommitmentDiscountId IS NOT NULL AND is_use THEN 1 ELSE 0 END) AS commitment_rows,
  SUM(CASE WHEN CommitmentDiscountId IS NOT NULL AND is_use AND CommitmentDiscountStatus IS NULL
    THEN 1 ELSE 0 END) AS commitment_status_unknown_rows,
  SUM(CASE WHEN BilledCost IS NOT NULL AND InvoiceId IS NULL THEN 1 ELSE 0 END) AS no_invoice_rows,
  SUM(BilledCost) AS billed,
  SUM(EffectiveCost) AS effective,
  MAX(CASE WHEN is_use AND ChargePeriodEnd <= :next
    THEN DATE_DIFF('day', CAST(:month AS TIMESTAMP), ChargePeriodEnd) ELSE 0 END) AS used_up_to_days,
  MAX(CASE WHEN is_use THEN DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) ELSE 0 END) AS longest_days,
  COUNT(DISTINCT x_day) AS charged_days
FROM (
  SELECT
    *,
    ChargeCategory = 'Usage' AS is_use,
    CASE WHEN ABS(COALESCE(EffectiveCost, 0)) > ABS(COALESCE(BilledCost, 0))
      THEN ABS(COALESCE(EffectiveCost, 0)) ELSE ABS(COALESCE(BilledCost, 0)) END AS weight
  FROM focus
  WHERE x_month = :month
) AS charges
