-- Billed cost per value of one tag and billing currency; currencies are never added up.
WITH by_tags AS (
  SELECT
    ServiceProviderName,
    BillingAccountId,
    BillingAccountName,
    BillingCurrency,
    Tags,
    SUM(BilledCost) AS billed_cost
  FROM focus
  WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
  GROUP BY
    ServiceProviderName,
    BillingAccountId,
    BillingAccountName,
    BillingCurrency,
    Tags
)
SELECT
  JSON_EXTRACT_STRING(Tags, :tag) AS application,
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  SUM(billed_cost) AS billed_cost
FROM by_tags
GROUP BY
  JSON_EXTRACT_STRING(Tags, :tag),
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency
ORDER BY application, ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency
