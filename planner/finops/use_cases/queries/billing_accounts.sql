-- Kinds of billing and sub accounts.
SELECT
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingAccountType,
  SubAccountType,
  COUNT(*) AS charges
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
GROUP BY
  ServiceProviderName,
  BillingAccountId,
  BillingAccountName,
  BillingAccountType,
  SubAccountType
ORDER BY ServiceProviderName, BillingAccountId, BillingAccountName, BillingAccountType, SubAccountType
