-- Used and unused effective cost of each commitment.
SELECT
  ServiceProviderName,
  CommitmentDiscountId,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN EffectiveCost ELSE 0 END) AS used_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Unused' THEN EffectiveCost ELSE 0 END) AS unused_cost,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage' AND CommitmentDiscountId IS NOT NULL
GROUP BY
  ServiceProviderName,
  CommitmentDiscountId
ORDER BY ServiceProviderName, CommitmentDiscountId
