"""`solve`: the one entry point. It keeps its own deadline, whatever the solver does.

HiGHS' time limit is soft (asked for 10 s it has taken 188 s and returned nothing), so small models run in a
thread that is left behind at the limit, and large ones in a child process that is ended. A process start and
a second import of the solver cost about 0.4 CPU seconds, hence the threshold `ISOLATE_ABOVE`; the child is a
fresh interpreter, not a fork, because a fork copies a solver's dead threads. Points and bounds arrive stage
by stage, so that the answer is always the best point known plus the best bound, after a time limit and after
Ctrl-C too.
"""

from __future__ import annotations

import contextlib
import math
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from solvers.backends.base import Checked, Linear, Relaxation, feasible_start, to_solution, violation
from solvers.backends.quiet import leave_behind, quiet_stdout
from solvers.backends.registry import get_backend
from solvers.execution.leftover import watch
from solvers.execution.staged import Progress, run_stages
from solvers.execution.worker import Child, Inbox
from solvers.problem.errors import BackendError, ModelError
from solvers.problem.milp import Milp
from solvers.problem.options import ISOLATE_ABOVE, Sifting, SolveOptions
from solvers.problem.scaling import scale
from solvers.problem.solution import Report, Solution, Termination

GRACE = 0.07  # how far beyond its limit a solver may go before it is ended; the promise is 10 %
LOOK_UP_S = 0.5  # a Ctrl-C that comes just as a wait begins is noticed at the end of the wait
BOX_MARGIN = 1e-12  # of the sum of the absolute terms, for rounding

Item = TypeVar("Item")


def solve(problem: Milp, options: SolveOptions | None = None) -> Solution:
    """Solve `problem` and return the best point with the best bound, within the time limit + 10 %.

    Raises:
        ModelError: the model cannot be handed to a solver safely.
        BackendError: the backend asked for is unknown or absent.
        MemoryError: the solver ran out of memory before any point was known.
    """
    options = options or SolveOptions()
    progress = Progress(best=_known_at_once(problem, options))
    backend = get_backend(options.backend)
    scale(problem)  # refuse a hopeless spread before any process starts
    if not problem.n_columns:
        return _without_columns(problem, backend.name)
    isolated = problem.n_integers > ISOLATE_ABOVE if options.isolate == "auto" else bool(options.isolate)
    isolated = isolated and bool(sys.executable)
    inbox: Inbox = queue.SimpleQueue()
    child = _start_child(problem, options, inbox) if isolated else None
    with contextlib.nullcontext() if child else quiet_stdout():
        thread = None if child else _start_thread(problem, options, inbox)
        try:
            _collect(inbox, options, progress)
        except KeyboardInterrupt:
            progress.take("interrupted", Checked(Termination.INTERRUPTED, message="interrupted by the user"))
        finally:
            if child is not None:
                child.end()
            if thread is not None:
                leave_behind(thread)
    best = progress.best
    report = Report(
        backend.name, progress.elapsed_s, best.nodes, best.message, tuple(progress.stages), isolated
    )
    return to_solution(problem, best, report, gap=options.gap)


def _known_at_once(problem: Milp, options: SolveOptions) -> Checked:
    """The caller's start, if feasible, and the box bound: an answer even if no solver starts in time."""
    bound, start = box_bound(problem), feasible_start(problem, options.start)
    if start is None:
        return Checked(Termination.UNKNOWN, bound=bound)
    objective = float(problem.c @ start)
    return Checked(Termination.UNKNOWN, start, objective, min(bound, objective))


def box_bound(problem: Milp) -> float:
    """Return the lower bound on the objective that the columns' bounds alone give; -inf where they are open."""
    used = problem.c != 0
    terms = problem.c[used] * np.where(problem.c > 0, problem.lb, problem.ub)[used]
    if not np.isfinite(terms).all():
        return -math.inf
    return float(terms.sum()) - BOX_MARGIN * float(np.abs(terms).sum())


def relax(
    problem: Milp, time_limit_s: float, backend: str = "scipy", sifting: Sifting | None = None
) -> Relaxation:
    """Solve the linear relaxation in a thread that is left behind a little after the limit.

    Args:
        problem: the model.
        time_limit_s: seconds, at most.
        backend: name in the registry.
        sifting: the columns to begin with, where few of many matter.

    Returns:
        The relaxation; TIME_LIMIT without a point where the solver did not keep its limit.

    Raises:
        ModelError: the model cannot be handed to a solver safely.
        BackendError: the backend asked for is unknown or absent.
    """
    solver = get_backend(backend)

    def work() -> Relaxation:
        if sifting is None:
            return solver.relax(problem, time_limit_s)
        return solver.sifted(problem, sifting, time_limit_s)

    return _within(work, time_limit_s, solver.start_up_s())


def relax_again(linear: Linear, limited: Milp, time_limit_s: float, cutoff: float = math.inf) -> Relaxation:
    """Re-solve a relaxation under new bounds, as `relax`; not to be called again after it overran its time limit."""
    return _within(lambda: linear.relax(limited, time_limit_s, cutoff), time_limit_s, 0.0)


def _within(work: Callable[[], Relaxation], time_limit_s: float, start_up_s: float) -> Relaxation:
    """Do `work` in a thread that is left behind a little after the limit."""
    if math.isinf(time_limit_s):
        return work()
    answers: queue.SimpleQueue[Relaxation | Exception] = queue.SimpleQueue()

    def answer() -> None:
        try:
            answers.put(work())
        except Exception as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            answers.put(error)

    thread = threading.Thread(target=answer, name="relaxation", daemon=True)
    watch(thread)
    thread.start()
    try:
        relaxation = next_of(answers, time_limit_s * (1 + GRACE) + start_up_s)
    except queue.Empty:
        leave_behind(thread)
        return Relaxation(Termination.TIME_LIMIT, message="the solver overran its time limit")
    if isinstance(relaxation, Exception):
        raise relaxation
    return relaxation


def _without_columns(problem: Milp, backend: str) -> Solution:
    """The answer of a model without columns: 0, if its rows allow it."""
    empty = np.zeros(0)
    if violation(problem, empty) > 0:
        checked = Checked(
            Termination.INFEASIBLE, bound=math.inf, message="no column, and a row that 0 breaks"
        )
    else:
        checked = Checked(Termination.GAP_REACHED, empty, 0.0, 0.0, message="no column")
    return to_solution(problem, checked, Report(backend), gap=0.0)


def _start_thread(problem: Milp, options: SolveOptions, inbox: Inbox) -> threading.Thread:
    def work() -> None:
        try:
            run_stages(problem, options, emit=lambda stage, result: inbox.put((stage, result)))
            inbox.put(("", None))
        except Exception as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            inbox.put(("", error))

    thread = threading.Thread(target=work, name="solver", daemon=True)
    watch(thread)
    thread.start()
    return thread


def _start_child(problem: Milp, options: SolveOptions, inbox: Inbox) -> Child | None:
    """Start the child process; None where the platform does not allow one (then a thread is used)."""
    with contextlib.suppress(OSError):
        return Child(problem, options, inbox)
    return None


def next_of(items: queue.SimpleQueue[Item], left_s: float) -> Item:
    """The next item within `left_s` seconds, which may be infinite; never more than `LOOK_UP_S` without a look up.

    Raises:
        queue.Empty: none came in time.
    """
    end = time.monotonic() + left_s
    while True:
        left = end - time.monotonic()
        try:
            return items.get(timeout=min(max(left, 0.0), LOOK_UP_S))
        except queue.Empty:
            if left <= LOOK_UP_S:
                raise


def _collect(inbox: Inbox, options: SolveOptions, progress: Progress) -> None:
    """Take results until the end is announced or the time is up.

    Raises:
        ModelError, BackendError: as of `solve`.
        MemoryError: the solver ran out of memory before any point was known.
    """
    patience = options.time_limit_s * (1 + GRACE)
    while True:
        try:
            stage, result = next_of(inbox, patience - progress.elapsed_s)
        except queue.Empty:
            progress.take(
                "limit", Checked(Termination.TIME_LIMIT, message="the solver overran its time limit")
            )
            return
        if result is None:
            return
        if isinstance(result, (ModelError, BackendError)):
            raise result
        if isinstance(result, MemoryError):
            if progress.best.x is None:
                raise result
            progress.take("memory", Checked(Termination.MEMORY_LIMIT, message="the solver ran out of memory"))
            return
        if isinstance(result, BaseException):
            progress.take(
                "error", Checked(Termination.SOLVER_ERROR, message=f"{type(result).__name__}: {result}")
            )
            return
        progress.take(stage, result)
