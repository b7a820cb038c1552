-- name: savings_rate
-- title: Effective savings rate
-- meaning: Discount on the price, signed: against list prices (negotiated and commitment discounts) and against
--   contracted prices (commitments and spot). Costs without a known price are excluded from both sides, and their
--   share is reported.
-- unit: ratio; the sums are money in the billing currency
-- formula: esr_list = 1 - sum(EffectiveCost) / sum(ListCost) over rows with a known list price; esr_contract the same
--   with ContractedCost. Tax and prepaid purchases (EffectiveCost 0) stay out; fees that are the cost of the use they
--   cover (Google) count at a price of 0. On rows that have both: list - effective = (list - contracted) + (contracted
--   - effective).
-- source: focus.finops.org/use-case/determine-effective-savings-rate
-- columns: ChargePeriodStart, ServiceProviderName, ServiceName, ChargeCategory, CommitmentDiscountId, EffectiveCost,
--   ListCost, ContractedCost
-- gate: list_known, contracted_known, contracted_above_list, effective_zero, effective_zero_rows, negative_effective
-- since: 1.0
SELECT
  x_month,
  ServiceProviderName AS provider,
  ServiceName AS service,
  SUM(EffectiveCost) AS effective_cost,
  SUM(CASE WHEN ChargeCategory <> 'Credit' THEN ABS(EffectiveCost) ELSE 0 END) AS use_weight,
  SUM(CASE WHEN ChargeCategory <> 'Credit' AND x_list_known THEN ABS(EffectiveCost) ELSE 0 END) AS list_known_weight,
  SUM(CASE WHEN ChargeCategory <> 'Credit' AND x_contracted_known THEN ABS(EffectiveCost) ELSE 0 END)
    AS contracted_known_weight,
  SUM(CASE WHEN x_list_known THEN ListCost ELSE 0 END) AS list_cost,
  SUM(CASE WHEN x_list_known THEN EffectiveCost ELSE 0 END) AS effective_cost_with_list,
  SUM(CASE WHEN x_contracted_known THEN ContractedCost ELSE 0 END) AS contracted_cost,
  SUM(CASE WHEN x_contracted_known THEN EffectiveCost ELSE 0 END) AS effective_cost_with_contracted,
  SUM(CASE WHEN x_list_known AND x_contracted_known THEN ListCost ELSE 0 END) AS both_list_cost,
  SUM(CASE WHEN x_list_known AND x_contracted_known THEN ContractedCost ELSE 0 END) AS both_contracted_cost,
  SUM(CASE WHEN x_list_known AND x_contracted_known THEN EffectiveCost ELSE 0 END) AS both_effective_cost
FROM focus
WHERE ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
    OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
  AND ChargeCategory <> 'Tax'
  AND NOT (ChargeCategory = 'Purchase' AND (CommitmentDiscountId IS NOT NULL OR EffectiveCost = 0)
    AND NOT COALESCE(x_list_known AND ListCost = 0 AND EffectiveCost <> 0, FALSE))
GROUP BY x_month, ServiceProviderName, ServiceName
