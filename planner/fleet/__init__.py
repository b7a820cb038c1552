"""Divisible work on a mix of offers: which machines, how many of each. A loaded workload comes in."""
