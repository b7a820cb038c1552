-- Share of effective cost that carries any tag.
SELECT
  ServiceProviderName,
  SUM(CASE WHEN Tags IS NOT NULL AND Tags NOT IN ('', '{}') THEN EffectiveCost ELSE 0 END) AS tagged_cost,
  SUM(EffectiveCost) AS effective_cost,
  SUM(CASE WHEN Tags IS NOT NULL AND Tags NOT IN ('', '{}') THEN EffectiveCost ELSE 0 END)
    / NULLIF(SUM(EffectiveCost), 0) AS tagged_ratio
FROM focus
WHERE ChargePeriodStart >= :start AND ChargePeriodStart < :end AND ChargeCategory = 'Usage'
GROUP BY ServiceProviderName
ORDER BY ServiceProviderName
