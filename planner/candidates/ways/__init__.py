"""Ways to run one job on spot: on-demand to fall back on, one zone or several, and what each comes to."""
