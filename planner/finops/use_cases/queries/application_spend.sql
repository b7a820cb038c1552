-- Billed cost per value of one tag and billing month.
WITH by_tags AS (
  SELECT
    ServiceProviderName,
    BillingPeriodStart,
    Tags,
    SUM(BilledCost) AS billed_cost
  FROM focus
  WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
  GROUP BY
    ServiceProviderName,
    BillingPeriodStart,
    Tags
)
SELECT
  JSON_EXTRACT_STRING(Tags, :tag) AS application,
  ServiceProviderName,
  BillingPeriodStart,
  SUM(billed_cost) AS billed_cost
FROM by_tags
GROUP BY
  JSON_EXTRACT_STRING(Tags, :tag),
  ServiceProviderName,
  BillingPeriodStart
ORDER BY application, ServiceProviderName, BillingPeriodStart
