"""`planner diff`: two plans, or the prices of two days; and the CI files that use it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import planner
from planner.cli import root
from planner.plan.diff import diff_plans
from planner.render import render_answer
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
BERT = ROOT / "examples" / "bert-large.yaml"
DAY = "2026-11-20"
CI = ROOT / "examples" / "ci"


@pytest.fixture(scope="module")
def plans() -> tuple[planner.Plan, planner.Plan]:
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings

    other = with_settings(load_workload(BERT), ["constraints.providers=[gcp]"])
    return planner.optimize(BERT, as_of=DAY), planner.optimize(other, as_of=DAY)


@pytest.fixture
def saved(plans: tuple[planner.Plan, planner.Plan], tmp_path: Path) -> tuple[str, str]:
    first, second = (plan.save(tmp_path / f"{name}.json") for name, plan in zip("ab", plans, strict=True))
    return str(first), str(second)


def test_a_plan_differs_from_itself_in_nothing(saved: tuple[str, str], run_cli: Run) -> None:
    result = run_cli("diff", saved[0], saved[0], "--fail-above", "0usd", "-o", "json")
    found = json.loads(result.stdout)
    assert result.code == 0 and found["changes"] == [] and "nothing differs" in found["verdict"]


def test_what_is_new_gone_and_changed_adds_up(plans: tuple[planner.Plan, planner.Plan]) -> None:
    old, new = plans
    found = diff_plans(old, new, "a", "b")
    marks = {change.mark for change in found.changes}
    assert marks == {"~", "+", "-"}
    of_lines = [c.change_usd for c in found.changes if c.change_usd is not None and c.what != "expected cost"]
    assert sum(of_lines, Decimal(0)) == new.total_usd - old.total_usd == found.change_usd
    assert "gcp/" in found.report().title and "instead of" in found.report().title
    back = diff_plans(new, old, "b", "a")
    assert back.change_usd == -(new.total_usd - old.total_usd)
    swap = {"+": "-", "-": "+", "~": "~"}
    assert sorted((swap[c.mark], c.what) for c in back.changes) == sorted(
        (c.mark, c.what) for c in found.changes
    )


def test_people_read_the_digits_known_and_programs_all(plans: tuple[planner.Plan, planner.Plan]) -> None:
    found = diff_plans(*plans, "a", "b")
    shown, exact = (
        str(render_answer(found.report(), "table", width=100)),
        str(render_answer(found.report(), "json")),
    )
    cost = found.new.usd_words
    assert (
        f"to {cost}," in found.report().title and cost in shown and len(cost.strip("$").replace(",", "")) <= 4
    )
    assert f"${plans[1].total_usd:,.2f}" not in shown and f"${plans[1].total_usd:,.2f}" in exact
    assert json.loads(exact)["change_usd"] == str(found.change_usd)


def test_more_than_tenfold_is_a_factor(plans: tuple[planner.Plan, planner.Plan]) -> None:
    dear = replace(plans[1], total_usd=plans[0].total_usd * 334)
    assert "(x 330) to" in diff_plans(plans[0], dear, "a", "b").report().title


def test_a_change_below_what_is_known_is_still_seen(plans: tuple[planner.Plan, planner.Plan]) -> None:
    old = plans[0]
    new = replace(old, total_usd=old.total_usd + Decimal("0.60"))
    [change] = diff_plans(old, new, "a", "b").changes
    assert change.words[0] != change.words[1]
    assert "cost +$0.60 " in diff_plans(old, new, "a", "b").report().title


@pytest.mark.parametrize(("limit", "code"), [("0.1%", 5), ("1usd", 5), ("100000%", 0), ("1000000 USD", 0)])
def test_a_rise_above_the_limit_is_exit_5(
    limit: str, code: int, saved: tuple[str, str], run_cli: Run
) -> None:
    result = run_cli("diff", *saved, "--fail-above", limit)
    assert result.code == code and result.stdout
    assert run_cli("diff", *reversed(saved), "--fail-above", limit).code == 0  # a fall never fails


def test_no_plan_any_more_fails_the_gate(
    plans: tuple[planner.Plan, planner.Plan], tmp_path: Path, run_cli: Run
) -> None:
    none = planner.optimize(BERT, as_of=DAY)
    none = replace(
        none, status="infeasible", lines=(), total_usd=Decimal(0), finish_expected=None, performance=None
    )
    found = diff_plans(plans[0], none, "a", "b")
    assert found.report().title.endswith("no longer has a plan") and found.change_usd is None


def test_markdown_is_a_comment(saved: tuple[str, str], run_cli: Run) -> None:
    text = run_cli("diff", *saved, "-o", "md").stdout
    assert text.startswith("### bert-large-pretrain: cost +$") and "| \\~ |" in text


def test_days_without_prices_are_exit_4_and_name_those_held(run_cli: Run) -> None:
    result = run_cli("diff", str(BERT), "--as-of", "2020-01-01", "--as-of", DAY)
    assert result.code == 4 and "aws: 2026-07-22" in result.stderr and not result.stdout


@pytest.mark.parametrize("args", [(str(BERT),), (str(BERT), "--as-of", DAY), ("a", "b", "c")])
def test_other_questions_say_how_to_ask(args: tuple[str, ...], run_cli: Run) -> None:
    result = run_cli("diff", *args)
    assert result.code == 2 and "planner diff A.json B.json" in result.stderr


@pytest.mark.parametrize("rise", ["5", "-1%", "five", "5 eur"])
def test_a_rise_is_a_share_or_an_amount(rise: str, run_cli: Run) -> None:
    result = run_cli("diff", "a.json", "b.json", "--fail-above", rise)
    assert result.code == 2 and "write it as 5% or 500usd" in result.stderr


def test_the_github_file_has_the_shape_of_a_workflow() -> None:
    flow = yaml.load((CI / "github-actions.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    assert set(flow) <= {"name", "on", "permissions", "env", "jobs"} and "pull_request" in flow["on"]
    for job in flow["jobs"].values():
        assert isinstance(job["runs-on"], str)
        for step in job["steps"]:
            assert set(step) <= {"name", "id", "if", "env", "uses", "with", "run"} and ("uses" in step) != (
                "run" in step
            )
    runs = [step["run"] for job in flow["jobs"].values() for step in job["steps"] if "run" in step]
    _commands_parse("\n".join(runs))


def test_the_gitlab_file_has_the_shape_of_a_pipeline() -> None:
    pipeline = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))
    (job,) = pipeline.values()
    allowed = {"image", "stage", "rules", "variables", "before_script", "script", "after_script", "artifacts"}
    assert set(job) <= allowed and all(isinstance(line, str) for line in job["script"])
    assert all(isinstance(value, str) for value in job["variables"].values())
    assert all({"if", "changes"} >= set(rule) for rule in job["rules"])
    _commands_parse("\n".join(job["script"]))


def _commands_parse(script: str) -> None:
    """Every `planner` line names a command and options that there are."""
    lines = [line.strip() for line in script.splitlines() if line.strip().startswith("planner ")]
    assert len(lines) == 3
    for line in lines:
        _, name, *words = shlex.split(line)
        command: Any = root.get_command(click.Context(root), name)
        assert command.make_context(name, words)
