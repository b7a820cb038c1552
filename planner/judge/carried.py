"""Hazards that a plan carries for `planner advise`: whole as they were written, and of the spells that the plan states.

The fit behind them is not done again: of a place without a record their mean spells are the place's own figures, which
are recomputed; of a recorded one they follow from the same records as those figures and may differ by a small factor.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

from planner.judge.findings import STATED, IfStated, Near

if TYPE_CHECKING:
    from planner.judge.document import Node

RECORDED_FACTOR = 3.0
"""How far the mean spell of a recorded place's table may be from the figure beside it: figures are kept at a few gangs
and flat beyond them, tables follow the exponent of the gang (all recorded places at 1 to 400 machines: up to 2.6)."""
_RATIO = 1e-6


def hazards_of(plan: Node, at: int) -> dict[str, Any]:
    """What the plan must say of the hazards of place `at`."""
    places = plan["launch"]["places"]
    if at >= len(places) or "hazards" not in places[at] or places[at]["hazards"].is_null:
        return {"hazards": IfStated(None)}
    place = places[at]
    hazards, factor = place["hazards"], 1.0
    if place["evidence"].text().startswith("recorded: "):
        factor = RECORDED_FACTOR
    edges = [edge.number() for edge in hazards["age_edges_hours"]]
    sides = (("down_per_hour", "mean_up_hours"), ("up_per_hour", "mean_wait_hours"))
    return {
        "hazards": {
            **dict.fromkeys(hazards.keys(), STATED),
            **{side: _side(hazards[side], edges, place[mean], factor) for side, mean in sides},
            "sha256": _sha256(hazards.value),
        }
    }


def _side(hazards: Node, edges: list[float], mean: Node, factor: float) -> list[Near]:
    """The hazards themselves where their mean spell is the place's, else moved to it."""
    values = [hazard.number() for hazard in hazards]
    if mean.is_null or len(values) != len(edges):
        return [Near(value, _RATIO) for value in values[: len(edges)]]
    off = _mean_hours(values, edges) / mean.number()
    allowed = factor if factor > 1.0 else 1.0 + _RATIO
    move = off if abs(log(max(off, 1e-300))) > log(allowed) else 1.0
    return [Near(value * move, _RATIO) for value in values]


def _mean_hours(hazards: list[float], edges: list[float]) -> float:
    """Mean length of a spell whose hazard is constant between edges: the integral of its survival."""
    whole, alive = 0.0, 1.0
    for hazard, (low, high) in zip(hazards, pairwise([*edges, inf]), strict=True):
        rate = max(hazard, 1e-9)
        left = alive * exp(-rate * (high - low))
        whole, alive = whole + (alive - left) / rate, left
    return whole


def _sha256(values: dict[str, Any]) -> str:
    content = {key: value for key, value in values.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
