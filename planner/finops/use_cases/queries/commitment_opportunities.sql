-- Covered, eligible and uncovered cost per provider, SaaS included.
SELECT
  ServiceProviderName,
  SUM(CASE WHEN CommitmentDiscountId IS NOT NULL THEN EffectiveCost ELSE 0 END) AS covered_cost,
  SUM(CASE WHEN CommitmentDiscountId IS NULL THEN BilledCost ELSE 0 END) AS uncovered_cost,
  SUM(EffectiveCost) AS eligible_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage'
  AND COALESCE(CommitmentDiscountStatus, 'Used') = 'Used'
  AND (CommitmentDiscountId IS NOT NULL OR CommitmentProgramEligibilityDetails IS NOT NULL)
GROUP BY ServiceProviderName
ORDER BY uncovered_cost DESC, ServiceProviderName
