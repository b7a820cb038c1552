-- name: allocation
-- title: Allocation coverage by mandatory tags
-- meaning: Share of the taggable cost that has all mandatory tags, and each of them, with the cost by the values of
--   the first two. An empty tag counts as missing. Values that differ only in case, dashes, underscores or blanks
--   count as one, under the spelling with the highest cost, unless :tags_apart is 'yes'; spelling_1 and spelling_2
--   are as written. In values with a digit, dashes are significant (team-1-2 is not team-12).
-- unit: ratio; costs are money in the billing currency
-- formula: effective cost with all mandatory tags / effective cost that can be tagged: all but tax, credits,
--   adjustments, purchases of commitments and unused commitments. Up to six tags; parameters that are not needed
--   repeat the first.
-- source: FOCUS use case analyze-tag-coverage; FinOps maturity model (crawl about 50 %, walk 80 %, run above 90 %)
-- columns: ChargePeriodStart, ChargeCategory, CommitmentDiscountId, CommitmentDiscountStatus, Tags, EffectiveCost,
--   ServiceProviderName
-- gate: effective_zero, tags_known
-- since: 1.0
WITH charges AS (
  SELECT
    x_month,
    ServiceProviderName AS provider,
    CASE WHEN LENGTH(Tags) <= 150 THEN Tags END AS tag_text,
    CASE WHEN LENGTH(Tags) > 150 THEN Tags END AS long_text,
    EffectiveCost AS effective_cost
  FROM focus
  WHERE COALESCE(ChargeCategory, '') NOT IN ('Tax', 'Credit', 'Adjustment')
    AND NOT (COALESCE(ChargeCategory, '') = 'Purchase' AND CommitmentDiscountId IS NOT NULL)
    AND COALESCE(CommitmentDiscountStatus, 'Used') <> 'Unused'
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
), texts AS (
  SELECT
    x_month,
    provider,
    tag_text,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_1)), '') AS long_1,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_2)), '') AS long_2,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_3)), '') AS long_3,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_4)), '') AS long_4,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_5)), '') AS long_5,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_6)), '') AS long_6,
    SUM(effective_cost) AS effective_cost
  FROM charges
  GROUP BY
    x_month,
    provider,
    tag_text,
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_1)), ''),
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_2)), ''),
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_3)), ''),
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_4)), ''),
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_5)), ''),
    NULLIF(TRIM(JSON_EXTRACT_STRING(long_text, :tag_6)), '')
), parsed AS (
  SELECT
    x_month,
    provider,
    effective_cost,
    COALESCE(long_1, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_1)), '')) AS value_1,
    COALESCE(long_2, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_2)), '')) AS value_2,
    COALESCE(long_3, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_3)), '')) AS value_3,
    COALESCE(long_4, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_4)), '')) AS value_4,
    COALESCE(long_5, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_5)), '')) AS value_5,
    COALESCE(long_6, NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_6)), '')) AS value_6
  FROM texts
), tag_values AS (
  SELECT 1 AS tag, value_1 AS spelling, effective_cost FROM parsed WHERE value_1 IS NOT NULL
  UNION ALL
  SELECT 2 AS tag, value_2 AS spelling, effective_cost FROM parsed WHERE value_2 IS NOT NULL
), spellings AS (
  SELECT tag, spelling, COALESCE(SUM(effective_cost), 0) AS cost,
    REPLACE(REPLACE(REPLACE(REPLACE(LOWER(spelling), '_', '-'), ' ', '-'), '--', '-'), '--', '-') AS dashed
  FROM tag_values
  GROUP BY tag, spelling
), lettered AS (
  SELECT tag, spelling, cost,
    CASE
      WHEN :tags_apart = 'yes' THEN spelling
      WHEN dashed LIKE '%0%' OR dashed LIKE '%1%' OR dashed LIKE '%2%' OR dashed LIKE '%3%' OR dashed LIKE '%4%'
      OR dashed LIKE '%5%' OR dashed LIKE '%6%' OR dashed LIKE '%7%' OR dashed LIKE '%8%' OR dashed LIKE '%9%' THEN dashed
      ELSE COALESCE(NULLIF(REPLACE(dashed, '-', ''), ''), spelling)
    END AS letters
  FROM spellings
), named AS (
  SELECT tag, spelling,
    FIRST_VALUE(spelling) OVER (PARTITION BY tag, letters ORDER BY cost DESC, spelling) AS name
  FROM lettered
)
SELECT
  parsed.x_month,
  parsed.provider,
  first_named.name AS value_1,
  second_named.name AS value_2,
  parsed.value_1 AS spelling_1,
  parsed.value_2 AS spelling_2,
  SUM(parsed.effective_cost) AS taggable_cost,
  SUM(CASE WHEN parsed.value_1 IS NOT NULL AND parsed.value_2 IS NOT NULL AND parsed.value_3 IS NOT NULL AND parsed.value_4 IS NOT NULL
    AND parsed.value_5 IS NOT NULL AND parsed.value_6 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_cost,
  SUM(CASE WHEN parsed.value_1 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_1_cost,
  SUM(CASE WHEN parsed.value_2 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_2_cost,
  SUM(CASE WHEN parsed.value_3 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_3_cost,
  SUM(CASE WHEN parsed.value_4 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_4_cost,
  SUM(CASE WHEN parsed.value_5 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_5_cost,
  SUM(CASE WHEN parsed.value_6 IS NOT NULL THEN parsed.effective_cost ELSE 0 END) AS tagged_6_cost
FROM parsed
LEFT JOIN named AS first_named ON first_named.tag = 1 AND first_named.spelling = parsed.value_1
LEFT JOIN named AS second_named ON second_named.tag = 2 AND second_named.spelling = parsed.value_2
GROUP BY parsed.x_month, parsed.provider, first_named.name, second_named.name, parsed.value_1, parsed.value_2
