-- Effective cost by sub account and service.
SELECT
  SubAccountId,
  SubAccountName,
  ServiceName,
  SUM(EffectiveCost) AS effective_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  SubAccountId,
  SubAccountName,
  ServiceName
ORDER BY SubAccountId, SubAccountName, ServiceName
