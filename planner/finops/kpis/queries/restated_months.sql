-- name: restated_months
-- title: Corrections of closed months
-- meaning: Changes of the cost of earlier, already reviewed months by the month's invoices, and corrections of them that
--   are dated within the month itself, where they count; and corrections dated within it that name no billing period:
--   they count as its use (unknown_period_cost).
-- unit: money in the billing currency
-- formula: cost of corrections without tax, by the month of their charge period: those whose billing period is the month
--   and whose charge period begins before it, and those of the month that were not billed later;
--   those without a billing period are apart
-- source: FOCUS 1.0 ChargeClass: Correction
-- columns: ChargePeriodStart, BillingPeriodStart, ChargeClass, ChargeCategory, EffectiveCost, BilledCost
-- gate: effective_zero
-- since: 1.0
-- made_of: ChargeClass = 'Correction'
SELECT
  x_month,
  SUM(CASE WHEN BillingPeriodStart IS NULL THEN 0 ELSE EffectiveCost END) AS effective_cost,
  SUM(CASE WHEN BillingPeriodStart IS NULL THEN 0 ELSE BilledCost END) AS billed_cost,
  SUM(CASE WHEN BillingPeriodStart IS NULL THEN EffectiveCost ELSE 0 END) AS unknown_period_cost
FROM focus
WHERE ChargeClass = 'Correction'
  AND COALESCE(ChargeCategory, '') <> 'Tax'
  AND ((BillingPeriodStart >= :start AND BillingPeriodStart < :end AND ChargePeriodStart < :start)
    OR (ChargePeriodStart >= :start AND ChargePeriodStart < :end
      AND COALESCE(BillingPeriodStart, ChargePeriodStart) <= ChargePeriodStart))
GROUP BY x_month
