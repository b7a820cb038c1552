"""What a short command does before it imports numpy: no thread pool, no garbage collection while modules load."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import modules inside this block at less cost.

    numpy's BLAS starts a thread per core when it is loaded, and idle threads spin for a while: on two cores that is a
    third of numpy's import. Planning multiplies no matrices, so one thread is enough; who wants more sets the
    variable. Modules make many objects and no garbage, so the collector would search in vain, now and at the exit.
    In a process that has numpy already (a notebook, a test) nothing is changed.
    """
    if "numpy" in sys.modules:
        yield
        return
    own_threads, collecting = _THREADS not in os.environ, gc.isenabled()
    if own_threads:
        os.environ[_THREADS] = "1"
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
        if own_threads:
            del os.environ[_THREADS]
