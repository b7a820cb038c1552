"""The choice with risk of a portfolio or pipeline: its figures follow from the cost that it states for each scenario.

What the candidates cost in the scenarios is not recomputed; that their mean is the plan's expected cost is.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any

from planner.judge.findings import STATED, Findings, IfStated, Near

if TYPE_CHECKING:
    from fractions import Fraction

    from planner.inputs.risk_schema import RiskAversion
    from planner.judge.document import Node

_SLACK = 1e-5  # USD: scenarios are stated to a millionth
_STATED = ("changed", "considered", "candidates", "solver", "seconds")
_UNPLANNED = ("infeasible", "no_solution", "no_plan_in_time", "solver_fault")
_FIGURES = ("expected_usd", "worst_usd", "objective_usd")


def risk_of(
    findings: Findings, answer: Node, risk_aversion: RiskAversion | None, expected: Fraction
) -> dict[str, Any]:
    """What the section must say, nothing where the answer has none.

    Args:
        findings: where faults are noted.
        answer: the answer.
        risk_aversion: `risk` of the file; `--robust` may have set another level.
        expected: what is minimised without risk, of the plan shown.
    """
    if "risk" not in answer:
        planned = answer["status"].value not in _UNPLANNED
        findings.require(risk_aversion is None or not planned, "risk", "the file asks for it")
        return {}
    risk = answer["risk"]
    level, weight = risk["level_ratio"].number(), risk["weight_ratio"].number()
    count = risk["scenarios"].count()
    if not 0 <= level < 1:
        risk["level_ratio"].fail("a level from 0 to below 1")
    if risk_aversion is not None:
        question = (risk_aversion.weight, risk_aversion.scenarios, risk_aversion.seed)
        same = (weight, count, risk["seed"].count()) == question
        findings.require(same, risk.path, "not the weight, scenarios and seed of the file")
    chosen, plain = (
        _outcome([cost.number() for cost in risk[name]], level, weight)
        for name in ("scenario_usd", "plain_scenario_usd")
    )
    for name in ("scenario_usd", "plain_scenario_usd"):
        costs = [cost.number() for cost in risk[name]]
        findings.require(len(costs) == count, risk[name].path, "not one cost for each scenario")
        findings.require(costs == sorted(costs), risk[name].path, "not in ascending order")
        findings.saw(risk[name])
    mean = abs(chosen["expected_usd"] - float(expected)) <= _slack(float(expected))
    findings.require(mean, risk["scenario_usd"].path, "their mean is not the expected cost of the plan")
    no_worse = chosen["worst_usd"] <= plain["worst_usd"] + _slack(plain["worst_usd"])
    findings.require(no_worse, risk["worst_usd"].path, "above that of the choice by expected cost")
    bound = min(risk["bound_usd"].number(), chosen["objective_usd"])
    objective = chosen["objective_usd"]
    return {
        "risk": {
            **dict.fromkeys(_STATED, STATED), "measure": "cvar", "level_ratio": level, "weight_ratio": weight,
            "scenarios": count, "seed": risk["seed"].count(), **_near(chosen), "bound_usd": Near(bound, slack=_SLACK),
            "gap_ratio": _gap(objective, bound),
            "plain": _near(plain),
            "price_usd": Near(chosen["expected_usd"] - plain["expected_usd"], slack=2 * _slack(objective)),
            "relief_usd": Near(plain["worst_usd"] - chosen["worst_usd"], slack=2 * _slack(objective)),
            "fresh": {
                "scenarios": STATED, "seed": STATED,
                "chosen": _of_fresh(findings, risk["fresh"]["chosen"], chosen["expected_usd"], weight),
                "plain": _of_fresh(findings, risk["fresh"]["plain"], plain["expected_usd"], weight),
            },
            "scenario_usd": STATED, "plain_scenario_usd": STATED, "refused": IfStated(STATED),
        }
    }  # fmt: skip


def _gap(objective: float, bound: float) -> Near | float:
    """What is left between both, as far as the digits that they are stated with tell."""
    if objective <= 0:
        return 0.0
    return Near((objective - bound) / objective, 1e-5, 1e-9 + _SLACK / objective)


def _slack(usd: float) -> float:
    return _SLACK + 1e-9 * abs(usd)


def _near(outcome: dict[str, float]) -> dict[str, Near]:
    return {name: Near(outcome[name], slack=_slack(outcome[name])) for name in _FIGURES}


def _of_fresh(findings: Findings, stated: Node, expected: float, weight: float) -> dict[str, Any]:
    """Expected cost is that of the choice; the mean of the worst is stated and not below it."""
    worst = stated["worst_usd"].number()
    findings.require(
        worst >= expected - _slack(expected), stated["worst_usd"].path, "below the expected cost"
    )
    objective = (1.0 - weight) * expected + weight * worst
    return {
        "expected_usd": Near(expected, slack=_slack(expected)), "worst_usd": STATED,
        "objective_usd": Near(objective, slack=_slack(objective)),
    }  # fmt: skip


def _outcome(usd: list[float], level: float, weight: float) -> dict[str, float]:
    """Mean, mean of the worst `1 - level` with the outcome on the edge split, and both weighed."""
    mean = fsum(usd) / max(len(usd), 1)
    share, left, worst = 1.0 / max(len(usd), 1), 1.0 - level, 0.0
    for cost in sorted(usd, reverse=True):
        taken_share = min(share, left)
        worst += taken_share * cost
        left -= taken_share
    worst /= 1.0 - level
    return {"expected_usd": mean, "worst_usd": worst, "objective_usd": (1.0 - weight) * mean + weight * worst}
