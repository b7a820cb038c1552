-- name: commitment_coverage
-- title: Commitment coverage
-- meaning: Share of the use eligible for commitments that is covered. FOCUS 1.4 states which charges are eligible;
--   before it, compute use at standard or committed price counts, and the figure is an estimate.
-- unit: ratio; costs are money at list price in the billing currency
-- formula: list cost of used commitments / (the same + list cost of eligible use without commitment), without unused
--   commitments and spot. Where no list price is known (Microsoft writes 0 under reservations), the contracted one is
--   used; covered use with neither is reported separately.
-- source: FOCUS 1.4 use case calculate-commitment-discount-coverage-rate-with-eligibility-adjusted-denominator; list
--   price as in IBM Cloudability
-- columns: ChargePeriodStart, ServiceProviderName, ServiceCategory, ChargeCategory, PricingCategory,
--   CommitmentDiscountStatus, CommitmentDiscountId, CommitmentProgramEligibilityDetails, ListCost,
--   ContractedCost, EffectiveCost
-- gate: commitment_status, effective_zero, effective_zero_rows
-- since: 1.0
SELECT
  x_month,
  provider,
  SUM(CASE WHEN is_used THEN price_cost ELSE 0 END) AS covered_list_cost,
  SUM(CASE WHEN is_used THEN EffectiveCost ELSE 0 END) AS covered_effective_cost,
  SUM(CASE WHEN is_used AND price_cost IS NULL THEN EffectiveCost ELSE 0 END) AS covered_unpriced_effective_cost,
  SUM(CASE WHEN is_open AND CommitmentProgramEligibilityDetails IS NOT NULL
    AND COALESCE(PricingCategory, 'Standard') <> 'Dynamic' THEN price_cost ELSE 0 END) AS eligible_uncovered_list_cost,
  SUM(CASE WHEN is_open AND CommitmentProgramEligibilityDetails IS NOT NULL
    AND COALESCE(PricingCategory, 'Standard') <> 'Dynamic' THEN EffectiveCost ELSE 0 END)
    AS eligible_uncovered_effective_cost,
  SUM(CASE WHEN is_open AND ServiceCategory = 'Compute'
    AND COALESCE(PricingCategory, 'Standard') = 'Standard' THEN price_cost ELSE 0 END) AS compute_uncovered_list_cost,
  CAST(SUM(CASE WHEN CommitmentProgramEligibilityDetails IS NOT NULL THEN x_rows ELSE 0 END) AS BIGINT) AS eligible_rows,
  SUM(CASE WHEN x_focus_version = '1.4' THEN x_rows ELSE 0 END) AS rows_of_1_4
FROM (
  SELECT
    x_month,
    x_focus_version,
    x_rows,
    ServiceProviderName AS provider,
    ServiceCategory,
    PricingCategory,
    CommitmentProgramEligibilityDetails,
    EffectiveCost,
    COALESCE(CommitmentDiscountStatus = 'Used', FALSE) AS is_used,
    CommitmentDiscountId IS NULL AND CommitmentDiscountStatus IS NULL AS is_open,
    CASE WHEN x_list_known THEN ListCost WHEN x_contracted_known THEN ContractedCost END AS price_cost
  FROM focus
  WHERE ChargeCategory = 'Usage'
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
) AS priced
GROUP BY x_month, provider
