"""What a workload asks, resolved: tests of the assumptions."""
