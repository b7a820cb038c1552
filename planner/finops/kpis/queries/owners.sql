-- name: owners
-- title: Owners of services and commitments
-- meaning: Per service and commitment, the team (first mandatory tag) with the largest part of the month's use,
--   otherwise the account: the addressee of an action.
-- unit: money in the billing currency
-- formula: sum of EffectiveCost by service or commitment and by the value of the first tag, else by account; the largest
-- source: FinOps Framework, Allocation; FOCUS columns Tags, SubAccountName, SubAccountId, BillingAccountId
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, CommitmentDiscountId, Tags, SubAccountName,
--   SubAccountId, BillingAccountId, EffectiveCost, ChargeCategory
-- gate: effective_zero
-- since: 1.0
WITH parsed AS (
  SELECT
    ServiceProviderName AS provider,
    CASE WHEN CommitmentDiscountId IS NULL THEN ServiceName END AS service,
    CommitmentDiscountId AS commitment_id,
    COALESCE(SubAccountName, SubAccountId, BillingAccountId) AS account,
    NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '') AS team,
    EffectiveCost AS cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory IN ('Usage', 'Purchase')
), summed AS (
  SELECT provider, service, commitment_id, COALESCE(team, account) AS owner,
    CASE WHEN team IS NULL THEN 1 ELSE 0 END AS is_account, SUM(cost) AS cost
  FROM parsed
  GROUP BY provider, service, commitment_id, COALESCE(team, account), CASE WHEN team IS NULL THEN 1 ELSE 0 END
), ranked AS (
  SELECT provider, service, commitment_id, owner,
    ROW_NUMBER() OVER (PARTITION BY provider, service, commitment_id ORDER BY is_account, cost DESC, owner) AS place
  FROM summed
  WHERE owner IS NOT NULL
)
SELECT provider, service, commitment_id, owner
FROM ranked
WHERE place = 1
