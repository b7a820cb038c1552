"""The quick estimate of spot with a fall-back against replays: `python -m benchmarks.spot_launch [--futures 300]`.

`planner optimize` prices thousands of candidates with a renewal model (`planner.candidates.ways.fallback`). Here the
same jobs are replayed on futures drawn from the age-dependent hazards of the bundled pools (`planner.spot.futures`),
with the policy that the estimate describes (spot, then on-demand at the last moment: `greedy`) and with the policy
that `planner advise` follows (`survival`). Costs are fractions of the same work on on-demand; spot costs 0.3 of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from catalogs.tables.table import Floats
from planner.candidates.ways.fallback import fallback
from planner.spot.distribution import SpotPool
from planner.spot.futures import sample_futures
from planner.spot.hazards import HazardModel, load_hazards
from planner.spot.moments import split_job
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.pools import figures_of
from planner.spot.renewal import p_meet_deadline, spot_outcome
from planner.spot.replay_batch import replay_futures
from planner.spot.zones import unite

PRICE, RESTART, TICK = 0.3, 0.2, 0.1
WORK = (12.0, 48.0)
DEADLINES = (1.25, 1.5, 2.0)
ASSUMED = (0.43, 0.14)  # correlation of zones within a region and across (planner/data/assumptions.csv)


class Row(NamedTuple):
    """One job: the estimate and the replays."""

    zones: int
    work: float
    ratio: float
    cost: float
    greedy: float
    survival: float
    p_meet: float
    finished: float


def zone_sets(model: HazardModel, every: int) -> Iterator[tuple[SpotZone, ...]]:
    """Every recorded zone at gangs of 1 and 8, and neighbours of three of each type."""
    seen = sorted({(c.provider, c.instance_type, c.region, c.zone) for c in model.cells if c.provider})
    kinds = dict.fromkeys((provider, kind) for provider, kind, _, _ in seen)
    for provider, kind in kinds:
        own = [
            SpotZone(zone, region, kind, PRICE * (1.0 + 0.02 * number), provider, gang)
            for gang in (1, 8)
            for number, (p, k, region, zone) in enumerate(seen)
            if (p, k) == (provider, kind)
        ]
        for number, zone in enumerate(own):
            if number % every == 0:
                yield (zone,)
                three = [other for other in own[number : number + 3] if other.gang == zone.gang]
                if len(three) == 3:
                    yield tuple(sorted(three, key=lambda z: z.usd_per_hour))


def estimate(
    model: HazardModel, zones: tuple[SpotZone, ...], work: float, ratio: float
) -> tuple[float, float]:
    """Expected cost as a fraction of on-demand, and P(deadline met) on spot alone."""
    figures = np.asarray([figures_of(model.table_for(zone)) for zone in zones]).T[:, None, :]
    names: dict[str, int] = {}
    region = np.asarray([[names.setdefault(zone.region, len(names)) for zone in zones]])
    union = unite(SpotPool(*figures), region, ASSUMED)
    pool, price = union.pool, float(union.shares[0] @ [zone.usd_per_hour for zone in zones])
    one = [np.asarray([value]) for value in (work, np.inf, 0.0, RESTART, 1e-9)]
    arguments: dict[str, Any] = {
        "rate_per_hour": pool.rate, "nodes": 1.0, "gang_exponent": 0.0, "mean_wait_hours": pool.wait,
        "first_wait_hours": pool.first_wait, "frailty_sd": pool.frailty_sd, "dispersion": pool.dispersion,
        "checkpoint_interval_hours": np.inf, "checkpoint_write_hours": 0.0, "restart_hours": RESTART,
        "notice_hours": 1e-9,
    }  # fmt: skip
    # the first start costs a restart too: in a plan that is part of the fixed hours
    left = fallback(split_job(*one), pool, np.asarray([work * ratio - work - 2.0 * RESTART]))
    lost = float(spot_outcome(work, **arguments).expected_lost_hours[0])
    share, change = float(left.work_share[0]), float(left.p_change[0])
    paid = work * (1.0 - share) + min(lost * (1.0 - share), float(left.wasted_hours[0]))
    cost = price * (RESTART + paid) + share * work + change * RESTART
    chance = p_meet_deadline(work, deadline_hours=work * ratio - RESTART, **arguments)
    return cost / work, float(chance[0])


def replayed(
    model: HazardModel, zones: tuple[SpotZone, ...], work: float, ratio: float, futures: int
) -> tuple[float, float, float]:
    """Mean cost of both policies as fractions of on-demand, and the share of futures that spot alone finishes in."""
    job = SpotJob(work, work * ratio, RESTART, 1.0, zones, tick_hours=TICK)
    tables = {zone.name: model.table_for(zone) for zone in zones}
    up = sample_futures(job, tables, futures, round(work * ratio / TICK), 1)
    greedy, survival, alone = (
        replay_futures(job, name, tables, up) for name in ("greedy", "survival", "spot_only")
    )
    return (
        float(greedy.cost_usd.mean()) / work,
        float(survival.cost_usd.mean()) / work,
        float(alone.finished.mean()),
    )


def render(rows: list[Row]) -> str:
    """Return the results as a Markdown table."""
    lines = [
        "| zones | deadline | cases | estimate / greedy | median error | estimate / survival | median error | "
        "P(meet) bias | mean error |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for zones in sorted({row.zones for row in rows}):
        for ratio in (*DEADLINES, None):
            own = np.asarray([row for row in rows if row.zones == zones and ratio in (None, row.ratio)])
            if len(own):
                lines.append(f"| {zones} | {'all' if ratio is None else f'x{ratio:g}'} | {_cells(own)} |")
    return "\n".join(lines)


def _cells(own: Floats) -> str:
    cost, greedy, survival, p_meet, finished = own[:, 3], own[:, 4], own[:, 5], own[:, 6], own[:, 7]
    by_greedy, by_survival, chance = cost / greedy, cost / survival, p_meet - finished
    parts = [f"{len(own)}"]
    for ratio in (by_greedy, by_survival):
        parts += [f"{ratio.mean():.3f}", f"{np.median(np.abs(ratio - 1.0)):.1%}"]
    return " | ".join([*parts, f"{chance.mean():+.3f}", f"{np.abs(chance).mean():.3f}"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--futures", type=int, default=300, help="futures of each job")
    parser.add_argument("--every", type=int, default=4, help="take every n-th recorded zone")
    chosen = parser.parse_args()
    model, rows = load_hazards(), []
    spent = {"estimate": 0.0, "replays": 0.0}
    for zones in zone_sets(model, chosen.every):
        for work in WORK:
            for ratio in DEADLINES:
                begin = time.process_time()
                cost, p_meet = estimate(model, zones, work, ratio)
                middle = time.process_time()
                greedy, survival, finished = replayed(model, zones, work, ratio, chosen.futures)
                spent["estimate"] += middle - begin
                spent["replays"] += time.process_time() - middle
                rows.append(Row(len(zones), work, ratio, cost, greedy, survival, p_meet, finished))
    print(render(rows))
    each = ", ".join(f"{name} {1e3 * value / len(rows):.1f} ms" for name, value in spent.items())
    print(f"\n{len(rows)} jobs, CPU per job: {each}")
    guessed, seen = (np.argsort(np.argsort(column)) for column in np.asarray(rows)[:, 3:5].T)
    order = float(np.corrcoef(guessed, seen)[0, 1])
    print(f"Rank correlation of estimate and greedy replay over all jobs: {order:.3f}")


if __name__ == "__main__":
    main()
