"""HiGHS is asked for one thread; a program that has used it with more on the same thread still gets its answer."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status

highspy = pytest.importorskip("highspy")


def cover(whole: bool) -> Milp:
    """2 x + 3 y >= 7 at a cost of 2 and 4."""
    builder = MilpBuilder("cover")
    x = builder.add_columns("x", ["x", "y"], cost=np.array([2.0, 4.0]), upper=5.0, integer=whole)
    row = builder.add_rows("cover", 1, lower=7.0)
    builder.add_entries(row.start, np.arange(x.start, x.stop), np.array([2.0, 3.0]))
    return builder.build()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_the_program_has_started_are_no_reason_to_fail(threads: int) -> None:
    seen: list[float] = []

    def work() -> None:
        own = highspy.Highs()
        own.setOptionValue("output_flag", False)
        own.setOptionValue("threads", threads)
        own.run()
        backend = get_backend("highspy")
        seen.append(backend.relax(cover(whole=False), math.inf).objective)
        found = backend.solve(cover(whole=True), SolveOptions(gap=0.0, backend="highspy"))
        assert found.status is Status.OPTIMAL
        seen.append(found.objective)

    thread = threading.Thread(target=work)  # HiGHS keeps its helpers by thread
    thread.start()
    thread.join()
    assert seen == pytest.approx([7.0, 8.0])
