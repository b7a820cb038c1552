-- The same by service.
SELECT
  ServiceProviderName,
  ServiceName,
  SUM(ContractedCost) AS contracted_cost,
  SUM(EffectiveCost) AS effective_cost,
  SUM(ContractedCost) - SUM(EffectiveCost) AS saving,
  1 - SUM(EffectiveCost) / NULLIF(SUM(ContractedCost), 0) AS savings_ratio
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory <> 'Tax' AND NOT (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NOT NULL)
GROUP BY
  ServiceProviderName,
  ServiceName
ORDER BY ServiceProviderName, ServiceName
