"""A resolved workload: job, dates, options, and the assumptions for what it leaves open. Independent of the market."""
