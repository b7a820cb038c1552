-- Use of each billing account by day; charges of more than a day say nothing of single days.
-- Parameters: :first, :next: first day looked at, and the first one after.
SELECT
  ServiceProviderName AS provider,
  BillingAccountId AS account,
  CAST(x_day AS VARCHAR) AS day,
  SUM(EffectiveCost) AS cost
FROM focus
WHERE ChargePeriodStart >= CAST(:first AS TIMESTAMP)
  AND ChargePeriodStart < CAST(:next AS TIMESTAMP)
  AND ChargeCategory = 'Usage'
  AND COALESCE(DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) <= 1, TRUE)
GROUP BY ServiceProviderName, BillingAccountId, CAST(x_day AS VARCHAR)
