-- Days whose effective cost lies more than three standard deviations from the 28 days before.
WITH daily AS (
  SELECT
    ServiceProviderName,
    SubAccountId,
    x_day,
    SUM(EffectiveCost) AS effective_cost
  FROM focus
  WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end
  GROUP BY
    ServiceProviderName,
    SubAccountId,
    x_day
), judged AS (
  SELECT
    ServiceProviderName,
    SubAccountId,
    x_day,
    effective_cost,
    AVG(effective_cost) OVER (
      PARTITION BY ServiceProviderName, SubAccountId ORDER BY x_day NULLS FIRST ROWS BETWEEN 28 PRECEDING AND 1 PRECEDING
    ) AS usual_cost,
    STDDEV_SAMP(effective_cost) OVER (
      PARTITION BY ServiceProviderName, SubAccountId ORDER BY x_day NULLS FIRST ROWS BETWEEN 28 PRECEDING AND 1 PRECEDING
    ) AS usual_deviation,
    COUNT(*) OVER (
      PARTITION BY ServiceProviderName, SubAccountId ORDER BY x_day NULLS FIRST ROWS BETWEEN 28 PRECEDING AND 1 PRECEDING
    ) AS days_before
  FROM daily
)
SELECT
  ServiceProviderName,
  SubAccountId,
  x_day,
  effective_cost,
  usual_cost,
  effective_cost - usual_cost AS excess_cost
FROM judged
WHERE days_before >= 7 AND ABS(effective_cost - usual_cost) > 3 * usual_deviation
ORDER BY ABS(effective_cost - usual_cost) DESC, ServiceProviderName, SubAccountId, x_day
