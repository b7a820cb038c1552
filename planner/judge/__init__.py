"""Whether a saved answer holds: recomputed from the file, the catalog and the workload, with arithmetic of its own.

Answers and catalogs come in, faults come out. Only `planner.performance` is shared with what made the answer.
"""
