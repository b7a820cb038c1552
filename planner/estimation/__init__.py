"""`planner estimate`: how fast a named cluster trains a workload and what it needs of memory. No prices come in."""
