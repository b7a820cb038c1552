-- name: commitment_utilisation
-- title: Commitment utilisation and waste
-- meaning: Used share of each commitment; the rest is waste. Also the cost of its use at contracted prices, which
--   reveals commitments that no longer save. Both also for machines with GPUs only.
-- unit: ratio; costs are money in the billing currency
-- formula: used / (used + unused), EffectiveCost by CommitmentDiscountStatus; waste = unused; net saving = contracted
--   cost of the use - used - unused, unknown where more than 5 % of the use has no contracted price
--   (used_unpriced_cost); last_end: of the charges for its use and its unused part
-- source: FOCUS CommitmentDiscountStatus; worked examples of the specification give 1 and 0
-- columns: ChargePeriodStart, ChargePeriodEnd, CommitmentDiscountId, CommitmentDiscountName, CommitmentDiscountType,
--   CommitmentDiscountStatus, ServiceProviderName, PricingUnit, SkuPriceDetails, EffectiveCost, ContractedCost,
--   ListCost, BilledCost, ChargeCategory
-- gate: effective_zero, effective_zero_rows, commitment_status
-- since: 1.0
-- made_of: CommitmentDiscountId IS NOT NULL
WITH charges AS (
  SELECT
    x_month,
    ChargePeriodEnd,
    ServiceProviderName,
    CommitmentDiscountId,
    CommitmentDiscountName,
    CommitmentDiscountType,
    CommitmentDiscountStatus,
    ChargeCategory,
    EffectiveCost,
    BilledCost,
    CASE WHEN x_contracted_known THEN ContractedCost ELSE 0 END AS contracted_cost,
    CASE WHEN x_contracted_known THEN 0 ELSE EffectiveCost END AS unpriced_cost,
    CASE WHEN x_list_known THEN ListCost ELSE 0 END AS list_cost,
    CASE
      WHEN x_hours_of = 'gpu' THEN TRUE
      WHEN SkuPriceDetails LIKE '%GpuCount%'
        THEN COALESCE(TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$."GpuCount"') AS DOUBLE) > 0, FALSE)
      ELSE FALSE
    END AS has_gpus
  FROM focus
  WHERE CommitmentDiscountId IS NOT NULL
    AND ((ChargePeriodStart >= :start AND ChargePeriodStart < :end)
      OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))
)
SELECT
  x_month,
  ServiceProviderName AS provider,
  CommitmentDiscountId AS commitment_id,
  MAX(CommitmentDiscountName) AS commitment_name,
  MAX(CommitmentDiscountType) AS commitment_type,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN EffectiveCost ELSE 0 END) AS used_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Unused' THEN EffectiveCost ELSE 0 END) AS unused_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN contracted_cost ELSE 0 END) AS used_contracted_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN list_cost ELSE 0 END) AS used_list_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' AND has_gpus THEN EffectiveCost ELSE 0 END) AS used_gpu_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' AND has_gpus THEN contracted_cost ELSE 0 END)
    AS used_gpu_contracted_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN unpriced_cost ELSE 0 END) AS used_unpriced_cost,
  SUM(CASE WHEN CommitmentDiscountStatus = 'Used' AND has_gpus THEN unpriced_cost ELSE 0 END) AS used_gpu_unpriced_cost,
  SUM(CASE WHEN ChargeCategory = 'Purchase' THEN BilledCost ELSE 0 END) AS purchased_billed_cost,
  MAX(CASE WHEN CommitmentDiscountStatus IN ('Used', 'Unused') THEN ChargePeriodEnd END) AS last_end
FROM charges
GROUP BY x_month, ServiceProviderName, CommitmentDiscountId
