"""Budgets against what was spent and what is to come: alerts by probability."""
