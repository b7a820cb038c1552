-- Commitments bought.
SELECT
  ServiceProviderName,
  BillingAccountId,
  CommitmentDiscountId,
  CommitmentDiscountType,
  CommitmentDiscountUnit,
  CommitmentDiscountQuantity,
  ChargeFrequency,
  MIN(ChargePeriodStart) AS first_charge,
  MAX(ChargePeriodEnd) AS last_charge,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NOT NULL
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  CommitmentDiscountId,
  CommitmentDiscountType,
  CommitmentDiscountUnit,
  CommitmentDiscountQuantity,
  ChargeFrequency
ORDER BY ServiceProviderName, BillingAccountId, CommitmentDiscountId, CommitmentDiscountType, CommitmentDiscountUnit, CommitmentDiscountQuantity, ChargeFrequency
