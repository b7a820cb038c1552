-- Recurring payments of commitments.
SELECT
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  CommitmentDiscountId,
  CommitmentDiscountName,
  CommitmentDiscountType,
  ChargeFrequency,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeFrequency = 'Recurring' AND CommitmentDiscountId IS NOT NULL
GROUP BY
  CAST(BillingPeriodStart AS DATE),
  CommitmentDiscountId,
  CommitmentDiscountName,
  CommitmentDiscountType,
  ChargeFrequency
ORDER BY billing_month, CommitmentDiscountId, CommitmentDiscountName, CommitmentDiscountType, ChargeFrequency
