-- Charges of more than a day, such as monthly fees, that start in a month: cost, and cost of a day of their own periods.
-- Parameters: :start, :end: first day of the month, and the first one after.
SELECT
  ServiceProviderName AS provider,
  SUM(EffectiveCost) AS cost,
  SUM(EffectiveCost / DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd)) AS per_day
FROM focus
WHERE ChargePeriodStart >= CAST(:start AS TIMESTAMP)
  AND ChargePeriodStart < CAST(:end AS TIMESTAMP)
  AND COALESCE(ChargeCategory, '') <> 'Tax'
  AND DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) > 1
GROUP BY ServiceProviderName
