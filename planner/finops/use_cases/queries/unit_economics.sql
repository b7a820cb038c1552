-- Billed cost per consumed unit by month.
SELECT
  x_month AS month,
  ChargeDescription,
  ConsumedUnit,
  SUM(BilledCost) AS billed_cost,
  SUM(ConsumedQuantity) AS consumed_quantity,
  SUM(BilledCost) / NULLIF(SUM(ConsumedQuantity), 0) AS cost_per_unit
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ConsumedUnit IS NOT NULL
GROUP BY
  x_month,
  ChargeDescription,
  ConsumedUnit
ORDER BY month, ChargeDescription, ConsumedUnit
