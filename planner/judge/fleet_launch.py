"""The section `launch` of a fleet with spot: sums of many workers that come and go independently."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, hypot, sqrt
from typing import Any

from planner.judge import frame
from planner.judge.bench import Bench
from planner.judge.chance import normal, normal_point
from planner.judge.document import Node
from planner.judge.findings import Exactly, Near
from planner.judge.fleet_workers import Worker, runs_of
from planner.judge.launch_figures import checkpoints, place
from planner.judge.money import Charge, total

_SPEEDS = 41
_RATIO = 1e-6
SUMMED = "hours are summed over workers; the finish is that of all work at this size of the fleet"


def launch_of(
    bench: Bench, plan: Node, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]], period: float,
    work: float,
) -> dict[str, Any] | None:  # fmt: skip
    """The section `launch`: sums of many workers, taken as normal (Cox 1962, alternating renewal process)."""
    spot = [worker for worker in workers if worker.buy.offer.is_spot]
    if not spot:
        return None
    units_var, usd_var, units, slow = 0.0, 0.0, 0.0, 0.0
    for worker, (charges, _) in zip(workers, lines, strict=True):
        middle = worker.units * worker.caution
        units += middle
        slow += middle * worker.run.steps.sigma
        if worker.buy.offer.is_spot:
            spread = _spread(bench, worker)
            bought = total([c for c in charges if c.kind in ("compute", "upfront", "system_disk")])
            units_var += (middle * spread) ** 2
            usd_var += (float(bought) * spread) ** 2
    sigma, units_sd = slow / units, sqrt(units_var)
    z = normal_point(0.9)
    wide = exp(hypot(sigma, units_sd / units) * z)
    early, late = min(period * work / (units * wide), period), max(period * work * wide / units, period)
    sides, whole = Fraction(round(z * sqrt(usd_var), 2)), plan["total_usd"].money()
    first = max(spot, key=lambda w: w.count * w.paid)
    done = None if bench.deadline is None else Near(_p_done(work, units, units_sd, sigma), 1e-4, 1e-5)
    told = plan["launch"]
    saved = checkpoints(bench, first.run)
    return {
        "strategy": "spot_in_fleet", "p_meet_deadline": done, "p_meet_spot_only_ratio": None,
        "p_on_demand_needed_ratio": 0.0, "expected_cost_usd": Exactly(whole),
        "cost_p10_usd": Near(max(whole - sides, Fraction(0)), 1e-5, 0.011),
        "cost_p90_usd": Near(whole + sides, 1e-5, 0.011),
        "expected_hours": Exactly(plan["hours"].money()), "p10_hours": Near(early, 1e-5), "p90_hours": Near(late, 1e-5),
        "finish_p10": frame.finish(bench, told["p10_hours"].number()),
        "finish_p90": frame.finish(bench, told["p90_hours"].number()),
        "expected_interruptions": Near(sum(w.run.interruptions * runs_of(w) for w in spot), _RATIO),
        "spot_hours": Near(sum(w.count * w.paid for w in spot), _RATIO),
        "on_demand_hours": Near(sum(w.count * w.paid for w in workers if not w.buy.offer.is_spot), _RATIO, 1e-8),
        "waiting_hours": Near(sum(w.count * w.hours * (1.0 - w.paid_ratio) for w in spot), _RATIO, 1e-7),
        "lost_hours": Near(sum(w.run.lost * runs_of(w) for w in spot), _RATIO),
        "on_demand_acquire_s": Near(bench.work.figures["on_demand_acquire_s"]), "checkpoints": saved,
        "places": [place(bench, w.buy.offer, w.buy.nodes, Near(w.count * w.paid, _RATIO)) for w in spot], "why": [],
        "notes": [SUMMED], "replay": None,
    }  # fmt: skip


def _spread(bench: Bench, worker: Worker) -> float:
    """Standard deviation of the work of a line's workers together, over its mean."""
    pool = bench.capacity(worker.buy.offer, worker.buy.nodes)[0]
    load = pool.rate * pool.wait
    up = 1.0 / (1.0 + load)
    alone = 2.0 * load * pool.wait * pool.dispersion * up**3 * worker.hours / worker.count
    level = up * (1.0 - up) * pool.frailty_sd * worker.hours
    return sqrt(alone + level * level) / (up * worker.hours)


def _p_done(work: float, units: float, units_sd: float, sigma: float) -> float:
    """P(the fleet does the work) over forty-one speeds."""
    out = 0.0
    for number in range(_SPEEDS):
        slower = exp(-sigma * normal_point((number + 0.5) / _SPEEDS))
        out += normal((units * slower - work) / max(units_sd * slower, 1e-9 * work))
    return out / _SPEEDS
