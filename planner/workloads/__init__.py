"""The answer to one workload file, whether it is one job or a fleet: plan, run and certificate."""
