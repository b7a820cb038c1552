"""Tests of the planner, its catalogs and its solvers."""

import os

# Before anything imports numpy: BLAS starts a thread per core, and those of small problems mostly wait, each at full
# speed, beside the other workers. It took a seventh of the CPU time of tests that fit and forecast.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
