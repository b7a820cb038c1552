"""The public API as a notebook or a program uses it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import planner
from planner.errors import InputError
from planner.inputs.load import LoadedWorkload
from planner.inputs.pipeline_load import LoadedPipeline
from planner.inputs.portfolio_load import LoadedPortfolio
from tests.architecture.modules import ROOT

EXAMPLES = ROOT / "examples"
DAY = "2026-11-20"
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module")
def plan() -> planner.Plan:
    return planner.optimize(EXAMPLES / "bert-large.yaml", as_of=DAY)


def test_a_file_is_loaded_as_what_it_says_it_is() -> None:
    assert isinstance(planner.load(EXAMPLES / "bert-large.yaml"), LoadedWorkload)
    assert isinstance(planner.load(str(EXAMPLES / "portfolio.yaml")), LoadedPortfolio)
    assert isinstance(planner.load(EXAMPLES / "pipeline.yaml"), LoadedPipeline)


def test_a_plan_reads_in_one_line_and_in_full(plan: planner.Plan) -> None:
    assert repr(plan).startswith("<Plan: Cheapest feasible plan") and "\n" not in repr(plan)
    assert str(plan) == plan.render("table")
    assert plan._repr_html_().startswith("<div") and "<script" not in plan._repr_html_()


def test_a_plan_becomes_a_frame_with_exact_money(plan: planner.Plan) -> None:
    frame = plan.to_frame()
    costs = frame.loc[frame["row"] == "line", "cost_usd"]
    assert sum(costs, Decimal(0)) == plan.total_usd


def test_a_plan_comes_back_from_its_values(plan: planner.Plan) -> None:
    assert planner.Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("ending", ["json", "csv", "yaml", "md", "html", "xlsx", "txt"])
def test_the_ending_names_the_format(plan: planner.Plan, ending: str, tmp_path: Path) -> None:
    saved = plan.save(tmp_path / f"plan.{ending}")
    assert saved.stat().st_size > 500
    if ending == "xlsx":
        assert openpyxl.load_workbook(saved).sheetnames


def test_an_ending_without_a_format_is_named(plan: planner.Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"plan\.docx.*known are .*\.csv"):
        plan.save(tmp_path / "plan.docx")
    assert list(tmp_path.iterdir()) == []


def test_the_objective_can_be_changed(plan: planner.Plan) -> None:
    fast = planner.optimize(EXAMPLES / "bert-large.yaml", as_of=DAY, objective="time")
    assert fast.hours < plan.hours and fast.total_usd > plan.total_usd


def test_a_loaded_workload_serves_more_than_one_question(plan: planner.Plan) -> None:
    loaded = planner.load(EXAMPLES / "bert-large.yaml")
    assert planner.optimize(loaded, as_of=DAY).total_usd == plan.total_usd
    points = planner.frontier(loaded, as_of=DAY).to_frame()
    assert (points["cost_usd"].astype(float).diff().dropna() <= 0).all()


def test_a_plan_is_compared_with_a_saved_one(plan: planner.Plan, tmp_path: Path) -> None:
    found = planner.diff(plan, plan.save(tmp_path / "plan.json"))
    assert found.change_usd == 0 and found.changes == () and repr(found).startswith("<PlanDiff: ")


def test_the_most_within_a_budget(plan: planner.Plan) -> None:
    budget = float(plan.total_usd) * 3
    soonest = planner.optimize(EXAMPLES / "bert-large.yaml", as_of=DAY, best_within=budget)
    assert soonest.hours < plan.hours and float(soonest.total_usd) <= budget
    with pytest.raises(InputError, match="must be a number above 0"):
        planner.optimize(EXAMPLES / "bert-large.yaml", as_of=DAY, best_within=0)


def test_a_choice_is_explained(plan: planner.Plan) -> None:
    found = planner.explain(EXAMPLES / "bert-large.yaml", as_of=DAY, draws=20, why_not="p4d.24xlarge")
    assert found.plan.total_usd == plan.total_usd and found.why_not[0][0] == "p4d.24xlarge"
    frame = found.to_frame()
    assert {"limit", "rival", "lost", "filter"} <= set(frame["row"]) and "<div" in found._repr_html_()
    with pytest.raises(InputError, match="must be a whole number at least 0"):
        planner.explain(EXAMPLES / "bert-large.yaml", draws=-1)


def test_a_file_is_validated_and_a_need_is_sized() -> None:
    assert repr(planner.validate(EXAMPLES / "bert-large.yaml", as_of=DAY)).startswith("<Valid: ")
    found = planner.size("100GB", "image_classification", as_of=DAY)
    assert repr(found).startswith("<Size: ") and len(found.to_frame()) > 0


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"is a portfolio, a workload is needed; use planner\.portfolio\(\)"):
        planner.optimize(EXAMPLES / "portfolio.yaml")


@pytest.mark.parametrize("day", ["20.11.2026", "2026-13-01", ""])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(InputError, match="is not a date; write it as 2026-11-20"):
        planner.optimize(EXAMPLES / "bert-large.yaml", as_of=day)


@pytest.mark.parametrize("month", ["2026-13", "2026-1", "10/2026", "October 2026", ""])
def test_a_month_that_is_none_is_refused(month: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"{month!r} is not a month; write it as 2026-10")):
        planner.review(EXAMPLES / "focus", month=month)


def test_every_function_answers_in_the_same_way(tmp_path: Path) -> None:
    bill = EXAMPLES / "focus" / "bill-2026-10.csv.gz"
    answers: list[Any] = [
        planner.estimate(EXAMPLES / "bert-large.yaml", "p4d.24xlarge", nodes=[1, 2]),
        planner.pipeline(EXAMPLES / "pipeline.yaml", as_of=DAY),
        planner.portfolio(EXAMPLES / "portfolio.yaml", as_of=DAY, time_limit_s=20.0),
        planner.review(bill, month="2026-10", forecast=False),
        planner.forecast(daily=EXAMPLES / "daily-costs.csv", currency="USD"),
    ]
    for answer in answers:
        assert repr(answer).startswith(f"<{type(answer).__name__}: ") and "\n" not in repr(answer)
        assert str(answer) and "<div" in answer._repr_html_()
        saved = answer.save(tmp_path / "answer.json").read_text(encoding="utf-8")
        assert json.loads(saved).keys() == answer.to_dict().keys()
        assert len(answer.to_frame()) > 0


def test_importing_the_package_imports_nothing_else() -> None:
    own = "('planner', 'numpy', 'pandas', 'pydantic')"
    code = f"import sys, planner; print(sorted(name for name in sys.modules if name.startswith({own})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    light = ["planner", "planner.asked", "planner.asked.early", "planner.version"]
    assert done.stdout.strip() == str(light)


def test_completion_offers_public_names_alone() -> None:
    assert dir(planner) == sorted(planner.__all__)


def test_a_wrong_argument_names_the_function() -> None:
    with pytest.raises(TypeError, match=r"validate\(\) got an unexpected keyword argument 'deadline'"):
        planner.validate("w.yaml", deadline="2d")  # type: ignore[call-arg]


def test_no_module_hides_a_function() -> None:
    names = [name for name in planner.__all__ if not name.startswith("_")]
    assert [
        n for n in names if (ROOT / "planner" / n).exists() or (ROOT / "planner" / f"{n}.py").exists()
    ] == []
    assert set(names) <= set(dir(planner))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = planner.nothing
