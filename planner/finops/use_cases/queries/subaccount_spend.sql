-- Billed cost per sub account and month, to hold against a budget (`planner budget` does).
SELECT
  ServiceProviderName,
  SubAccountId,
  SubAccountName,
  ChargeCategory,
  x_month AS month,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  SubAccountId,
  SubAccountName,
  ChargeCategory,
  x_month
ORDER BY ServiceProviderName, SubAccountId, SubAccountName, ChargeCategory, month
