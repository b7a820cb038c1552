"""Writes the proof of a commitment answer as whole numbers, for `planner verify` (kind `benders`).

The certificate holds the question (prices in micro-dollars, demand in thousandths of a unit), the point, and for every
cut that carries weight in the bound the point it was made at and the plans' prices in every hour. The checker makes the
cuts anew from these, so nothing of the solver's arithmetic has to be believed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.model import CommitModel, Hours
from planner.commitments.recourse import Recourse
from planner.commitments.solve import Solved, solve_commit
from planner.errors import InputError
from planner.plan.certificates import VERSION
from solvers.search.master import risk_weights

MICRO = 10**6  # micro-dollars per dollar
MILLI = 10**3  # parts of a unit
BITS = 40  # of the multipliers
PRICE_BITS = 30  # of the plans' prices
OFF = 1e-4  # how far from a whole number a scaled value may be


def build_certificate(model: CommitModel, solved: Solved) -> dict[str, Any]:
    """Return the certificate of an answer.

    Raises:
        ValueError: a price is not a whole number of micro-dollars, or a demand none of thousandths.
    """
    content: dict[str, Any] = {
        "certificate_version": VERSION,
        "kind": "benders",
        "model": _model(model),
        "point": [float(value) for value in solved.x],
        "point_prices": _prices(_by_block(Recourse(model), solved.x)) if model.n_plans > 1 else None,
        **_proof(model, solved),
    }
    from planner.plan.certificates.benders import exact_bound, exact_objective

    objective, bound = exact_objective(content), exact_bound(content)
    high, low = _above(float(objective), objective), _below(float(bound), bound)
    content |= {
        "objective": high,
        "bound": low,
        "gap_ratio": max(0.0, (high - low) / high) if high > 0 else 0.0,
    }
    return content


def write_certificate(
    path: Path, model: CommitModel, solved: Solved, *, mode: int | None = None
) -> dict[str, Any]:
    """Write the certificate to `path`, with these permissions where they are given, and return it.

    Raises:
        InputError: the file cannot be written, or the numbers are too fine for a certificate.
    """
    from planner.files import write_atomically

    try:
        content = build_certificate(model, solved)
    except ValueError as error:
        raise InputError(f"{path}: no certificate can be made: {error}") from error
    write_atomically(path, json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n", mode=mode)
    return content


def _by_block(recourse: Recourse, x: Floats) -> list[Floats]:
    """The plans' optimal prices per hour at `x`, one array `(n, K)` per block of hours."""
    hours, out = recourse.model.hours, dict[int, Floats]()
    for numbers, prices in recourse.batches(x):
        ends = np.cumsum([len(hours[number].weight) for number in numbers])
        out |= zip(numbers, np.split(prices, ends[:-1]), strict=True)
    return [out[number] for number in range(len(hours))]


def _prices(prices: Sequence[Floats]) -> list[list[list[int]]]:
    return [np.floor(price * 2**PRICE_BITS).astype(np.int64).tolist() for price in prices]


def _above(value: float, exact: Any) -> float:
    return value if exact <= value else math.nextafter(value, math.inf)


def _below(value: float, exact: Any) -> float:
    return value if exact >= value else math.nextafter(value, -math.inf)


def _model(model: CommitModel) -> dict[str, Any]:
    return {
        "on_demand_micro_usd": _whole(model.on_demand_usd, MICRO, "a price"),
        "plan_rate_micro_usd": [_rates(row) for row in model.plan_rate_usd],
        "columns": [
            {
                "key": str(column.key), "cost_usd": float(column.cost_usd), "upper": float(column.upper),
                "pool": column.pool, "plan": column.plan, "capacity": float(column.capacity),
                "upfront_usd": float(column.upfront_usd), "periods": list(column.periods), "whole": bool(column.whole),
                "now": column.is_active(0),
            }
            for column in model.columns
        ],
        "hours": [_hours(block) for block in model.hours],
        "probability": [float(value) for value in model.probability],
        "risk_weight": float(model.risk_weight),
        "risk_level": float(model.risk_level),
        "upfront_limit_usd": float(model.upfront_limit_usd) if math.isfinite(model.upfront_limit_usd) else None,
        "caps": [{"columns": list(cap.columns), "most": float(cap.most)} for cap in model.caps],
    }  # fmt: skip


def _rates(row: Floats) -> list[int | None]:
    known = np.isfinite(row)
    whole = _whole(np.where(known, row, 0.0), MICRO, "a plan's rate")
    return [value if flag else None for value, flag in zip(whole, known, strict=True)]


def _hours(block: Hours) -> dict[str, Any]:
    same = float(block.weight[0]) if len(block.weight) and (block.weight == block.weight[0]).all() else None
    spot = block.spot_cap is not None and block.spot_usd is not None
    return {
        "scenario": block.scenario,
        "period": block.period,
        "weight": same if same is not None else [float(value) for value in block.weight],
        "demand_milli": _whole(block.demand, MILLI, "a demand"),
        "spot_cap_milli": _whole(block.spot_cap, MILLI, "a spot capacity") if spot else None,
        "spot_micro_usd": _whole(block.spot_usd, MICRO, "a spot price") if spot else None,
        "owned_plan_micro_usd": None
        if block.owned_plan_usd is None
        else _whole(block.owned_plan_usd, MICRO, "an owned plan"),
    }


def _whole(values: Any, scale: int, what: str) -> Any:
    scaled = np.asarray(values, dtype=np.float64) * scale
    rounded = np.rint(scaled)
    if not np.isfinite(scaled).all() or np.abs(scaled - rounded).max(initial=0.0) > OFF * np.maximum(
        1.0, np.abs(scaled) * 1e-9
    ).max(initial=0.0):
        raise ValueError(f"{what} is not a whole number of 1/{scale}")
    return rounded.astype(np.int64).tolist()


def _proof(model: CommitModel, solved: Solved) -> dict[str, Any]:
    """The cuts with weight, their weights, and those of the scenarios in CVaR and of the upfront limit."""
    found = solved.benders
    if found is None:  # the closed form keeps no multipliers; the decomposition finds them at once
        found = solve_commit(model, gap=1e-9, method="benders", start=solved.x).benders
    if found is None:  # nothing is on sale: one cut of each scenario is its cost
        points, weights, row_weights = np.zeros((1, 0)), np.ones((1, len(solved.recourse))), np.zeros(0)
        tail = risk_weights(solved.recourse, model.probability, model.risk_level)
    else:
        points, weights, row_weights = np.array(found.points), found.multipliers, found.row_multipliers
        tail = found.risk
    unit = 2**BITS
    share, level = Fraction(model.risk_weight), Fraction(model.risk_level)
    chance = [Fraction(float(value)) for value in model.probability]
    risk = _within([Fraction(float(value)) for value in tail], [p / (1 - level) for p in chance])
    room = [(1 - share) * p + share * Fraction(q, unit) for p, q in zip(chance, risk, strict=True)]
    multipliers = np.array([_fitted(weights[:, s], room[s]) for s in range(len(room))], dtype=object)
    # the upfront limit's, if there is one, then of caps
    of_rows = [int(weight * unit) for weight in row_weights]
    recourse, cuts = Recourse(model), []
    for number, point in enumerate(points):
        weighty = [scenario for scenario in range(len(room)) if multipliers[scenario, number]]
        prices = _by_block(recourse, point) if weighty else []
        for scenario in weighty:
            mine = _prices(
                [p for p, block in zip(prices, model.hours, strict=True) if block.scenario == scenario]
            )
            cut = {"scenario": scenario, "point": [float(value) for value in point], "prices": mine}
            cuts.append({**cut, "multiplier": int(multipliers[scenario, number])})
    return {
        "bits": BITS,
        "price_bits": PRICE_BITS,
        "cuts": cuts,
        "risk": risk,
        "upfront_multiplier": sum(of_rows[: len(of_rows) - len(model.caps)]),
        "cap_multipliers": of_rows[len(of_rows) - len(model.caps) :],
    }


def _within(weights: list[Fraction], caps: list[Fraction]) -> list[int]:
    """Round weights down to whole multiples, none above its cap and all together at most 1."""
    total = max(sum(weights, Fraction(0)), Fraction(1))
    return [int(min(weight / total, cap) * 2**BITS) for weight, cap in zip(weights, caps, strict=True)]


def _fitted(multipliers: Floats, room: Fraction) -> list[int]:
    """Round a scenario's multipliers down; solvers let their sum exceed what there is by a rounding."""
    weights = [Fraction(float(value)) for value in np.maximum(multipliers, 0.0)]
    total = sum(weights, Fraction(0))
    factor = min(Fraction(1), room / total) if total else Fraction(0)
    return [int(weight * factor * 2**BITS) for weight in weights]
