"""The public single-region benchmark "cant_be_late", scored with a check of its deadlines.

`python -m benchmarks.spot_cant_be_late --traces FILE [FILE ...] [--policies survival,uniform_progress,greedy]`

48 h of work, deadlines 52 and 70 h, restarts of 0.02, 0.05 and 0.1 h, 30 windows per zone at even distances, ticks of
10 minutes, spot at 0.9731 and on-demand at 3.06 USD per hour: the parameters of UCB-ADRS's evaluator, whose own
windows are cut from October 2022. Score: 0 costs what on-demand costs, 100 what uninterrupted spot costs. The public
evaluator only asks that a run finishes within its 92 h of trace; here every run that ends after its deadline counts
as late.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from planner.spot.hazards import HazardModel, load_hazards
from planner.spot.hindsight import offline_optimum
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.replay_batch import replay_futures
from planner.spot.trace import ZoneTrace
from planner.spot.traces.registry import read_traces

WORK_HOURS, DEADLINES_HOURS, RESTARTS_HOURS = 48.0, (52.0, 70.0), (0.02, 0.05, 0.1)
SPOT_USD, ON_DEMAND_USD = 0.9731, 3.06
WINDOWS, TICK_HOURS = 30, 1 / 6
ZONES = (
    "us-west-2a_k80_8",
    "us-west-2b_k80_1",
    "us-west-2b_k80_8",
    "us-west-2a_v100_1",
    "us-west-2a_v100_8",
    "us-west-2b_v100_1",
)


def windows(trace: ZoneTrace, hours: float, count: int) -> np.ndarray:
    """Windows of the record at even distances, shape `(count, 1, ticks)`."""
    ticks = round(hours / trace.tick_hours)
    starts = np.linspace(0, len(trace.up) - ticks, count).round().astype(int)
    return np.stack([trace.up[start : start + ticks][None] for start in starts])


def cells(trace: ZoneTrace) -> Iterator[SpotJob]:
    """The jobs of one zone, one per deadline and restart."""
    zone = SpotZone(trace.zone, trace.region, trace.instance_type, SPOT_USD, trace.provider, trace.gang)
    for deadline in DEADLINES_HOURS:
        for restart in RESTARTS_HOURS:
            yield SpotJob(WORK_HOURS, deadline, restart, ON_DEMAND_USD, (zone,), tick_hours=TICK_HOURS)


def score(cost_usd: float) -> float:
    """0 for on-demand, 100 for uninterrupted spot."""
    return 100.0 * (ON_DEMAND_USD * WORK_HOURS - cost_usd) / ((ON_DEMAND_USD - SPOT_USD) * WORK_HOURS)


def run(traces: Sequence[ZoneTrace], policies: Sequence[str], model: HazardModel, count: int) -> None:
    """Replay all windows and print a line per policy."""
    costs: dict[str, list[float]] = {name: [] for name in (*policies, "optimum")}
    late = dict.fromkeys(policies, 0)
    for trace in traces:
        for job in cells(trace):
            futures = windows(trace, job.deadline_hours, count)
            tables = {zone.name: model.table_for(zone) for zone in job.zones}
            for name in policies:
                done = replay_futures(job, name, tables, futures)
                costs[name] += done.cost_usd.tolist()
                late[name] += int((~done.finished).sum())
            costs["optimum"] += [offline_optimum(job, future) for future in futures]
    for name, all_costs in costs.items():
        mean = float(np.mean(all_costs))
        tail = f" late={late[name]} of {len(all_costs)}" if name in late else ""
        print(f"{name:18s} score={score(mean):6.2f} mean_usd={mean:7.2f}{tail}")


def main() -> None:
    """Print the score of each policy and of the offline optimum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, nargs="+", required=True)
    parser.add_argument("--policies", default="survival,uniform_progress,greedy,margin")
    parser.add_argument("--windows", type=int, default=WINDOWS)
    parser.add_argument(
        "--hazards", type=Path, help="counts fitted on other days; without it the bundled ones"
    )
    given = parser.parse_args()
    model = HazardModel.load(given.hazards) if given.hazards else load_hazards()
    for path in given.traces:
        traces = [t for t in read_traces(path, tick_hours=TICK_HOURS) if t.zone in ZONES]
        print(f"{path.name}: {len(traces)} zones")
        run(traces, given.policies.split(","), model, given.windows)


if __name__ == "__main__":
    main()
