"""The quick estimate of `planner optimize` on recorded days: `python -m benchmarks.spot_launch_days --traces DIR`.

Hazards are fitted without the file that is replayed, nothing of the last hours is known, as when a plan is made. One
zone, and neighbours of three of one file. The cost is that of spot with a fall-back, against greedy replays from
launches four hours apart; P(meet) is that of spot alone. Costs are fractions of the same work on on-demand; spot costs
0.3 of it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fit_spot import traces_of_file
from benchmarks.spot_launch import PRICE, RESTART, TICK, estimate
from planner.spot.hazards import HazardModel, fit_hazards
from planner.spot.hazards_cells import cell_of
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.replay_batch import replay_futures
from planner.spot.trace import ZoneTrace

WORK = (6.0, 24.0)
DEADLINES = (1.25, 1.5, 2.0, 4.0, 8.0)
_LAUNCHES = 5  # fewer say nothing of a group


def groups(directory: Path) -> Iterator[tuple[list[ZoneTrace], HazardModel]]:
    """Single zones and threes of a file, with hazards of the other files where those know the type."""
    found = {path.name: traces_of_file(path) for path in sorted(directory.glob("*.json"))}
    scales = fit_hazards(()).scales
    for name, own in found.items():
        model = HazardModel(
            tuple(cell_of(t) for other, traces in found.items() if other != name for t in traces), scales, {}
        )
        by_pool: dict[tuple[str, int], list[ZoneTrace]] = defaultdict(list)
        for trace in own:
            if any(cell.instance_type == trace.instance_type for cell in model.cells):
                by_pool[trace.instance_type, trace.gang].append(trace)
        for pool in by_pool.values():
            for at, trace in enumerate(pool):
                yield [trace], model
                if at + 3 <= len(pool):
                    yield pool[at : at + 3], model


def score(traces: list[ZoneTrace], model: HazardModel, work: float, ratio: float) -> list[float] | None:
    """Zones, deadline, estimated and replayed cost, P(meet) and how often it was met; None on too short a record."""
    zones = tuple(SpotZone(t.zone, t.region, t.instance_type, PRICE, t.provider, t.gang) for t in traces)
    n, ticks = min(len(t.up) for t in traces), round(work * ratio / TICK)
    starts = range(0, n - ticks, 40)
    if len(starts) < _LAUNCHES:
        return None
    seen = np.stack([t.up[:n] for t in traces])
    up = np.stack([seen[:, start : start + ticks] for start in starts])
    job = SpotJob(work, work * ratio, RESTART, 1.0, zones, tick_hours=TICK)
    tables = {zone.name: model.table_for(zone) for zone in zones}
    greedy, alone = (replay_futures(job, name, tables, up) for name in ("greedy", "spot_only"))
    cost, chance = estimate(model, zones, work, ratio)
    realised = float(greedy.cost_usd.mean()) / work
    return [len(zones), ratio, cost, realised, chance, float(alone.finished.mean())]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    given = parser.parse_args()
    scored = [
        score(traces, model, work, ratio)
        for traces, model in groups(given.traces)
        for work in WORK
        for ratio in DEADLINES
    ]
    rows = np.asarray([row for row in scored if row is not None])
    print("| zones | deadline | cases | cost: estimate / days | P(meet): said | was |")
    print("|---|---|---:|---:|---:|---:|")
    for zones in np.unique(rows[:, 0]):
        for ratio in (*DEADLINES, None):
            own = rows[(rows[:, 0] == zones) & ((rows[:, 1] == ratio) | (ratio is None))]
            name = "all" if ratio is None else f"x{ratio:g}"
            cost = own[:, 2].sum() / own[:, 3].sum()
            said, was = own[:, 4].mean(), own[:, 5].mean()
            print(f"| {zones:.0f} | {name} | {len(own)} | {cost:.3f} | {said:.3f} | {was:.3f} |")
    for low, high in ((0.5, 0.8), (0.8, 0.9), (0.9, 1.01)):
        own = rows[(rows[:, 4] >= low) & (rows[:, 4] < high)]
        print(
            f"said {low} to {min(high, 1.0)}: {own[:, 4].mean():.3f}, was {own[:, 5].mean():.3f} ({len(own)})"
        )


if __name__ == "__main__":
    main()
