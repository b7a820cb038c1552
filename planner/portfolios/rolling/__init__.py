"""Demand over time: jobs that arrive, what each policy starts and preempts, and what came of it."""
