"""Forecasts of daily cost: members tried on the scope's own past, totals with honest intervals, month-end landing."""
