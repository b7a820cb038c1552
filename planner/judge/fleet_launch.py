"""The section `launch` of a fleet with spot: sums over its workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.judge import frame
from planner.judge.bench import Bench
from planner.judge.document import Node
from planner.judge.findings import Exactly, IfStated, Near
from planner.judge.fleet_spread import Spread
from planner.judge.fleet_workers import Worker, runs_of
from planner.judge.launch_figures import checkpoints, place

_RATIO = 1e-6
SUMMED = "hours are summed over workers; the finish is that of all work at this size of the fleet"


def launch_of(
    bench: Bench, plan: Node, workers: Sequence[Worker], spread: Spread, done: Near | None
) -> dict[str, Any] | None:
    """The section `launch`: sums of many workers; `done`: the chance of the deadline."""
    spot = [worker for worker in workers if worker.buy.offer.is_spot]
    if not spot:
        return None
    whole = plan["total_usd"].money()
    first = max(spot, key=lambda w: w.count * w.paid)
    early, late = spread.hours
    launch = plan["launch"]
    saved = checkpoints(bench, first.run)
    return {
        "strategy": "spot_in_fleet", "p_meet_deadline": done, "p_meet_spot_only_ratio": None,
        "p_on_demand_needed_ratio": 0.0, "expected_cost_usd": Exactly(whole),
        "cost_p10_usd": spread.usd[0], "cost_p90_usd": spread.usd[1],
        "expected_hours": Exactly(plan["hours"].money()), "p10_hours": Near(early, 1e-5), "p90_hours": Near(late, 1e-5),
        "finish_p10": frame.finish(bench, launch["p10_hours"].number()),
        "finish_p90": frame.finish(bench, launch["p90_hours"].number()),
        "expected_interruptions": Near(sum(w.run.interruptions * runs_of(w) for w in spot), _RATIO),
        "spot_hours": Near(sum(w.count * w.paid for w in spot), _RATIO),
        "on_demand_hours": Near(sum(w.count * w.paid for w in workers if not w.buy.offer.is_spot), _RATIO, 1e-8),
        "waiting_hours": Near(sum(w.count * w.hours * (1.0 - w.paid_ratio) for w in spot), _RATIO, 1e-7),
        "lost_hours": Near(sum(w.run.lost * runs_of(w) for w in spot), _RATIO),
        "on_demand_acquire_s": Near(bench.work.figures["on_demand_acquire_s"]), "checkpoints": saved,
        "places": [
            place(bench, w.buy.offer, w.buy.nodes, Near(w.count * w.paid, _RATIO))
            | {"records": None, "hazards": IfStated(None)}
            for at, w in enumerate(spot)
        ], "why": [],
        "notes": [SUMMED], "replay": None, "first_wait_hours": 0.0,
        "p_on_demand_had_ratio": None,
    }  # fmt: skip
