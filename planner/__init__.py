"""Plan what to train on: the cheapest feasible cluster for a workload, with proof."""

__version__ = "0.1.0"
