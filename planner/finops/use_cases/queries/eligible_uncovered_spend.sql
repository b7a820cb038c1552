-- Uncovered spend each program could take. One dollar stands under each program it is eligible for:
-- do not add programs up.
WITH eligible AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    CommitmentProgramEligibilityDetails,
    SUM(BilledCost) AS cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage' AND CommitmentDiscountId IS NULL AND CommitmentProgramEligibilityDetails IS NOT NULL
  GROUP BY
    ServiceProviderName,
    ServiceName,
    CommitmentProgramEligibilityDetails
), programs AS (
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[0].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[1].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[2].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[3].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[4].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[5].ProgramType') AS program
  FROM eligible
)
SELECT
  ServiceProviderName,
  ServiceName,
  program,
  SUM(cost) AS uncovered_cost
FROM programs
WHERE program IS NOT NULL
GROUP BY
  ServiceProviderName,
  ServiceName,
  program
ORDER BY ServiceProviderName, ServiceName, program
