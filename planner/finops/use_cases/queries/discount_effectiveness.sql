-- Negotiated and commitment discount by service, corrections left out.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName,
  SUM(ListCost) AS list_cost,
  SUM(ContractedCost) AS contracted_cost,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost,
  SUM(ListCost) - SUM(ContractedCost) AS negotiated_saving,
  SUM(ContractedCost) - SUM(EffectiveCost) AS commitment_saving
FROM focus
WHERE BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargeCategory = 'Usage' AND ChargeClass IS NULL
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingCurrency,
  ServiceName
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingCurrency, ServiceName
