-- Whose use at standard price of some SKUs (:skus) is: the team (first mandatory tag) with the largest part of the month's,
-- where no use carries the tag the account; as the KPI owners says of services.
WITH used AS (
  SELECT
    ServiceProviderName AS provider,
    ServiceName AS service,
    SkuId AS sku_id,
    COALESCE(SubAccountName, SubAccountId, BillingAccountId) AS account,
    NULLIF(TRIM(JSON_EXTRACT_STRING(Tags, :tag_1)), '') AS team,
    EffectiveCost AS cost
  FROM focus
  WHERE SkuId IN (:skus)
    AND ChargePeriodStart >= :start AND ChargePeriodStart < :end
    AND ChargeCategory IN ('Usage', 'Purchase')
    AND COALESCE(PricingCategory, 'Standard') = 'Standard'
), summed AS (
  SELECT provider, service, sku_id, COALESCE(team, account) AS owner, CASE WHEN team IS NULL THEN 1 ELSE 0 END AS is_account,
    SUM(cost) AS cost
  FROM used
  GROUP BY provider, service, sku_id, COALESCE(team, account), CASE WHEN team IS NULL THEN 1 ELSE 0 END
), ranked AS (
  SELECT provider, service, sku_id, owner,
    ROW_NUMBER() OVER (PARTITION BY provider, service, sku_id ORDER BY is_account, cost DESC, owner) AS place
  FROM summed
  WHERE owner IS NOT NULL
)
SELECT provider, service, sku_id, owner
FROM ranked
WHERE place = 1
