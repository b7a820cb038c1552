-- name: spend_lines
-- title: Spend by month, provider, account, region, service, product, team and kind of charge
-- meaning: The flat sheet of a workbook, for pivot tables: spend of at most 13 months, without tax. The 50,000
--   largest lines are separate; the rest are one line per month, provider and kind of charge.
-- unit: money in the billing currency
-- formula: sums of EffectiveCost and BilledCost; product is SkuMeter, else ChargeDescription, else SkuId; team is the
--   first mandatory tag
-- source: FOCUS columns
-- columns: ChargePeriodStart, ServiceProviderName, SubAccountName, SubAccountId, BillingAccountId, RegionId, ServiceName,
--   SkuMeter, ChargeDescription, SkuId, Tags, ChargeCategory, EffectiveCost, BilledCost
-- gate: effective_zero
-- since: 1.0
WITH texts AS (
  SELECT
    x_month,
    ServiceProviderName AS provider,
    COALESCE(SubAccountName, SubAccountId, BillingAccountId) AS account,
    RegionId AS region,
    ServiceName AS service,
    COALESCE(NULLIF(SkuMeter, ''), NULLIF(ChargeDescription, ''), SkuId) AS product,
    ChargeCategory AS charge_category,
    Tags AS tag_text,
    SUM(EffectiveCost) AS effective_cost,
    SUM(BilledCost) AS billed_cost
  FROM focus
  WHERE ChargePeriodStart >= :first AND ChargePeriodStart < :end
    AND COALESCE(ChargeCategory, '') <> 'Tax'
  GROUP BY
    x_month,
    ServiceProviderName,
    COALESCE(SubAccountName, SubAccountId, BillingAccountId),
    RegionId,
    ServiceName,
    COALESCE(NULLIF(SkuMeter, ''), NULLIF(ChargeDescription, ''), SkuId),
    ChargeCategory,
    Tags
), parsed AS (
  SELECT x_month, provider, account, region, service, product, charge_category, effective_cost, billed_cost,
    NULLIF(TRIM(JSON_EXTRACT_STRING(tag_text, :tag_1)), '') AS team
  FROM texts
), summed AS (
  SELECT x_month, provider, account, region, service, product, team, charge_category,
    SUM(effective_cost) AS effective_cost, SUM(billed_cost) AS billed_cost
  FROM parsed
  GROUP BY x_month, provider, account, region, service, product, team, charge_category
), ranked AS (
  SELECT x_month, provider, account, region, service, product, team, charge_category, effective_cost, billed_cost,
    ROW_NUMBER() OVER (
      ORDER BY ABS(effective_cost) DESC, x_month, provider, account, region, service, product, team, charge_category
    ) AS place
  FROM summed
)
SELECT
  x_month,
  provider,
  CASE WHEN place <= 50000 THEN account ELSE '(smaller lines)' END AS account,
  CASE WHEN place <= 50000 THEN region ELSE '(smaller lines)' END AS region,
  CASE WHEN place <= 50000 THEN service ELSE '(smaller lines)' END AS service,
  CASE WHEN place <= 50000 THEN product ELSE '(smaller lines)' END AS product,
  CASE WHEN place <= 50000 THEN team ELSE '(smaller lines)' END AS team,
  charge_category,
  SUM(effective_cost) AS effective_cost,
  SUM(billed_cost) AS billed_cost
FROM ranked
GROUP BY
  x_month,
  provider,
  CASE WHEN place <= 50000 THEN account ELSE '(smaller lines)' END,
  CASE WHEN place <= 50000 THEN region ELSE '(smaller lines)' END,
  CASE WHEN place <= 50000 THEN service ELSE '(smaller lines)' END,
  CASE WHEN place <= 50000 THEN product ELSE '(smaller lines)' END,
  CASE WHEN place <= 50000 THEN team ELSE '(smaller lines)' END,
  charge_category
