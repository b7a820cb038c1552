"""`planner optimize --quote LEVEL`: a bound of cost and end from the plan's distributions."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import planner
from planner.candidates.plan_parts.quote import tail_quantile
from planner.errors import InputError
from planner.plan.model import Plan
from planner.plan.report_quote import quote_sentence
from tests.conftest import ROOT, Run

SPOT = str(ROOT / "examples" / "images-100gb.yaml")
STEADY = ("--set", "constraints.purchase_options=[on_demand]")
DAY = "2026-11-20"
pytestmark = pytest.mark.catalog("small")


@pytest.mark.parametrize("more", [(), STEADY])
def test_a_quote_is_said_and_verified_and_a_lower_one_is_refuted(
    more: tuple[str, ...], run_cli: Run, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    run_cli("optimize", SPOT, "--quote", "95%", "--as-of", DAY, "-o", "json", "--out", str(saved), *more)
    told = json.loads(saved.read_text())
    plan, quote = Plan.from_dict(told), told["quote"]
    assert (plan.launch is None) == bool(more)
    p90 = Decimal(told["risk"]["worst_cost_usd"])
    assert quote["level_ratio"] == 0.95 and p90 < Decimal(quote["cost_usd"]) < 3 * p90
    assert quote["hours"] >= told["risk"]["worst_hours"]
    sentence = quote_sentence(plan)
    assert (
        sentence.startswith("We expect to pay at most $") and "with 95 % confidence, finishing by" in sentence
    )
    verify = ("verify", str(saved), "--workload", SPOT, *more)
    assert run_cli(*verify).code == 0
    saved.write_text(json.dumps(told | {"quote": quote | {"cost_usd": str(p90)}}))
    refuted = run_cli(*verify)
    assert refuted.code == 5
    assert "quote.cost_usd" in refuted.stdout + refuted.stderr


def test_a_wide_margin_names_its_main_reason() -> None:
    plan = planner.optimize(SPOT, as_of=DAY, quote=0.95)
    assert plan.quote is not None
    certain = tuple(replace(line, price_p90_per_hour=line.price_per_hour) for line in plan.lines)
    dear = tuple(replace(line, price_p90_per_hour=4 * line.price_per_hour) for line in plan.lines)
    wide = replace(plan, quote=replace(plan.quote, cost_usd=3 * plan.total_usd))
    said = [quote_sentence(replace(wide, lines=lines)) for lines in (certain, dear)]
    assert "most of the margin is for interruptions and longer hours" in said[0]
    assert "most of the margin is for spot prices" in said[1]
    for narrow in (plan.total_usd, Decimal("1.4") * plan.total_usd):
        assert "margin" not in quote_sentence(replace(plan, quote=replace(plan.quote, cost_usd=narrow)))


@pytest.mark.parametrize("level", ["49%", "99.95%", "95", "100%"])
def test_other_levels_are_refused(level: str, run_cli: Run) -> None:
    result = run_cli("optimize", SPOT, "--quote", level)
    assert result.code == 2 and "--quote" in result.stderr


def test_fleets_are_refused_and_levels_of_the_interface_are_checked() -> None:
    with pytest.raises(InputError, match="fleet"):
        planner.optimize(ROOT / "examples" / "hpo-fleet.yaml", as_of=DAY, quote=0.95)
    with pytest.raises(InputError, match=r"50% to 99\.9%"):
        planner.optimize(SPOT, as_of=DAY, quote=1.0)


def test_a_plan_without_a_quote_says_nothing_of_one() -> None:
    plan = planner.optimize(SPOT, as_of=DAY)
    assert "quote" not in plan.to_dict() and quote_sentence(plan) == ""


def test_the_tail_of_log_normal_outcomes_is_theirs() -> None:
    coarse = np.exp(0.4 * np.asarray([-1.593, -0.967, -0.589, -0.282, 0.0, 0.282, 0.589, 0.967, 1.593]))
    assert tail_quantile(np.repeat(coarse, 41), 0.99) > 0.95 * np.exp(0.4 * 2.326)
    levels = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]
    values = [tail_quantile(np.repeat(coarse, 41), level) for level in levels]
    assert values == sorted(values)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99, 0.999])
def test_the_log_hours_are_normal_at_every_level(level: float) -> None:
    """Capacity that comes at once leaves hardly more than the speed uncertain: one spread tells each level's hours."""
    settings = {
        "constraints.purchase_options": ["on_demand"],
        "constraints.waiting": [{"purchase_option": "*", "hours": 0}],
    }
    low, high = (planner.optimize(SPOT, as_of=DAY, settings=settings, quote=one) for one in (0.75, level))
    assert low.quote is not None and high.quote is not None
    varies = ("training_steps", "evaluation", "beside_steps", "checkpoints", "interruptions")
    work = sum(part.hours for part in low.timeline if part.id in varies)
    fixed = low.hours - work
    spread = np.log((low.quote.hours - fixed) / work) / NormalDist().inv_cdf(0.75)
    found = np.log((high.quote.hours - fixed) / work) / NormalDist().inv_cdf(level)
    assert found == pytest.approx(spread, rel=0.005)
