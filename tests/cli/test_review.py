"""`planner review` from the command line: every format, files beside the bill, engines, and what goes wrong."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from tests.conftest import CliResult
from tests.focus_company.plans import write_plans, write_utilisation
from tests.focus_company.shared import small_company
from tests.planner.finops.small_bill import charge, sections_only, write_bill

pytestmark = pytest.mark.usefixtures("one_bill")

Run = Callable[..., CliResult]


@pytest.fixture
def few_sections() -> Iterator[None]:
    """For what is said above all sections: the verdict, the command of the page, files that are read."""
    with sections_only("overview"):
        yield


@pytest.fixture(scope="module")
def folder() -> str:
    return str(small_company().files[0].parent)


@pytest.mark.parametrize("fmt", ["table", "html"])
def test_text_formats(fmt: str, folder: str, run_cli: Run) -> None:
    done = run_cli("review", "--focus", folder, "--month", "2026-10", "--no-forecast", "-o", fmt)
    assert (done.code, done.stderr) == (0, "")
    assert "October 2026 cost" in done.stdout


@pytest.mark.usefixtures("few_sections")
def test_a_brief_names_the_page_that_was_asked_for(
    folder: str, run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a command beyond the length of a line is not named
    Path("a b.yaml").write_text("version: 1\nkind: budget\nbudgets:\n  - {name: all, amount: 100000}\n")
    asked = ["--month", "2026-10", "--compare", "2026-08", "--budgets", "a b.yaml", "--tags", "team"]
    done = run_cli("review", "--focus", folder, *asked, "--no-forecast", "-o", "brief")
    command = shlex.split(done.stdout.splitlines()[-1].removeprefix("Full page: "))
    at = command.index("--month")
    assert command[at : at + len(asked)] == asked


@pytest.mark.usefixtures("few_sections")
@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        (
            "{name: year, amount: 9000000, period: year}, {name: r, by: 'tag:team', scope: research, amount: 1}",
            "than September 2026. 2026 is expected to end _ % under its budget of 9,000,000 USD (0 % likely to go "
            "over). 1 of 2 budgets is over or likely to be: r.",
        ),
        ("{name: r, by: 'tag:team', scope: research, amount: 1}", "2026. The budget r is over or likely to be."),
        ("{name: q3, amount: 1, period: quarter, ends: 2026-09-30}, {name: all, amount: 9000000}", "under its budget"),
        (
            ", ".join(
                f"{{name: b{at}, by: {by}, scope: {scope}, amount: {at + 1}}}"
                for at, (by, scope) in enumerate((
                    ("provider", "AWS"), ("provider", "Microsoft"), ("provider", "Google Cloud"),
                    ("service", "AmazonEC2"), ("service", "Virtual Machines"), ("service", "Compute Engine"),
                ))
            ),
            "6 of 6 budgets are over or likely to be: b0, b1, b2, b3, b4 and 1 more.",
        ),
    ],
)  # fmt: skip
def test_the_verdict_names_every_budget_that_is_over(
    folder: str, run_cli: Run, tmp_path: Path, budgets: str, said: str
) -> None:
    """A year's budget is not the month's, and a team over its own was named on the last part of the page alone."""
    path = tmp_path / "budgets.yaml"
    path.write_text(f"version: 1\nkind: budget\nbudgets: [{budgets}]\n")
    done = run_cli(
        "review", "--focus", folder, "--month", "2026-10", "--budgets", path, "--no-forecast", "-o", "brief"
    )
    assert (done.code, done.stderr) == (0, "")
    verdict = done.stdout.splitlines()[0]
    assert said in re.sub(r"[0-9.]+ % under", "_ % under", verdict) or said in verdict, verdict


def test_usage_files_are_named_in_the_command(folder: str, run_cli: Run, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(
        "JobID|Start|ElapsedRaw|AllocTRES|NodeList\n1|2026-10-03T00:00:00|3600|gres/gpu=8|nowhere\n"
    )
    asked = ["review", "--focus", folder, "--month", "2026-10", "--no-forecast", "--usage", str(jobs)]
    with sections_only("usage"):
        done = run_cli(*asked, "-o", "json")
    (section,) = (one for one in json.loads(done.stdout)["sections"] if one["key"] == "usage")
    figures = {one["key"]: one for one in section["figures"]}
    assert (figures["usage_matched_ratio"]["value"], figures["usage_stray_hours"]["value"]) == (0, 8)
    done = run_cli("review", "--focus", folder, "--usage", str(tmp_path / "none"))
    assert (done.code, done.stdout) == (2, "") and "none: cannot be read" in done.stderr


def test_a_workbook_is_written_to_a_file(folder: str, run_cli: Run, tmp_path: Path) -> None:
    import openpyxl

    out = tmp_path / "r.xlsx"
    done = run_cli("review", "--focus", folder, "--no-forecast", "-o", "xlsx", "--out", str(out))
    assert (done.code, done.stdout) == (0, "")
    assert len(openpyxl.load_workbook(out).sheetnames) > 3


def test_what_lies_beside_the_bill(folder: str, run_cli: Run, tmp_path: Path) -> None:
    company = small_company()
    write_plans(tmp_path / "plans", company.runs)
    write_utilisation(tmp_path / "busy.csv", company.runs)
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text("version: 1\nkind: budget\nbudgets:\n  - {name: all, amount: 100000}\n")
    earlier = tmp_path / "earlier.json"
    period = {"scope": "total", "period": "2026-10", "start": "2026-10-01", "end": "2026-11-01", "days_left": 31,
              "expected": 150000.0, "low": 140000.0, "high": 160000.0}  # fmt: skip
    earlier.write_text(json.dumps({"last_day": "2026-09-30", "scopes": [{"periods": [period]}]}))
    done = run_cli(
        "review", "--focus", folder, "--plans", str(tmp_path / "plans"), "--utilisation", str(tmp_path / "busy.csv"),
        "--budgets", str(budgets), "--forecasts", str(earlier), "--measurements", str(tmp_path / "measured"), "-o",
        "json", "--month", "2026-10", "--compare", "2026-08",
    )  # fmt: skip
    assert (done.code, done.stderr) == (0, "")
    made = json.loads(done.stdout)
    text = json.dumps(made)
    assert "over its budget of 100,000 USD" in text
    assert "From August 2026 to October 2026" in text
    assert "forecast_accuracy" in text
    assert "above the forecast made with data to 30 September" in text
    assert {p.name for p in (tmp_path / "measured").iterdir()} == {
        f"{run.run_id}.csv" for run in company.runs if run.start.month == 10
    }


def test_late_days_are_grossed_up_where_earlier_reports_tell_how_late(run_cli: Run, tmp_path: Path) -> None:
    start = date(2026, 9, 1)
    head = (
        "BilledCost,EffectiveCost,ListCost,ContractedCost,ChargePeriodStart,ChargePeriodEnd,BillingCurrency,"
    )
    lines = [head + "ChargeCategory,ServiceName,BillingPeriodStart,BillingPeriodEnd"]
    for n in range(50):  # 100 a day, half of the last day reported
        day, cost = start + timedelta(n), 50 if n == 49 else 100
        month = day.replace(day=1)
        end = date(2026, month.month + 1, 1)
        lines.append(
            f"{cost},{cost},{cost},{cost},{day},{day + timedelta(1)},USD,Usage,Compute,{month},{end}"
        )
    bill = tmp_path / "bill.csv"
    bill.write_text("\n".join(lines) + "\n")
    told = ["reported,date,scope,cost"]
    told += [
        f"{start + timedelta(made)},{start + timedelta(day)},all,{51 if day == made else 100}"
        for made in range(40)
        for day in range(max(0, made - 20), made + 1)
    ]
    vintages = tmp_path / "vintages.csv"
    vintages.write_text("\n".join(told) + "\n")
    made_of = {}
    for name, more in {"without": (), "with": ("--vintages", str(vintages))}.items():
        with sections_only("overview", "forecast"):
            done = run_cli("review", "--focus", str(bill), "--month", "2026-10", "-o", "json", *more)
        assert (done.code, done.stderr) == (0, "")
        made_of[name] = json.loads(done.stdout)
    figures = {
        figure["key"]: figure for section in made_of["with"]["sections"] for figure in section["figures"]
    }
    assert figures["forecast_landing_money"]["value"] == pytest.approx(3100, rel=0.002)
    assert made_of["with"] != made_of["without"]


@pytest.mark.usefixtures("few_sections")
def test_a_glob_that_the_shell_expanded(run_cli: Run) -> None:
    files = [str(path) for path in small_company().files]
    done = run_cli("review", "--focus", *files, "--no-forecast", "-o", "csv")
    assert (done.code, done.stderr) == (0, "")


def test_a_cube_is_written_and_reviewed_later(
    folder: str, run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "planner.finops.read.open_bill", open_bill
    )  # a cube is made of a bill not yet reviewed
    cube = str(tmp_path / "cube")
    first = run_cli("review", "--focus", folder, "--cube", cube, "--no-forecast", "-o", "json")
    assert (first.code, first.stderr) == (0, "")
    again = run_cli("review", "--cube", cube, "--no-forecast", "-o", "json")
    assert (again.code, again.stderr) == (0, "")
    whole, sums = json.loads(first.stdout), json.loads(again.stdout)
    assert sums["verdict"] == whole["verdict"]
    assert run_cli("review", "--focus", folder, "--cube", cube).code == 2


def test_own_tags_are_asked_for(folder: str, run_cli: Run) -> None:
    with sections_only("overview", "allocation"):
        done = run_cli("review", "--focus", folder, "--no-forecast", "--tags", "application", "-o", "md")
    assert "Cost with application" in done.stdout and "### Cost by application" in done.stdout
    none = run_cli("review", "--focus", folder, "--no-forecast", "--tags", 'a"b')
    assert none.code == 2 and "double quote" in none.stderr


def test_the_sql_is_printed_without_a_bill(run_cli: Run) -> None:
    from planner.finops.kpis import load_kpis

    done = run_cli("review", "--emit-sql", "snowflake", "--month", "2026-10")
    assert done.code == 0
    for kpi in load_kpis():
        assert f"-- {kpi.name}: " in done.stdout
    assert ":start" not in done.stdout and "2026-11-01" in done.stdout
    assert "-- keys of tags: team, env, run_id (as given" in done.stdout
    assert run_cli("review", "--emit-sql", "snowflake").code == 2


def test_the_sql_for_a_bill_spells_tags_as_the_bill_does(run_cli: Run, tmp_path: Path) -> None:
    """Only the key as asked for was in it."""
    keys = ("Team", "TEAM", "planner_run_id", "Env")
    rows = [charge(date(2026, 10, n + 1), Tags=f'{{"{key}":"x"}}') for n, key in enumerate(keys)]
    asked = (
        "--focus",
        str(write_bill(tmp_path / "bill.csv", rows)),
        "--emit-sql",
        "duckdb",
        "--month",
        "2026-10",
    )
    done = run_cli("review", *asked)
    assert "-- keys of tags: TEAM, Team, Env, planner_run_id (as the bill spells them)" in done.stdout
    times = [done.stdout.count(f"'$.{key}'") for key in ("TEAM", "Team", "team")]
    assert times[0] == times[1] > 5 and not times[2]
    odd = run_cli(
        "review", "--emit-sql", "duckdb", "--month", "2026-10", "--tags", "a\nDROP TABLE b;\u2028c"
    ).stdout
    assert odd.splitlines()[1].startswith("-- keys of tags: a DROP TABLE b; c, run_id (")
    exact = run_cli("review", *asked, "--exact-tags").stdout
    assert "-- keys of tags: TEAM, Env, planner_run_id (" in exact and "Team" not in exact


@pytest.mark.usefixtures("few_sections")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "--focus: name the bill's files"),
        (("--focus", "nowhere.csv"), "nowhere.csv"),
        (("--focus", "{folder}", "--month", "2025-01"), "the bill has no charges in it; it has 2026-08"),
        (("--focus", "{folder}", "--month", "10/2026"), "is not a month; write it as 2026-10"),
        (("--focus", "{folder}", "--plans", "none*.json"), "--plans none*.json: no such file"),
        (("--focus", "{folder}", "--currency", "EUR"), "no row is billed in it"),
        (("--focus", "{folder}", "--utilisation", "none.csv"), "none.csv: cannot be read"),
        (
            ("--focus", "{folder}", "--compare", "2026-10", "--month", "2026-10"),
            "is the reviewed month itself",
        ),
    ],
)
def test_bad_input_is_told_without_a_traceback(
    args: tuple[str, ...], message: str, folder: str, run_cli: Run
) -> None:
    done = run_cli("review", *(arg.replace("{folder}", folder) for arg in args))
    assert done.code == 2 and done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_option_names_are_those_of_the_registries() -> None:
    from planner.commands.review import DIALECT_NAMES, ENGINE_NAMES
    from planner.finops.engine.dialects import DIALECTS
    from planner.finops.engine.registry import ENGINES

    assert set(ENGINE_NAMES) == set(ENGINES)
    assert set(DIALECT_NAMES) == set(DIALECTS)
