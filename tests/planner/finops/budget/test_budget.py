"""Budgets: what is said of each, and what is wrong in a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.finops.budget.answer import BudgetAnswer, check_budgets, dimensions
from planner.finops.forecast.daily import DailyCost
from planner.finops.forecast.plans import PlannedCost
from planner.inputs.budget_load import load_budgets
from tests.conftest import ROOT, CliResult
from tests.planner.finops.small_bill import each_day, write_bill

Run = Callable[..., CliResult]
EXAMPLE = str(ROOT / "examples" / "budgets.yaml")
COSTS = str(ROOT / "examples" / "daily-costs.csv")
HEAD = "version: 1\nkind: budget\n"
START = np.datetime64("2026-01-01")


def costs(n: int = 80, noise: float = 0.1) -> dict[str, dict[str, DailyCost]]:
    rng = np.random.default_rng(2)
    one = DailyCost(START + np.arange(n), 10 * np.exp(rng.normal(0, noise, n)))
    return {"total": {"total": one}, "tag:team": {"ml": one}}


def check(tmp_path: Path, text: str, n: int = 80, **options: object) -> BudgetAnswer:
    path = tmp_path / "b.yaml"
    path.write_text(HEAD + text)
    loaded = load_budgets(path)
    return check_budgets(loaded, costs(n), currency="USD", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("amount", "status"), [(150, "over"), (290, "alert"), (311, "watch"), (400, "ok")])
def test_status_follows_spending_and_chance(tmp_path: Path, amount: int, status: str) -> None:
    """Known to March 21, about 210 of 310."""
    (line,) = check(tmp_path, f"max_p_over: 0.4\nbudgets: [{{name: a, amount: {amount}}}]").lines
    assert line.status == status and line.exceeded == (status in ("over", "alert"))
    assert (line.runs_out is not None) == (line.landing > amount)
    if line.runs_out:
        assert date(2026, 3, 1) < line.runs_out <= date(2026, 3, 31)


def test_chance_falls_with_the_amount_and_the_gate_is_the_budgets_own(tmp_path: Path) -> None:
    text = "budgets:\n" + "".join(
        f"  - {{name: b{a}, by: 'tag:team', scope: ml, amount: {a}, period: {p}, max_p_over: 0.01}}\n"
        for a, p in ((305, "month"), (900, "quarter"), (4000, "year"))
    )
    month, quarter, year = check(tmp_path, text).lines
    assert month.scope == "tag:team ml" and month.status == "alert" and month.p_over > 0.2
    assert [one.period.label for one in (month, quarter, year)] == ["2026-03", "2026-Q1", "2026"]
    assert year.days_left == 365 - 80 and year.low < year.landing < year.high
    chances = [
        check(tmp_path, f"budgets: [{{name: a, amount: {amount}}}]").lines[0].p_over
        for amount in (295, 305, 312, 330)
    ]
    assert chances == sorted(chances, reverse=True) and chances[0] > 0.5 > chances[-1]


def test_periods_that_are_over_or_not_begun(tmp_path: Path) -> None:
    text = (
        "budgets: [{name: a, amount: 280, amounts: {2026-02: 100}}, "
        "{name: b, amount: 1, period: quarter, ends: 2025-12-31}]"
    )
    answer = check(tmp_path, text, day=date(2026, 2, 5))
    (line,) = answer.lines
    assert (line.amount, line.days_left, line.status, line.p_over) == (100.0, 0, "over", 1.0)
    assert answer.silent == ("b",)
    (ahead,) = check(tmp_path, text, day=date(2026, 5, 5)).lines
    assert ahead.actual == 0 and ahead.days_left == 31 and ahead.p_over > 0.9


def test_costs_that_begin_within_a_period_are_said(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "y.yaml"
    path.write_text(HEAD + "budgets: [{name: a, amount: 900000, period: year}]")
    said = run_cli("budget", str(path), "--daily", COSTS).stdout
    assert "a: what was spent before 2026-05-01 is not known and not counted" in said
    assert "on its past: a median error of " in said  # one budget has one error, no range
    early = run_cli("budget", str(path), "--daily", COSTS, "--day", "2025-03-01")
    assert early.code == 2 and "costs are known from 2026-05-01 on" in early.stderr
    forecast = run_cli(
        "forecast", "--daily", COSTS, "--period", "year", "--periods", "1", "--horizon", "0"
    ).stdout
    assert "2026: cost before 2026-05-01 is not known" in forecast


def test_plans_count(tmp_path: Path) -> None:
    moment = datetime(2026, 3, 25, tzinfo=UTC)
    plan = PlannedCost("run", "run-1", moment, moment, 500.0, "x.json")
    text = "budgets: [{name: a, amount: 400}, {name: t, by: 'tag:team', scope: ml, amount: 400}]"
    total, team = check(tmp_path, text, planned=(plan,)).lines
    assert (total.status, total.planned, total.runs_out) == ("alert", 500.0, date(2026, 3, 25))
    assert (team.status, team.planned) == ("ok", 0.0)


def test_fiscal_periods(tmp_path: Path) -> None:
    text = "fiscal_start: '02'\nbudgets: [{name: a, amount: 900, period: quarter}]"
    (line,) = check(tmp_path, text).lines
    assert (line.period.label, line.period.start) == ("FY2027 Q1", date(2026, 2, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("currency: EURO\nbudgets: [{name: a, amount: 1}]", "'EURO' is not a currency code"),
        (
            "budgets: [{name: a, amount: 1}, {name: a, by: tag:x, scope: y, amount: 2}]",
            "is already listed above",
        ),
        ("budgets: [{name: a, amount: 1}, {name: b, amount: 2}]", "overlaps with 'a'"),
        ("budgets: [{name: a, amount: 1, by: servce, scope: x}]", "did you mean 'service'"),
        ("budgets: [{name: a, amount: 1, by: service}]", "needs 'scope'"),
        ("budgets: [{name: a, amount: 1, scope: x}]", "needs 'by'"),
        ("budgets: [{name: a, amount: 1, by: 'tag:', scope: x}]", "name the tag's key"),
        ("budgets: [{name: a, amount: -1}]", "more than zero"),
        ("budgets: [{name: a, amount: 1, starts: 2026-02-01, ends: 2026-01-01}]", "is before the start"),
        ("fiscal_start: '02'\nfiscal_weeks: 4-4-5@2026-02-01\nbudgets: [{name: a, amount: 1}]", "excludes"),
        ("fiscal_start: '14'\nbudgets: [{name: a, amount: 1}]", "01 to 12"),
        ("currency: EUR\nbudgets: [{name: a, amount: 1}]", "the costs are in USD"),
        ("budgets: [{name: a, by: tag:team, scope: mll, amount: 1}]", "there are ml (did you mean 'ml'?)"),
    ],
)
def test_faults_are_named_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as found:
        check(tmp_path, text)
    assert said in str(found.value) and "b.yaml:" in str(found.value)


def test_the_same_scope_may_have_budgets_one_after_the_other(tmp_path: Path) -> None:
    text = (
        "budgets: [{name: a, amount: 9, ends: 2026-02-28}, {name: b, amount: 999, starts: 2026-03-01}, "
        "{name: c, amount: 9999, period: quarter}]"
    )
    assert [line.name for line in check(tmp_path, text).lines] == ["b", "c"]


def test_a_bill_is_divided_once_per_dimension() -> None:
    assert dimensions(load_budgets(Path(EXAMPLE))) == ("total", "scope")


def test_the_command_says_all_and_fails_the_gate(
    run_cli: Run, check_golden: Callable[[str, str], None]
) -> None:
    found = run_cli("budget", EXAMPLE, "--daily", COSTS)
    assert found.code == 5 and not found.stderr
    check_golden("forecast/budgets.txt", found.stdout)
    assert run_cli("budget", EXAMPLE, "--daily", COSTS, "--day", "2026-10-03").code == 0


def test_formats_agree(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "b.json"
    assert run_cli("budget", EXAMPLE, "--daily", COSTS, "-o", "json", "--out", str(out)).code == 5
    values = json.loads(out.read_text())
    rows = list(csv.DictReader(io.StringIO(run_cli("budget", EXAMPLE, "--daily", COSTS, "-o", "csv").stdout)))
    assert values["exceeded"] is True and [row["budget"] for row in rows] == [
        one["budget"] for one in values["lines"]
    ]
    assert [float(row["p_over"]) for row in rows] == pytest.approx(
        [one["p_over"] for one in values["lines"]], abs=1e-6
    )


def test_one_source_of_costs_is_needed(run_cli: Run, tmp_path: Path) -> None:
    for arguments in ((), ("--daily", COSTS, "--focus", "x")):
        found = run_cli("budget", EXAMPLE, *arguments)
        assert found.code == 2 and "either with --focus" in found.stderr


def test_a_bill_may_be_several_files_and_what_a_shell_makes_of_a_glob(run_cli: Run, tmp_path: Path) -> None:
    path, bill = tmp_path / "all.yaml", tmp_path / "bill"
    path.write_text(HEAD + "budgets:\n  - {name: all, amount: 900000}\n")
    bill.mkdir()
    for month, last in ((9, 30), (10, 31)):
        days = each_day(date(2026, month, 1), date(2026, month, last), 100 + month)
        write_bill(bill / f"{month}.csv", days)
    files = [str(file) for file in sorted(bill.iterdir())]

    def actual(*words: str) -> float:
        found = run_cli("budget", *words, "-o", "json")
        assert found.code in (0, 5), found.stderr
        return float(json.loads(found.stdout)["lines"][0]["actual_to_date"])

    whole = actual(str(path), "--focus", str(bill))
    assert whole == pytest.approx(31 * 110)
    assert actual(str(path), "--focus", *files) == pytest.approx(whole)
    assert actual("--focus", *files, str(path)) == pytest.approx(whole)
    assert actual(str(path), *files) == pytest.approx(whole)


def test_a_bill_in_two_currencies_can_be_checked_in_one(run_cli: Run, tmp_path: Path) -> None:
    head = "BillingCurrency,BilledCost,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,ChargeCategory\n"
    rows = (
        f"{code},{cost},{cost},2026-10-{day:02d}T00:00:00Z,2026-10-{day + 1:02d}T00:00:00Z,Usage\n"
        for day in range(1, 29)
        for code, cost in (("USD", 10), ("EUR", 7))
    )
    bill, path = tmp_path / "bill.csv", tmp_path / "usd.yaml"
    bill.write_text(head + "".join(rows))
    path.write_text(HEAD + "budgets:\n  - {name: all, amount: 900}\n")
    refused = run_cli("budget", str(path), "--focus", str(bill))
    assert refused.code == 2 and "--currency USD" in refused.stderr
    found = run_cli("budget", str(path), "--focus", str(bill), "--currency", "USD", "-o", "json")
    assert json.loads(found.stdout)["lines"][0]["actual_to_date"] == pytest.approx(280)
    other = run_cli("budget", str(path), "--focus", str(bill), "--currency", "EUR")
    assert other.code == 2 and "the costs are in EUR" in other.stderr


def test_a_bill_without_a_currency_is_checked_when_the_user_says_which(run_cli: Run, tmp_path: Path) -> None:
    head = "BilledCost,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,ChargeCategory\n"
    days = (f"2026-10-{day:02d}T00:00:00Z,2026-10-{day + 1:02d}T00:00:00Z" for day in range(1, 29))
    bill, path = tmp_path / "bill.csv", tmp_path / "b.yaml"
    bill.write_text(head + "".join(f"10,10,{day},Usage\n" for day in days))
    path.write_text(HEAD + "budgets:\n  - {name: all, amount: 900}\n")
    unsaid = run_cli("budget", str(path), "--focus", str(bill))
    assert unsaid.code == 2 and "names no currency" in unsaid.stderr and "--currency USD" in unsaid.stderr
    assert run_cli("budget", str(path), "--focus", str(bill), "--currency", "USD").code == 0


def test_scopes_of_a_csv_file_are_not_those_of_a_bill(run_cli: Run) -> None:
    found = run_cli("budget", EXAMPLE, "--focus", "bills")
    assert found.code == 2 and "budgets[1].by: is for daily costs" in found.stderr


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "finops" / "forecast.md").read_text(encoding="utf-8")
    table = text[text.index("| key | meaning |") :]
    schema = json.loads(
        (ROOT / "planner" / "data" / "schemas" / "budget.v1.json").read_text(encoding="utf-8")
    )
    for key in (*schema["properties"], *schema["$defs"]["Budget"]["properties"]):
        assert f"`{key}`" in table, key
