"""Whether an answer of `planner commit` holds: prices, demand, use, cost and risk recomputed from its question."""
