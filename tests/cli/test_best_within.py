"""`planner optimize --best-within` and `--solver both`."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.inputs.load import LoadedWorkload
from planner.job import milp
from planner.workloads import best_within
from planner.workloads.answer import Answer
from tests.cli.test_command_pages import run_page
from tests.conftest import ROOT, Run

BERT = "examples/bert-large.yaml"
DAY = ("--as-of", "2026-11-20")
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(autouse=True)
def _questions_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Both searches take many plans: formats, and the page, share an answer; what a fault does is asked anew."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    if request.function is not test_a_milp_that_disagrees_is_an_error:
        asked_once = request.getfixturevalue("asked_once")
        asked_once("planner.workloads.best_within.best_within")
        asked_once("planner.workloads.answer.optimize")


def test_a_large_budget_buys_the_soonest_end(run_cli: Run) -> None:
    result = run_cli("optimize", BERT, "--best-within", "20000", *DAY, "-o", "json")
    soonest = planner.optimize(BERT, as_of=DAY[1], objective="time")
    assert json.loads(result.stdout)["hours"] <= soonest.hours  # the file's own budget is smaller
    table = run_cli("optimize", BERT, "--best-within", "20000", *DAY)
    assert "Best within $20,000: all of the work, and soonest" in table.unwrapped


def test_a_small_budget_buys_as_much_as_can_be_found_with_few_plans(
    run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, str]] = []
    find = best_within.optimize

    def asked(loaded: LoadedWorkload, *given: Any, **more: Any) -> Answer:
        answer = find(loaded, *given, **more)
        seen.append((float(loaded.workload.training.tokens), answer.plan.status))
        return answer

    monkeypatch.setattr(best_within, "optimize", asked)
    args = ("optimize", BERT, "--best-within", "150", *DAY)
    found = json.loads(run_cli(*args, "-o", "json").stdout)
    assert 0.8 * 150 < float(found["total_usd"]) <= 150
    (amount,) = [one for one in found["assumptions"] if one["note"].startswith("most that $")]
    assert amount["key"].startswith("training.") and amount["origin"] == "derived"
    share = float(amount["note"].split(" buy, ")[1].split(" %")[0])
    assert 20 < share < 50
    fits = [tokens for tokens, status in seen if status == "planned"]
    lacks = [tokens for tokens, status in seen if status != "planned"]
    assert max(fits) < min(lacks) <= 1.011 * max(fits)
    assert len(seen) <= 8  # halving took a dozen
    assert "all of the work costs more" in run_cli(*args).unwrapped


def test_the_commands_of_the_page_run(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    run_page("budget-and-proof", run_cli)


@pytest.mark.parametrize("budget", ["0", "-5", "much", "nan", "inf", "1e400"])
def test_a_budget_is_an_amount_above_zero(budget: str, run_cli: Run) -> None:
    assert run_cli("optimize", BERT, "--best-within", budget, *DAY).code == 2


def test_a_budget_that_pays_for_nothing_is_exit_3(run_cli: Run) -> None:
    result = run_cli("optimize", BERT, "--best-within", "0.01", *DAY)
    assert result.code == 3 and "pay for less than a thousandth" in result.unwrapped


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_both_ways_of_solving_agree_and_the_proof_says_so(objective: str, run_cli: Run) -> None:
    args = ("optimize", BERT, "--objective", objective, *DAY, "-o", "json")
    one, both = (json.loads(run_cli(*args, "--solver", name).stdout) for name in ("enumerate", "both"))
    assert both["total_usd"] == one["total_usd"] and both["run_id"] == one["run_id"]
    proof = both["proof"]
    assert (
        proof["method"] == "exact enumeration and a MILP, which agree"
        and "scipy.optimize.milp" in proof["solver"]
    )
    table = run_cli("optimize", BERT, "--objective", objective, *DAY, "--solver", "both").unwrapped
    assert "proven and re-checked (exact enumeration and a MILP, which agree)" in table
    assert Decimal(proof["objective_usd"]) == Decimal(one["proof"]["objective_usd"]) and proof["verified"]


def test_a_milp_that_disagrees_is_an_error(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = milp._solved
    monkeypatch.setattr(milp, "_solved", lambda job, best, options: real(job, best * 1.01, options))
    result = run_cli("optimize", BERT, "--solver", "both", *DAY)
    assert result.code == 1 and "a solver fault" in result.stderr and not result.stdout
