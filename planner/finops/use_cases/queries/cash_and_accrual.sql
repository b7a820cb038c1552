-- Billed (cash) beside effective (accrual) cost by billing period.
SELECT
  InvoiceIssuerName,
  ServiceProviderName,
  CAST(BillingPeriodStart AS DATE) AS billing_month,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost,
  SUM(BilledCost) - SUM(EffectiveCost) AS cash_less_accrual
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end
GROUP BY
  InvoiceIssuerName,
  ServiceProviderName,
  CAST(BillingPeriodStart AS DATE)
ORDER BY InvoiceIssuerName, ServiceProviderName, billing_month
