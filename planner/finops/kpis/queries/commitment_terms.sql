-- name: commitment_terms
-- title: Ends of commitments, from their purchases
-- meaning: Without a ContractCommitment dataset, a commitment that was paid at once ends with the charge period of
--   its purchase. Monthly payments do not tell the end.
-- unit: days; cost is money as billed in the billing currency
-- formula: latest ChargePeriodEnd of one-time purchases per CommitmentDiscountId, within the month or the 90
--   days after it
-- source: FOCUS ChargePeriodEnd of purchases; worked examples of the specification
-- columns: ChargeCategory, ChargeFrequency, CommitmentDiscountId, CommitmentDiscountName, CommitmentDiscountType,
--   ChargePeriodStart, ChargePeriodEnd, BilledCost
-- gate: none
-- since: 1.0
-- made_of: CommitmentDiscountId IS NOT NULL AND ChargeCategory = 'Purchase' AND ChargeFrequency = 'One-Time'
SELECT
  CommitmentDiscountId AS commitment_id,
  MAX(CommitmentDiscountName) AS commitment_name,
  MAX(CommitmentDiscountType) AS commitment_type,
  MIN(ChargePeriodStart) AS period_start,
  MAX(ChargePeriodEnd) AS period_end,
  SUM(BilledCost) AS commitment_cost
FROM focus
WHERE ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NOT NULL AND ChargeFrequency = 'One-Time'
GROUP BY CommitmentDiscountId
HAVING MAX(ChargePeriodEnd) > :start AND MAX(ChargePeriodEnd) < :horizon
