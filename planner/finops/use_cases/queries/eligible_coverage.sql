-- Covered over eligible cost; a covered row counts as eligible even where the provider forgot to
-- say so.
SELECT
  ServiceProviderName,
  SUM(CASE WHEN CommitmentDiscountId IS NOT NULL THEN EffectiveCost ELSE 0 END) AS covered_cost,
  SUM(EffectiveCost) AS eligible_cost,
  SUM(CASE WHEN CommitmentDiscountId IS NOT NULL THEN EffectiveCost ELSE 0 END)
    / NULLIF(SUM(EffectiveCost), 0) AS coverage_ratio
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage'
  AND COALESCE(CommitmentDiscountStatus, 'Used') = 'Used'
  AND (CommitmentDiscountId IS NOT NULL OR CommitmentProgramEligibilityDetails IS NOT NULL)
GROUP BY ServiceProviderName
ORDER BY ServiceProviderName
