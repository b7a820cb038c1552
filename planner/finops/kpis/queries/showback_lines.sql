-- name: showback_lines
-- title: Cost by everything that showback rules can match
-- meaning: All charges of the two months, with tax and credits, by everything that showback rules can match:
--   provider, service, account, region, kind and tags. Charges that the provider has split (FOCUS 1.3) carry the tags
--   they were split by.
-- unit: money in the billing currency
-- formula: sums of EffectiveCost and BilledCost; tags are AllocatedTags where there are any, else Tags
-- source: FinOps Framework, Allocation; FOCUS 1.3 AllocatedTags and AllocatedMethodId
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ServiceCategory, SubAccountId, SubAccountName,
--   BillingAccountId, RegionId, ChargeCategory, CommitmentDiscountId, CommitmentDiscountStatus, Tags, AllocatedTags,
--   AllocatedMethodId, EffectiveCost, BilledCost
-- gate: effective_zero
-- since: 1.0
SELECT
  x_month,
  ServiceProviderName AS provider,
  ServiceName AS service,
  ServiceCategory AS category,
  SubAccountId AS sub_account_id,
  SubAccountName AS sub_account_name,
  BillingAccountId AS billing_account_id,
  RegionId AS region,
  ChargeCategory AS charge,
  CASE WHEN CommitmentDiscountStatus IN ('Used', 'Unused') THEN CommitmentDiscountStatus END AS commitment_status,
  CommitmentDiscountId AS commitment_id,
  CASE WHEN AllocatedMethodId IS NULL AND AllocatedTags IS NULL THEN 0 ELSE 1 END AS is_allocated,
  COALESCE(AllocatedTags, Tags) AS tag_text,
  SUM(EffectiveCost) AS effective_cost,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE (ChargePeriodStart >= :start AND ChargePeriodStart < :end)
  OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end)
GROUP BY x_month, ServiceProviderName, ServiceName, ServiceCategory, SubAccountId, SubAccountName, BillingAccountId,
  RegionId, ChargeCategory,
  CASE WHEN CommitmentDiscountStatus IN ('Used', 'Unused') THEN CommitmentDiscountStatus END,
  CommitmentDiscountId,
  CASE WHEN AllocatedMethodId IS NULL AND AllocatedTags IS NULL THEN 0 ELSE 1 END,
  COALESCE(AllocatedTags, Tags)
