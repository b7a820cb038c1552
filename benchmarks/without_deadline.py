"""What a long deadline saves over none: `python -m benchmarks.without_deadline [FILE ...] [--days 10 30 90 365]`.

Workloads are planned without deadline and budget, and by each deadline, as of one day; the bundled examples by default.
Without a deadline, spot with on-demand to fall back on, or in several zones, does not compete. The last column is what
working these ways out by 30 days takes beside the search, CPU ms.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from planner.asked.options import Options
from planner.candidates.choose import best_where
from planner.candidates.engine import CandidateSearch, Engine
from planner.candidates.prepare import prepare
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.build import add_turns
from planner.errors import PlannerError
from planner.inputs.load import LoadedWorkload, load_workload
from planner.workloads.answer import optimize

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OPTIONS = Options(NOW, as_of=NOW.date())
EXAMPLES = Path(__file__).parent.parent / "examples"
HORIZON = timedelta(days=30)


def unlimited(loaded: LoadedWorkload, days: float | None) -> LoadedWorkload:
    """The question by another deadline, whatever the budget."""
    update = {"budget_usd": None, "deadline": None if days is None else timedelta(days=days)}
    limits = loaded.workload.constraints.model_copy(update=update)
    return replace(loaded, workload=loaded.workload.model_copy(update={"constraints": limits}))


def horizon_ms(loaded: LoadedWorkload, catalog: Catalog) -> float:
    """CPU ms of the ways by the horizon that may be cheaper than the best without one; 0 where nothing fits."""
    search: CandidateSearch = Engine(prepare(loaded, loaded.workload, catalog, OPTIONS)).at(None)
    found = search.candidates
    best = best_where(found, found.bits == 0, "cost")
    if best is None:
        return 0.0
    context = found.context.with_deadline(NOW + HORIZON)
    later = replace(found, context=context, bits=found.bits.copy(), p_meet=found.p_meet.copy())
    begin = time.process_time()
    add_turns(later, search.offer_bits, Wanted(Scope.BEST, below=float(found.cost_usd[best]), counted=False))
    return 1e3 * (time.process_time() - begin)


def main() -> int:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, default=sorted(EXAMPLES.glob("*.yaml")))
    parser.add_argument("--days", nargs="+", type=float, default=[10.0, 30.0, 90.0, 365.0])
    arguments = parser.parse_args()
    catalog = load_catalog(None, as_of=NOW.date())
    for file in arguments.files:
        try:
            loaded = unlimited(load_workload(file, cache=False), None)
            free = optimize(loaded, OPTIONS, catalog=catalog).plan
            plans = [
                optimize(unlimited(loaded, days), OPTIONS, catalog=catalog).plan for days in arguments.days
            ]
        except PlannerError:
            continue  # no workload
        costs = [float(plan.total_usd) if plan.lines else float("inf") for plan in plans]
        saved = 100 * (1 - min(costs) / float(free.total_usd)) if free.lines else 0.0
        spent = 0.0 if loaded.workload.kind == "fleet" else horizon_ms(loaded, catalog)
        shown = "".join(f"{cost:14,.2f}" for cost in costs)
        print(
            f"{file.stem:28}{float(free.total_usd):14,.2f}{shown}{max(saved, 0.0):8.3f} %{spent:7.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
