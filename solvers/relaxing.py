"""The linear relaxation within our own time limit: the solver works in a thread that is left behind at the limit."""

from __future__ import annotations

import math
import queue
import threading

from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.problem import Milp
from solvers.quiet import quiet_stdout
from solvers.solution import Termination


def relax_within(problem: Milp, *, backend: str = "scipy", time_limit_s: float = math.inf) -> Relaxation:
    """Solve the linear relaxation; TIME_LIMIT when it is not done in time.

    Raises:
        ModelError: the model cannot be handed to a solver safely.
        BackendError: the backend asked for is unknown or absent.
    """
    solver = get_backend(backend)
    inbox: queue.SimpleQueue[Relaxation | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            inbox.put(solver.relax(problem, time_limit_s))
        except Exception as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            inbox.put(error)

    with quiet_stdout():
        threading.Thread(target=work, name="relaxation", daemon=True).start()
        try:
            found = inbox.get(timeout=None if math.isinf(time_limit_s) else max(time_limit_s, 0.0))
        except queue.Empty:
            return Relaxation(Termination.TIME_LIMIT, message="the relaxation was not done in time")
    if isinstance(found, Exception):
        raise found
    return found
