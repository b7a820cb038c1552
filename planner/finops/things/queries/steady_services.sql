-- Steady use without a commitment (x_steady, the KPI uncovered_use) by service.
SELECT provider, service, SUM(steady_cost) AS steady_cost, SUM(steady_gpu_cost) AS steady_gpu_cost
FROM x_steady
GROUP BY provider, service
