"""`planner forecast` as a user types it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, CliResult
from tests.focus_company import make_company
from tests.focus_company.shared import small_company
from tests.one_bill import opened_once

Run = Callable[..., CliResult]
COSTS = str(ROOT / "examples" / "daily-costs.csv")


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small company's bill."""
    folder = tmp_path_factory.mktemp("bill")
    make_company(2, 7, 1000, out=folder)
    return str(folder)


def test_a_bill_by_team_with_a_scenario_and_a_fiscal_year(run_cli: Run, bill: str) -> None:
    found = run_cli("forecast", "--focus", bill, "--by", "tag:team", "--scenario", "price=-20%",
                "--fiscal-start", "02", "-o", "json")  # fmt: skip
    assert found.code == 0, found.stderr
    values = json.loads(found.stdout)
    assert values["currency"] == "USD" and "research" in {one["scope"] for one in values["scopes"]}
    first = values["scopes"][0]["periods"][0]
    assert first["period"].startswith("FY2027 P") and first["scenario_factor"] == pytest.approx(0.8)
    assert first["low"] < first["expected"] < first["high"]


def test_a_last_day_years_after_the_others_is_named(run_cli: Run, tmp_path: Path) -> None:
    """One digit typed wrong ended in an internal error, where more years lay between than a forecast looks at."""
    path = tmp_path / "daily.csv"
    whole = "".join(Path(COSTS).read_text(encoding="utf-8").splitlines(keepends=True)[-200:])
    path.write_text(f"date,scope,cost\n{whole}2044-10-23,data,336.70\n", encoding="utf-8")
    found = run_cli("forecast", "--daily", str(path), "--horizon", "0")
    assert found.code == 0, found.stderr
    assert "no day between 2026-11-18 and 2044-10-23 has a cost" in found.unwrapped


def test_formats_agree(run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]) -> None:
    asked_once("planner.finops.forecast.answer.forecast_scopes")
    arguments = ("forecast", "--daily", COSTS, "--currency", "EUR", "--periods", "2", "--horizon", "0")
    values = json.loads(run_cli(*arguments, "-o", "json").stdout)
    assert yaml.safe_load(run_cli(*arguments, "-o", "yaml").stdout) == values
    rows = list(csv.DictReader(io.StringIO(run_cli(*arguments, "-o", "csv").stdout)))
    told = [one for scope in values["scopes"] for one in scope["periods"]]
    assert [float(row["expected"]) for row in rows] == pytest.approx(
        [one["expected"] for one in told], rel=1e-6
    )
    assert len(rows) == 5 * 2 and rows[0]["currency"] == "EUR"
    assert "EUR" in run_cli(*arguments, "-o", "md").stdout
    out = tmp_path / "f.csv"
    assert run_cli(*arguments, "-o", "focus", "--out", str(out)).stdout == ""
    focus = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["BillingCurrency"] for row in focus} == {"EUR"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "either with --focus"),
        (("--daily", "none.csv"), "no such file"),
        (("--daily", COSTS, "--scenario", "price=5"), "write price=-20%"),
        (("--daily", COSTS, "--by", "team"), "by their column scope"),
        (("--daily", COSTS, "--plans", "none*.json"), "no such file"),
        (("--daily", COSTS, "--fiscal-start", "13"), "01 to 12"),
        (("--daily", COSTS, "--vintages", COSTS), "no column 'reported'"),
        (("--daily", COSTS, "--period", "year", "--periods", "9"), "at most 750: ask for fewer periods"),
        (("--daily", COSTS, "--level", "99%"), "at most 0.98"),
    ],
)
def test_bad_input_is_named(run_cli: Run, arguments: tuple[str, ...], said: str) -> None:
    found = run_cli("forecast", *arguments)
    assert found.code == 2 and said in found.stderr and not found.stdout and "Traceback" not in found.stderr


def test_years_need_no_other_option(run_cli: Run) -> None:
    """Three years, the default of months, are further ahead than a forecast reaches: it always ended in an error."""
    found = run_cli("forecast", "--daily", COSTS, "--period", "year", "--horizon", "0", "-o", "json")
    total = json.loads(found.stdout)["scopes"][0]
    assert found.code == 0 and [one["period"] for one in total["periods"]] == ["2026", "2027"]


def test_plans_are_not_added_to_costs_that_name_no_currency(run_cli: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run_cli("optimize", str(ROOT / "examples" / "resnet50-imagenet.yaml"), "-o", "json", "--out", str(plan))
    found = run_cli("forecast", "--daily", COSTS, "--plans", str(plan))
    assert (
        found.code == 2 and "the costs name no currency" in found.stderr and "--currency USD" in found.stderr
    )
    assert run_cli("forecast", "--daily", COSTS, "--plans", str(plan), "--currency", "USD").code == 0


def test_late_last_days_are_left_out_and_said(run_cli: Run, tmp_path: Path) -> None:
    text = Path(COSTS).read_text()
    cut = text[: text.index("2026-11-18")] + "2026-11-18,platform,3\n"
    (tmp_path / "late.csv").write_text(cut)
    found = run_cli("forecast", "--daily", str(tmp_path / "late.csv"))
    assert "cost known to 2026-11-17; the last day is left out" in found.unwrapped
    kept = run_cli("forecast", "--daily", str(tmp_path / "late.csv"), "--drop-days", "0")
    assert "cost known to 2026-11-18" in kept.stdout


def test_plan_as_focus_rows(run_cli: Run, tmp_path: Path) -> None:
    workload = str(ROOT / "examples" / "resnet50-imagenet.yaml")
    rows = list(csv.DictReader(io.StringIO(run_cli("optimize", workload, "-o", "focus").stdout)))
    plan = json.loads(run_cli("optimize", workload, "-o", "json").stdout)
    assert sum(float(row["EffectiveCost"]) for row in rows) == pytest.approx(float(plan["total_usd"]))
    assert {json.loads(row["Tags"])["run_id"] for row in rows} == {plan["run_id"]}
    assert all(
        row["x_row_kind"] == "plan" and "plan, not charged" in row["ChargeDescription"] for row in rows
    )


def test_commitments_that_end_cost_more_from_then_on(run_cli: Run, bill: str) -> None:
    arguments = ("forecast", "--focus", bill, "--by", "provider", "--periods", "4", "-o", "json")
    with opened_once():
        kept, ended = (json.loads(run_cli(*arguments, *more).stdout) for more in ((), ("--commitments-end",)))
    assert not kept["plans"] and ended["plans"]
    for before, after in zip(kept["scopes"], ended["scopes"], strict=True):
        own = [one for one in ended["plans"] if before["scope"] in ("total", one["scope"])]
        first = min((one["start"] for one in own), default="9999")
        for one, other in zip(before["periods"], after["periods"], strict=True):
            changed = other["expected"] - one["expected"]
            assert changed == pytest.approx(other["planned"], abs=1e-6)
            assert (changed != 0) == (other["end"] > first[:10]) or not own
    assert run_cli("forecast", "--daily", COSTS, "--commitments-end").code == 2


def test_saved_forecasts_are_scored(run_cli: Run, tmp_path: Path) -> None:
    text = Path(COSTS).read_text()
    early = tmp_path / "early.csv"
    early.write_text(text[: text.index("2026-09-12")])
    saved = tmp_path / "saved.json"
    assert run_cli("forecast", "--daily", str(early), "-o", "json", "--out", str(saved)).code == 0
    scored = run_cli("forecast", "--daily", COSTS, "--score", str(saved), "-o", "json")
    values = json.loads(scored.stdout)
    total = values["scopes"][0]
    assert total["scope"] == "total" and total["count"] == 3 and total["error_ratio"] < 0.1
    assert {one["period"] for one in values["scores"]} == {"2026-09", "2026-10", "next 30 days"}
    assert "interval held" in run_cli("forecast", "--daily", COSTS, "--score", str(saved)).stdout.lower()
    nothing = run_cli("forecast", "--daily", str(early), "--score", str(saved))
    assert nothing.code == 2 and "no period of the saved forecasts is over" in nothing.stderr


def test_what_a_shell_makes_of_a_glob_is_one_bill(run_cli: Run) -> None:
    files = [str(path) for path in small_company().files]
    apart = run_cli("forecast", "--focus", *files, "-o", "csv")
    assert apart.code == 0
    assert (
        apart.stdout
        == run_cli("forecast", "--focus", str(small_company().files[0].parent), "-o", "csv").stdout
    )
