-- What contract commitments were applied to.
WITH applied AS (
  SELECT
    ServiceProviderName,
    ChargeCategory,
    ContractApplied,
    COUNT(*) AS charges
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ContractApplied IS NOT NULL
  GROUP BY
    ServiceProviderName,
    ChargeCategory,
    ContractApplied
), elements AS (
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[0].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[0].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[0].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
  UNION ALL
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[1].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[1].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[1].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
  UNION ALL
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[2].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[2].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[2].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
  UNION ALL
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[3].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[3].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[3].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
  UNION ALL
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[4].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[4].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[4].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
  UNION ALL
  SELECT ServiceProviderName, ChargeCategory, charges,
    JSON_EXTRACT_STRING(ContractApplied, '$.Elements[5].ContractCommitmentId') AS commitment_id,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[5].ContractCommitmentAppliedCost') AS DOUBLE) AS applied_cost,
    TRY_CAST(JSON_EXTRACT_STRING(ContractApplied, '$.Elements[5].ContractCommitmentAppliedQuantity') AS DOUBLE) AS applied_quantity
  FROM applied
), summed AS (
  SELECT
    ServiceProviderName,
    ChargeCategory,
    commitment_id,
    SUM(charges) AS charges,
    SUM(charges * applied_cost) AS applied_cost,
    SUM(charges * applied_quantity) AS applied_quantity
  FROM elements
  WHERE commitment_id IS NOT NULL
  GROUP BY
    ServiceProviderName,
    ChargeCategory,
    commitment_id
)
SELECT
  ServiceProviderName,
  ChargeCategory,
  commitment_id,
  charges,
  applied_cost,
  applied_quantity
FROM summed
ORDER BY ServiceProviderName, ChargeCategory, commitment_id
