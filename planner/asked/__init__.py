"""What a workload asks, resolved: job, dates, options, and assumptions where it is silent. No market comes in."""
