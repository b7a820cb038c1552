-- name: commitment_terms
-- title: Ends of commitments known from their purchases
-- meaning: Where there is no ContractCommitment dataset, the end of a commitment that was paid at once is the end of the
--   charge period of its purchase. Monthly paid commitments do not tell their end.
-- unit: days; cost is money as billed in the billing currency
-- formula: latest ChargePeriodEnd of one-time purchases per CommitmentDiscountId, within 90 days after the month's end
-- source: FOCUS ChargePeriodEnd of purchases; worked examples of the specification; FINOPS.md section 2
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
HAVING MAX(ChargePeriodEnd) >= :end AND MAX(ChargePeriodEnd) < :horizon
