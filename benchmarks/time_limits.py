"""What runs past a time limit, by kind of answer: `python -m benchmarks.time_limits [--kind NAME ...] [--limit 2]`.

Hard questions are asked with a limit too short for their gap, each in a process of its own, on a clock that counts its
CPU seconds (`benchmarks.quiet_clock`): wall-clock seconds of a busy machine say little of a quiet one. A solver may be
waited for 7 % beyond the limit. `--where` prints what the answering thread was at from the limit on, sampled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.quiet_clock import use

GOAL_S = 0.2  # beyond the limit, on a quiet machine
SAMPLED_S, WARM_UP_S = 0.01, 0.02
FRAMES = 4  # of a sample, the innermost of our own code
EXAMPLES, AS_OF = Path(__file__).parent.parent / "examples", "2026-11-22"
Ask = Callable[[float], str]  # seconds -> what came of it


class Late:
    """Watches the main thread from a moment on."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ended = threading.Event()
        self.where: Counter[str] = Counter()
        self.spent_s = 0.0

    def begin(self) -> None:
        """Count from now on: what came before, such as the candidates of a file, was no search."""
        self._began = time.process_time()

    def __enter__(self) -> Late:
        self.begin()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLED_S):
            if time.process_time() - self._began < self._limit_s:
                continue
            frame = sys._current_frames().get(threading.main_thread().ident or 0)
            ours = [one for one in traceback.extract_stack(frame) if "site-packages" not in one.filename]
            self.where[" < ".join(f"{one.name}:{one.lineno}" for one in ours[: -FRAMES - 1 : -1])] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.spent_s = time.process_time() - self._began
        self._ended.set()


def _solved_by(solve: Callable[..., Any], question: object) -> Ask:
    from solvers.problem.options import SolveOptions

    def ask(limit_s: float) -> str:
        found = solve(question, SolveOptions(gap=1e-6, time_limit_s=limit_s, backend="auto"))
        return f"{found.status.value}, gap {found.gap:.4f}"

    return ask


def fleet(seed: int) -> Ask:
    """Workers by the hour, 7,000 offers."""
    from benchmarks.instances.fleet import fleet_instance
    from planner.fleet.solve import solve_fleet

    return _solved_by(solve_fleet, fleet_instance(7_000, seed, hours=True))


def pipeline(seed: int) -> Ask:
    """100 tasks with 200 candidates each and a deadline."""
    from benchmarks.instances.pipeline import pipeline_instance
    from planner.pipelines.solve import solve_pipeline

    return _solved_by(solve_pipeline, pipeline_instance(100, 200, seed, slack=0.5))


def portfolio(seed: int) -> Ask:
    """1,000 jobs with 200 candidates each."""
    from benchmarks.instances.portfolio import generate
    from planner.portfolios.solve import PortfolioOptions, solve_portfolio

    question = generate(seed, 1_000).question

    def ask(limit_s: float) -> str:
        options = PortfolioOptions(gap=1e-6, time_limit_s=limit_s)
        found = solve_portfolio(question, options)
        return f"{found.status.value}, gap {found.gap:.4f}"

    return ask


def unfit(seed: int) -> Ask:
    """1,000 jobs that do not fit: the proof, what gives way, and a plan within the moved limits."""
    import numpy as np

    from benchmarks.instances.portfolio import generate
    from planner.portfolios.elastic import ElasticWeights
    from planner.portfolios.relax import relax_portfolio
    from planner.portfolios.shared_limits import MICRO
    from planner.portfolios.solve import PortfolioOptions, solve_portfolio
    from solvers.problem.solution import Status
    from solvers.search.search import Clock

    question = generate(seed, 1_000, feasible=False).question
    question = replace(question, limit=np.floor(question.limit * 0.45).astype(np.int64))

    def ask(limit_s: float) -> str:
        options = PortfolioOptions(time_limit_s=limit_s)
        clock = Clock(limit_s)
        first = solve_portfolio(question, replace(options, time_limit_s=clock.for_next_s()))
        if first.status is not Status.INFEASIBLE:
            return f"{first.status.value}, bound {(first.exact_bound or 0) / MICRO:,.0f}"
        late, left = np.zeros(question.n_candidates), replace(options, time_limit_s=clock.for_next_s())
        found = relax_portfolio(question, late, ElasticWeights(), 100.0, left)
        fits = found.plan.picks is not None and not found.question.faults(found.plan.picks)
        return f"{found.weighted_usd:,.0f} gives way, {found.bound_usd:,.0f} at least, {'a' if fits else 'NO'} plan"

    return ask


def frontier(seed: int) -> Ask:
    """Twelve points of cost against delay, 100 jobs."""
    from benchmarks.instances.portfolio import generate
    from planner.portfolios.frontier import delay_of, find_frontier
    from planner.portfolios.solve import PortfolioOptions

    instance = generate(seed, 100)
    delay = delay_of(instance.hours, instance.usd_per_hour_late[instance.question.job])

    def ask(limit_s: float) -> str:
        points = find_frontier(instance.question, delay, 12, PortfolioOptions(time_limit_s=limit_s))
        return f"{len(points)} points, gap up to {max((one.gap for one in points), default=0.0):.3f}"

    return ask


def schedule(seed: int) -> Ask:
    """A month by the hour, 40 pools, one region at a time."""
    from benchmarks.instances.schedule import schedule_instance
    from planner.schedules.solve import solve_schedule
    from solvers.problem.options import SolveOptions

    question = schedule_instance(720, 40, seed, one_region=True)

    def ask(limit_s: float) -> str:
        options = SolveOptions(gap=1e-6, time_limit_s=limit_s, backend="auto")
        found = solve_schedule(question, options)
        return f"{found.status.value}, gap {found.gap:.4f}"

    return ask


def serving(seed: int) -> Ask:
    """400 sizes of request, 24 kinds of machine."""
    from benchmarks.instances.serving import serving_instance
    from planner.serving.model import solve_serving
    from solvers.problem.options import SolveOptions

    question = serving_instance(400, 24, seed)

    def ask(limit_s: float) -> str:
        options = SolveOptions(gap=0.0, time_limit_s=limit_s, backend="auto")
        found = solve_serving(question, options)
        return f"{found.status.value}, gap {found.gap:.5f}"

    return ask


def commit(seed: int) -> Ask:
    """Eight pools, a year by the hour, 50 scenarios."""
    from benchmarks.instances.commit import make_commit
    from planner.commitments.solve import solve_bill

    model = make_commit(seed)

    def ask(limit_s: float) -> str:
        found = solve_bill(model, gap=1e-6, time_limit_s=limit_s)[1]
        return f"{found.status}, gap {found.gap_ratio:.4f}"

    return ask


def of_file(call: str, file: str) -> Callable[[int], Ask]:
    """The whole answer of an example, from the first search on; there is one seed."""

    def make(seed: int) -> Ask:  # noqa: ARG001
        import planner

        def ask(limit_s: float) -> str:
            settings: dict[str, Any] = {"as_of": AS_OF, "time_limit_s": limit_s, "gap": 1e-6}
            return repr(getattr(planner, call)(EXAMPLES / file, **settings)).splitlines()[0][:90]

        return ask

    return make


FILES: dict[str, Callable[[int], Ask]] = {
    "hpo-fleet": of_file("optimize", "hpo-fleet.yaml"),
    "robust": of_file("portfolio", "robust.yaml"),
    "portfolio-file": of_file("portfolio", "portfolio.yaml"),
    "pipeline-file": of_file("pipeline", "pipeline.yaml"),
}
DRAWN = (fleet, pipeline, portfolio, unfit, frontier, schedule, serving, commit)
KINDS: dict[str, Callable[[int], Ask]] = {made.__name__: made for made in DRAWN} | FILES


def measure(kind: str, seed: int, limit_s: float) -> dict[str, Any]:
    """Ask one question in this process."""
    use()
    ask = KINDS[kind](seed)
    ask(WARM_UP_S)  # imports
    with Late(limit_s) as late:
        _at_first_search(late.begin)
        said = ask(limit_s)
    return {"spent_s": late.spent_s, "said": said, "where": late.where.most_common(12)}


def _at_first_search(begin: Callable[[], None]) -> None:
    """Call `begin` when a search first looks at its clock."""
    from solvers.search import search

    started: list[bool] = []
    plain = search.Search.__post_init__

    def first(one: search.Search[Any]) -> None:
        if not started:
            started.append(True)
            begin()
        plain(one)

    search.Search.__post_init__ = first  # type: ignore[assignment, method-assign]


def _in_child(kind: str, seed: int, limit_s: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.time_limits", "--child", kind, str(seed), str(limit_s)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    out: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return out


def main() -> int:
    """Run; exit code 1 when an answer would come too late on a quiet machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", nargs="+", choices=sorted(KINDS), metavar="NAME", default=[*KINDS])
    parser.add_argument("--limit", type=float, default=2.0, help="seconds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--where", action="store_true", help="what ran past the limit")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        kind, seed, limit = arguments.child
        print(json.dumps(measure(kind, int(seed), float(limit))), flush=True)
        os._exit(0)  # a solver may still be at work
    worst, ask = 0.0, partial(_in_child, limit_s=arguments.limit)
    print(f"{'kind':12}{'seed':>5}{'limit':>7}{'CPU s':>8}  answer")
    for kind in arguments.kind:
        for seed in [0] if kind in FILES else arguments.seeds:
            found = ask(kind, seed)
            worst = max(worst, found["spent_s"] - arguments.limit)
            row = f"{kind:12}{seed:>5}{arguments.limit:7g}{found['spent_s']:8.2f}"
            print(f"{row}  {found['said']}", flush=True)
            for stack, count in found["where"] if arguments.where else ():
                print(f"{count:>20}  {stack}")
    return 1 if worst > GOAL_S else 0


if __name__ == "__main__":
    raise SystemExit(main())
