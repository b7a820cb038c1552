-- Spend that a reservation program could take, by state. One dollar stands under each program it is
-- eligible for: do not add programs up.
WITH eligible AS (
  SELECT
    ServiceProviderName,
    ServiceName,
    CapacityReservationStatus,
    CommitmentProgramEligibilityDetails,
    SUM(BilledCost) AS cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage' AND CommitmentProgramEligibilityDetails IS NOT NULL
  GROUP BY
    ServiceProviderName,
    ServiceName,
    CapacityReservationStatus,
    CommitmentProgramEligibilityDetails
), programs AS (
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[0].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[1].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[2].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[3].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[4].ProgramType') AS program
  FROM eligible
  UNION ALL
  SELECT ServiceProviderName, ServiceName, CapacityReservationStatus, cost,
    JSON_EXTRACT_STRING(CommitmentProgramEligibilityDetails, '$.CommitmentPrograms[5].ProgramType') AS program
  FROM eligible
)
SELECT
  ServiceProviderName,
  ServiceName,
  CapacityReservationStatus,
  program,
  SUM(cost) AS billed_cost
FROM programs
WHERE program IS NOT NULL
GROUP BY
  ServiceProviderName,
  ServiceName,
  CapacityReservationStatus,
  program
ORDER BY ServiceProviderName, ServiceName, CapacityReservationStatus, program
