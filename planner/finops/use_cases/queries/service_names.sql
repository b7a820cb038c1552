-- Billed and effective cost by service and sub account.
SELECT
  ServiceProviderName,
  ServiceName,
  SubAccountId,
  SubAccountName,
  SUM(BilledCost) AS billed_cost,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  ServiceName,
  SubAccountId,
  SubAccountName
ORDER BY effective_cost DESC, ServiceProviderName, ServiceName, SubAccountId
