-- Effective cost of compute by kind of commitment.
SELECT
  ServiceProviderName,
  SubAccountId,
  SubAccountName,
  ServiceName,
  CommitmentDiscountType,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ServiceCategory = 'Compute'
GROUP BY
  ServiceProviderName,
  SubAccountId,
  SubAccountName,
  ServiceName,
  CommitmentDiscountType
ORDER BY ServiceProviderName, SubAccountId, SubAccountName, ServiceName, CommitmentDiscountType
