-- name: restated_months
-- title: Corrections of closed months
-- meaning: Changes of the cost of earlier, already reviewed months by the month's invoices.
-- unit: money in the billing currency
-- formula: cost of corrections without tax, by the month they correct, whose billing period is the month and whose
--   charge period begins before it
-- source: FOCUS 1.0 ChargeClass: Correction
-- columns: ChargePeriodStart, BillingPeriodStart, ChargeClass, ChargeCategory, EffectiveCost, BilledCost
-- gate: effective_zero
-- since: 1.0
-- made_of: ChargeClass = 'Correction'
SELECT
  x_month,
  SUM(EffectiveCost) AS effective_cost,
  SUM(BilledCost) AS billed_cost
FROM focus
WHERE ChargeClass = 'Correction'
  AND COALESCE(ChargeCategory, '') <> 'Tax'
  AND BillingPeriodStart >= :start AND BillingPeriodStart < :end
  AND ChargePeriodStart < :start
GROUP BY x_month
