"""What `planner advise` would do now, asked for a run that is tracked: its plan, the work done, the measured speed.

A log says whether the run makes progress, not in which zone, nor what other zones have. So a run that goes on counts as
on spot in the plan's first place, a stalled one as waiting, and no other zone as available: the launcher knows better,
and asks `planner advise` with a state of its own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.advice.answer import advise
from planner.advice.hazards import kept_as_planned
from planner.advice.kept import kept_arrays
from planner.advice.question import build_question, usual_tick_hours
from planner.advice.saved_plan import SpotPlan, spot_plan
from planner.inputs.documents import Document
from planner.inputs.load import UnreadSource
from planner.inputs.state_load import LoadedState
from planner.inputs.state_schema import RunState
from planner.inputs.view import as_view
from planner.spot.hazards import load_hazards
from planner.tracking.model import Advised

if TYPE_CHECKING:
    from planner.tracking.answer import Tracked

_FUTURES = 200
_ON_SPOT = "the run is on spot in {zone} and that no other zone has spot now"
_WAITING = "the run has waited since its last step and that no zone has had spot since"
_SUPPOSED = "advise supposes that {what}; `planner advise` with --state knows better"


def advised_of(tracked: Tracked) -> Advised | None:
    """The decision for a run on spot with on-demand behind it and its deadline ahead; None for other runs.

    Args:
        tracked: the run.
    """
    planned = tracked.planned
    launch = planned.plan.launch
    if launch is None or launch.strategy != "spot_with_fallback" or planned.deadline is None:
        return None
    if planned.deadline <= tracked.now or tracked.left_steps <= 0:
        return None
    spot = spot_plan(planned.plan, "the plan")
    speed = tracked.speed
    spot = replace(spot, work_hours=spot.work_hours * speed.step_s / planned.pace_s)
    running = not tracked.stalled_hours
    question = build_question(
        spot, _state(tracked, spot, running), tick_hours=usual_tick_hours(spot),
        clock=max(datetime.now(UTC), tracked.now),
    )  # fmt: skip
    question, model = kept_as_planned(question, (), load_hazards)
    advice = advise(question, model, futures=_FUTURES, memory=kept_arrays)
    first = spot.places[0]
    situation = _ON_SPOT.format(zone=first.zone or first.region) if running else _WAITING
    supposed = _SUPPOSED.format(what=situation)
    chosen = advice.chosen
    return Advised(
        chosen.word,
        advice.why,
        _known(chosen.p_finish),
        _known(chosen.cost_usd),
        _known(advice.no_return_hours),
        supposed,
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _state(tracked: Tracked, spot_plan: SpotPlan, running: bool) -> LoadedState:
    """What a launcher would say, as far as the log tells it."""
    names = [place.zone or place.region for place in spot_plan.places]
    state = RunState.model_validate({
        "version": 1, "kind": "state", "now": tracked.now, "launched_at": min(tracked.planned.start, tracked.now),
        "done_ratio": min(tracked.done_steps / tracked.planned.steps, 1.0), "mode": "spot" if running else "idle",
        **({"zone": names[0]} if running else {}),
        "zones": [
            {"name": name, "available": running and not at}
            | ({"since": tracked.stalled_hours} if tracked.stalled_hours else {})
            for at, name in enumerate(names)
        ],
    })  # fmt: skip
    return LoadedState(as_view(state), Document(Path("run"), b"", UnreadSource("the run", "")))
