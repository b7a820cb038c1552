"""FinOps: reading bills, the monthly review, the forecast, the budget, and plan against bill."""
