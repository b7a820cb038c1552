-- name: commitment_expiries
-- title: Commitments that ended in the month or end soon
-- meaning: Commitments of the ContractCommitment dataset that end within the month or the 90 days after it; their use then
--   costs the on-demand price unless they are renewed.
-- unit: days; cost is money of the whole commitment in the billing currency
-- formula: month's start < ContractCommitmentPeriodEnd < month's end + 90 days
-- source: FOCUS 1.3 dataset ContractCommitment
-- columns: ContractCommitmentId, ContractCommitmentType, ContractCommitmentDescription,
--   ContractCommitmentPeriodStart, ContractCommitmentPeriodEnd, ContractCommitmentCost
-- gate: none
-- since: 1.3
-- made_of: ContractCommitment
SELECT
  ContractCommitmentId AS commitment_id,
  MAX(ContractCommitmentDescription) AS commitment_name,
  MAX(ContractCommitmentType) AS commitment_type,
  MIN(ContractCommitmentPeriodStart) AS period_start,
  MAX(ContractCommitmentPeriodEnd) AS period_end,
  MAX(ContractCommitmentCost) AS commitment_cost
FROM ContractCommitment
WHERE ContractCommitmentPeriodEnd > :start AND ContractCommitmentPeriodEnd < :horizon
GROUP BY ContractCommitmentId
