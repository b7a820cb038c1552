-- name: contract_drawdown
-- title: Spend commitments drawn down
-- meaning: Contracts to spend an amount in a period (EDP, MACC and the like): the amount drawn by the month's end, as
--   far as the bill covers.
-- unit: money in the billing currency
-- formula: ContractCommitmentAppliedCost of the elements of ContractApplied (the first six) by commitment, until the
--   month's end and in the month
-- source: FOCUS 1.3 dataset ContractCommitment and column ContractApplied; use case contract burn-down
-- columns: ChargePeriodStart, ContractApplied, ContractCommitmentId, ContractCommitmentCategory,
--   ContractCommitmentDescription, ContractCommitmentType, ContractCommitmentPeriodStart, ContractCommitmentPeriodEnd,
--   ContractCommitmentCost
-- gate: none
-- since: 1.3
-- made_of: ContractCommitment
WITH texts AS (
  SELECT
    ContractApplied AS applied,
    CASE WHEN ChargePeriodStart >= :start THEN 1 ELSE 0 END AS is_month,
    COUNT(*) AS charges,
    MIN(ChargePeriodStart) AS first_charge
  FROM focus
  WHERE ContractApplied IS NOT NULL AND ChargePeriodStart < :end
  GROUP BY ContractApplied, CASE WHEN ChargePeriodStart >= :start THEN 1 ELSE 0 END
), elements AS (
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[0].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[0].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
  UNION ALL
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[1].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[1].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
  UNION ALL
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[2].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[2].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
  UNION ALL
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[3].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[3].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
  UNION ALL
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[4].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[4].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
  UNION ALL
  SELECT is_month, charges, first_charge,
    JSON_EXTRACT_STRING(applied, '$.Elements[5].ContractCommitmentId') AS applied_id,
    TRY_CAST(JSON_EXTRACT_STRING(applied, '$.Elements[5].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost
  FROM texts
), summed AS (
  SELECT
    applied_id,
    SUM(charges * applied_cost) AS applied_cost,
    SUM(CASE WHEN is_month = 1 THEN charges * applied_cost ELSE 0 END) AS month_cost,
    MIN(first_charge) AS first_charge
  FROM elements
  WHERE applied_id IS NOT NULL
  GROUP BY applied_id
), contracts AS (
  SELECT
    ContractCommitmentId AS commitment_id,
    MAX(ContractCommitmentCategory) AS category,
    MAX(ContractCommitmentDescription) AS commitment_name,
    MAX(ContractCommitmentType) AS commitment_type,
    MIN(ContractCommitmentPeriodStart) AS period_start,
    MAX(ContractCommitmentPeriodEnd) AS period_end,
    MAX(ContractCommitmentCost) AS commitment_cost
  FROM ContractCommitment
  WHERE ContractCommitmentPeriodEnd >= :end
  GROUP BY ContractCommitmentId
)
SELECT
  commitment_id,
  category,
  commitment_name,
  commitment_type,
  period_start,
  period_end,
  commitment_cost,
  applied_cost,
  month_cost,
  first_charge
FROM contracts
LEFT JOIN summed ON contracts.commitment_id = summed.applied_id
WHERE period_start < :end
