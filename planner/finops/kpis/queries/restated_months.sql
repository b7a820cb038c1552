-- name: restated_months
-- title: Corrections of closed months
-- meaning: Changes of the cost of earlier, already reviewed months by the month's invoices, and corrections of them that
--   are dated within the month itself, where they count.
-- unit: money in the billing currency
-- formula: cost of corrections without tax, by the month of their charge period: those whose billing period is the month
--   and whose charge period begins before it, and those of the month that were not billed later
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
  AND ((BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargePeriodStart < :start)
    OR (ChargePeriodStart >= :start AND ChargePeriodStart < :end AND BillingPeriodStart <= ChargePeriodStart))
GROUP BY x_month
