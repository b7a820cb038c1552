-- Billed cost by billing account and period, to hold against the invoices.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  CAST(BillingPeriodStart AS DATE)
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency, billing_month
