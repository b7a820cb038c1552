-- name: allocation
-- title: Allocation coverage by mandatory tags
-- meaning: How much of the cost that can carry tags carries all mandatory ones, each one alone, and whose it is by the
--   first two of them. A tag with an empty value is missing. Raw tag texts are summed first and read once each.
-- unit: ratio; costs are money in the billing currency
-- formula: effective cost with all mandatory tags / effective cost that can be tagged: all but tax, credits, purchases
--   of commitments and unused commitments. Up to six tags; parameters that are not needed repeat the first.
-- source: FOCUS use case analyze-tag-coverage; FinOps maturity model (crawl about 50 %, walk 80 %, run above 90 %);
--   FINOPS.md section 2
-- columns: ChargePeriodStart, ChargeCategory, CommitmentDiscountId, CommitmentDiscountStatus, Tags, EffectiveCost,
--   ServiceProviderName
-- gate: effective_zero, tags_known
-- since: 1.0
WITH texts AS (
  SELECT x_month, ServiceProviderName AS provider, Tags AS tag_text, SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargeCategory NOT IN ('Tax', 'Credit')
    AND NOT (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NOT NULL)
    AND COALESCE(CommitmentDiscountStatus, 'Used') <> 'Unused'
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
  GROUP BY x_month, ServiceProviderName, Tags
), parsed AS (
  SELECT
    x_month,
    provider,
    effective_cost,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_1)), '') AS value_1,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_2)), '') AS value_2,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_3)), '') AS value_3,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_4)), '') AS value_4,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_5)), '') AS value_5,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_6)), '') AS value_6
  FROM texts
)
SELECT
  x_month,
  provider,
  value_1,
  value_2,
  SUM(effective_cost) AS taggable_cost,
  SUM(CASE WHEN value_1 IS NOT NULL AND value_2 IS NOT NULL AND value_3 IS NOT NULL AND value_4 IS NOT NULL
    AND value_5 IS NOT NULL AND value_6 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_cost,
  SUM(CASE WHEN value_1 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_1_cost,
  SUM(CASE WHEN value_2 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_2_cost,
  SUM(CASE WHEN value_3 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_3_cost,
  SUM(CASE WHEN value_4 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_4_cost,
  SUM(CASE WHEN value_5 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_5_cost,
  SUM(CASE WHEN value_6 IS NOT NULL THEN effective_cost ELSE 0 END) AS tagged_6_cost
FROM parsed
GROUP BY x_month, provider, value_1, value_2
