"""Scopes, scenarios, plans, saved forecasts and FOCUS rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.finops.focus_out import EXTRA, focus_csv, focus_names, forecast_to_focus
from planner.finops.forecast.answer import OTHERS, Question, forecast_scopes
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.forecast.daily import DailyCost, load_daily, load_vintages, total_of
from planner.finops.forecast.planned_report import planned_sections
from planner.finops.forecast.plans import PlannedCost, daily_plan_cost, load_plans
from planner.finops.forecast.report import forecast_report
from planner.finops.forecast.scenarios import parse_scenario
from planner.finops.forecast.score import accuracy, score_forecasts
from planner.finops.read import open_bill
from planner.plan.model import Plan
from planner.plan.run import Recurring
from planner.render import render_answer
from planner.render.units import cells
from tests.planner.finops.forecast.example_costs import FILE, example_costs
from tests.saved_plans import plan_line, saved_plan

START = np.datetime64("2026-01-01")


def flat(n: int, level: float, start: np.datetime64 = START) -> DailyCost:
    return DailyCost(start + np.arange(n), np.full(n, level))


SCOPES = {"a": flat(99, 10.0), "b": flat(99, 30.0)}  # to April 9


def test_the_example_file_is_what_its_generator_writes() -> None:
    assert FILE.read_text(encoding="utf-8") == example_costs()


def test_scopes_and_total_land_where_they_must() -> None:
    answer = forecast_scopes(SCOPES, Question())
    assert [one.scope for one in answer.scopes] == ["total", "b", "a"]
    april, may, june, ahead = answer.scopes[0].periods
    assert april.actual == 360 and april.expected == pytest.approx(1200) and april.days_left == 21
    assert may.expected == pytest.approx(31 * 40) and may.actual == 0
    assert (ahead.period.label, ahead.period.start) == ("next 30 days", date(2026, 4, 10))
    assert june.low == june.expected == june.high
    assert april.p_over(1199) == 1.0 and april.p_over(1201) == 0.0


def test_a_scope_that_fell_silent_is_forecast_as_such_and_small_ones_are_joined() -> None:
    scopes = SCOPES | {"old": flat(60, 5.0), "new": flat(3, 7.0, START + 96)}
    answer = forecast_scopes(scopes, Question(top=3))
    by_name = {one.scope: one for one in answer.scopes}
    assert by_name["old"].periods[1].expected == pytest.approx(0.0, abs=1.0)
    assert OTHERS not in by_name and dict(answer.skipped)[OTHERS].startswith("at least 7 days")
    assert set(dict(forecast_scopes(scopes, Question(top=1)).skipped)) == set()


def test_a_scope_called_total_would_count_twice() -> None:
    with pytest.raises(InputError, match="a scope is called 'total'"):
        forecast_scopes(SCOPES | {"total": flat(99, 40.0)}, Question())


def test_scenarios_multiply_forecast_days_only() -> None:
    both = (parse_scenario("price=-20%"), parse_scenario("a:volume=+50%@2026-05-01"))
    answer = forecast_scopes(SCOPES, Question(scenarios=both))
    a = {one.scope: one for one in answer.scopes}["a"]
    assert a.periods[0].expected == pytest.approx(90 + 0.8 * 210)
    assert a.periods[1].expected == pytest.approx(0.8 * 1.5 * 310)
    assert a.periods[1].base == pytest.approx(310)
    total = answer.scopes[0].periods[1]
    assert total.expected == pytest.approx(0.8 * (1.5 * 10 + 30) * 31)
    assert total.p_over(0.99 * total.expected) == 1.0 and total.p_over(1.01 * total.expected) == 0.0
    assert answer.scopes[0].expected[-1] == pytest.approx(0.8 * 45)
    assert a.expected[0] == pytest.approx(8.0) and a.expected[-1] == pytest.approx(12.0)


@pytest.mark.parametrize("text", ["price=20", "cost=-3%", "price=-101%", "price=+5%@2026-02-30", ":price=1%"])
def test_bad_scenarios(text: str) -> None:
    with pytest.raises(InputError, match="--scenario"):
        parse_scenario(text)


def test_a_scenario_of_no_scope_names_those_there_are() -> None:
    with pytest.raises(InputError, match="no scope 'c'; there are total, b, a"):
        forecast_scopes(SCOPES, Question(scenarios=(parse_scenario("c:price=-1%"),)))


def planned(**changes: object) -> PlannedCost:
    start = datetime(2026, 4, 20, 12, tzinfo=UTC)
    values = {"name": "run", "run_id": "run-1", "start": start, "end": start + timedelta(days=2), "cost": 96.0,
              "source": "x.json"}  # fmt: skip
    return PlannedCost(**(values | changes))  # type: ignore[arg-type]


def test_plans_are_spread_over_their_hours() -> None:
    days = np.datetime64("2026-04-19") + np.arange(5)
    assert daily_plan_cost([planned()], days) == pytest.approx([0, 24, 48, 24, 0])
    once = planned(end=datetime(2026, 4, 20, 12, tzinfo=UTC))
    assert daily_plan_cost([once], days) == pytest.approx([0, 96, 0, 0, 0])
    question = Question(planned=(planned(), planned(cost=4.0, scope="a")))
    answer = forecast_scopes(SCOPES, question)
    assert {one.scope: one.periods[0].planned for one in answer.scopes} == pytest.approx(
        {"total": 100, "a": 4, "b": 0}
    )
    assert answer.scopes[0].periods[0].expected == pytest.approx(1300)


def test_a_run_that_comes_again_is_planned_each_time(tmp_path: Path) -> None:
    nightly = saved_plan(
        plan_line(1, 10.0, 4.8), workload="nightly", start="2026-04-20T20:00+00:00",
        recurrence=Recurring(24.0, 30),
    )  # fmt: skip
    (tmp_path / "nightly.json").write_text(json.dumps(nightly.to_dict()))
    assert Plan.from_dict(nightly.to_dict()) == nightly
    found, _ = load_plans([f"a={tmp_path}/nightly.json"])
    assert len(found) == 1 and found[0].month_cost == pytest.approx(48.0 * 365 / 12)
    days = np.datetime64("2026-04-19") + np.arange(34)
    cost = daily_plan_cost(found, days)
    # 4 of 10 hours before midnight, 6 after it; the last of 30 starts on 19 May
    assert cost[:4] == pytest.approx([0.0, 19.2, 48.0, 48.0]) and cost[30:] == pytest.approx([48, 28.8, 0, 0])
    assert cost.sum() == pytest.approx(30 * 48.0)
    report = forecast_report(forecast_scopes(SCOPES, Question(planned=found)), details=("planned",))
    assert report.values["plans"][0]["times"] == 30 and report.values["plans"][0]["every_hours"] == 24.0
    assert any("1 planned cost of 30 runs" in line for line in report.summary)


def test_one_of_many_runs_keeps_its_cents_beside_a_dear_month() -> None:
    """A run of 2.40 every five minutes cost "2", and one of 0.40 nothing."""
    short = planned(
        cost=2.4, end=datetime(2026, 4, 20, 12, 1, tzinfo=UTC), every=timedelta(minutes=5), times=9000
    )
    (section,) = planned_sections(
        forecast_scopes(SCOPES, Question(planned=(short, replace(short, cost=0.4))))
    )
    rows = cells(section.tables[0], "USD")
    assert [row[-2:] for row in rows] == [["2.40", "21,024"], ["0.40", "3,504"]]


def test_saved_plans_of_every_kind_are_read(tmp_path: Path) -> None:
    moment = "2026-05-01T00:00+00:00"
    files = {
        "run.json": saved_plan(plan_line(1, 12.5, 4.0), workload="w", start=moment).to_dict(),
        "none.json": saved_plan(workload="w", start=moment).to_dict(),
        "jobs.json": {"kind": "portfolio", "jobs": [
            {"job": "j#1", "status": "planned", "start": moment, "end": "2026-05-02T00:00+00:00", "cost_usd": 7},
            {"job": "j#2", "status": "left_out", "start": None, "end": None, "cost_usd": None}]},
        "schedule.json": {"schedule": "s", "start": moment, "copies": [
            {"job": "j", "transfer_usd": 2, "storage_usd": 1, "kept_hours": 24}], "intervals": [
            {"job": "j", "from": moment, "until": "2026-05-01T03:00:00+00:00", "cost_usd": 9}]},
        "commit.json": {"name": "c", "break_evens": [], "start": "2026-05-01", "years": 1,
                        "plan": {"savings_usd": 365}},
    }  # fmt: skip
    for name, values in files.items():
        (tmp_path / name).write_text(json.dumps(values))
    found, currency = load_plans([f"{tmp_path}/*.json", f"team={tmp_path}/run.json"])
    costs = sorted((one.name, one.cost, one.scope) for one in found if one.scope is None)
    assert costs == [("c: commitments", -365.0, None), ("j#1", 7.0, None), ("s: data of j", 3.0, None),
                     ("s: j", 9.0, None), ("w", 50.0, None)]  # fmt: skip
    assert currency == "USD" and [one.scope for one in found if one.scope] == ["team"]
    assert daily_plan_cost(found[:1], np.array(["2026-06-01"], dtype="datetime64[D]")) == pytest.approx(
        [-1.0]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is not JSON"), ("[]", "is not a plan"), ("{}", "is not an answer of"),
     ('{"workload": "w", "total_usd": 1, "status": "planned", "schema_version": 2, "lines": []}', "start: is missing"),
     ('{"workload": "w", "total_usd": 1, "status": "planned", "schema_version": 2}', "not a plan"),
     ('{"kind": "portfolio"}', "lacks or garbles 'jobs'")],
)  # fmt: skip
def test_files_that_are_no_plan(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=said):
        load_plans([str(tmp_path / "x.json")])
    with pytest.raises(InputError, match="no such file"):
        load_plans([str(tmp_path / "y*.json")])


def test_daily_costs_file(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("date,scope,cost\n2026-01-01,a,1\n2026-01-03,b,2\n2026-01-01,a,4\n2026-01-04,a,-1\n")
    found = load_daily(path, until_last_day=True)
    assert found["a"].cost.tolist() == [5, 0, -1] and str(found["a"].days[1]) == "2026-01-03"
    assert found["b"].cost.tolist() == [2, 0]
    assert load_daily(path)["b"].cost.tolist() == [2]
    assert total_of(found).cost.tolist() == [5, 2, -1]
    assert total_of(found).used == pytest.approx([5, 2, np.nan], nan_ok=True)


def test_a_cost_that_is_no_number_is_not_left_out_of_the_total() -> None:
    days, cost = np.datetime64("2026-01-01") + np.arange(100), np.full(100, 5.0)
    unknown = np.where(np.arange(100) == 50, np.nan, cost)
    with pytest.raises(InputError, match="is not a number"):
        forecast_scopes({"a": DailyCost(days, cost), "b": DailyCost(days, unknown)}, Question())


@pytest.mark.parametrize(
    ("text", "said"),
    [("date,cost\n", "no column 'scope'"), ("date,scope,cost\n", "there is no row"),
     ("date,scope,cost\n1.1.26,a,1\n", ":2: '1.1.26' is not a date"),
     ("date,scope,cost\n2026-01-01,a,\n", ":2: cost '' is not a number"),
     ("date,scope,cost\n2026-01-01,a,nan\n", ":2: cost 'nan' is not a number"),
     ("date,scope,cost\n2026-01-01,a,\"1,500\"\n", "decimals have a point")],
)  # fmt: skip
def test_bad_daily_costs(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        load_daily(tmp_path / "c.csv")
    (tmp_path / "broken.csv").write_bytes(b"\x1f\x8bxx")
    with pytest.raises(InputError, match="not a whole gzip"):
        load_daily(tmp_path / "broken.csv")


def test_vintages_are_added_up_by_report(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(
        "reported,date,scope,cost\n2026-01-02,2026-01-01,a,1\n2026-01-02,2026-01-01,b,2\n2026-01-09,2026-01-01,a,4\n"
    )
    told = load_vintages(tmp_path / "v.csv")
    assert [(str(made), cost.tolist()) for made, _, cost in told] == [
        ("2026-01-02", [3]),
        ("2026-01-09", [4]),
    ]


def test_saved_forecasts_are_scored_by_what_came() -> None:
    report = forecast_report(forecast_scopes(SCOPES, Question()))
    saved = json.loads(render_answer(report, "json"))
    actual = {"total": flat(181, 44.0), "a": flat(181, 10.0), "b": flat(130, 30.0)}
    scores = score_forecasts([saved], actual)
    assert {(one.scope, one.period) for one in scores} == {
        *((scope, period) for scope in ("total", "a") for period in ("2026-04", "2026-05", "2026-06", "next 30 days")),
        ("b", "2026-04"), ("b", "next 30 days"),
    }  # fmt: skip
    by_scope = {one.scope: one for one in accuracy(scores)}
    assert by_scope["a"].error_ratio == pytest.approx(0.0, abs=1e-9)
    assert (
        by_scope["total"].bias_ratio == pytest.approx(-4 / 44, abs=1e-6)
        and by_scope["total"].held_ratio == 0.0
    )
    assert {one.vintage for one in accuracy(scores, by_vintage=True)} == {date(2026, 4, 9)}
    with pytest.raises(InputError, match="lacks or garbles 'last_day'"):
        score_forecasts([{}], actual)


def test_focus_rows_add_up_to_the_forecast_and_say_what_they_are() -> None:
    answer = forecast_scopes(SCOPES, Question(scenarios=(parse_scenario("price=+10%"),)), by="service")
    rows = list(csv.DictReader(io.StringIO(focus_csv(forecast_to_focus(answer)))))
    assert tuple(rows[0]) == (*focus_names(), *EXTRA)
    may = [row for row in rows if row["ChargePeriodStart"].startswith("2026-05")]
    assert sum(float(row["EffectiveCost"]) for row in may) == pytest.approx(31 * 40 * 1.1)
    assert {row["ServiceName"] for row in rows} == {"a", "b"}
    assert all("forecast" in row["ChargeDescription"] and row["x_row_kind"] == "forecast" for row in rows)
    first = next(row for row in may if row["x_low_cost"])
    assert (
        first["ChargePeriodStart"] == "2026-05-01T00:00:00Z"
        and first["BillingPeriodEnd"] == "2026-06-01T00:00:00Z"
    )


def test_focus_rows_are_read_back_as_a_bill(tmp_path: Path) -> None:
    from planner.finops.read import open_bill

    answer = forecast_scopes(SCOPES, Question(), by="tag:team")
    (tmp_path / "forecast.csv").write_text(focus_csv(forecast_to_focus(answer)))
    with open_bill([tmp_path / "forecast.csv"]) as bill:
        found = daily_of_bill(bill, "tag:team")
        assert not [one for one in bill.findings if one.severity == "error"]
        with pytest.raises(InputError, match="did you mean 'service'"):
            daily_of_bill(bill, "servce")
        with pytest.raises(InputError, match="no quotes"):
            daily_of_bill(bill, "tag:a'b")
    assert found["a"].cost.sum() == pytest.approx(10.0 * (21 + 31 + 30))


@pytest.mark.shared
def test_focus_rows_keep_the_model_of_1_4(shared_dir: Path) -> None:
    model = json.loads((shared_dir / "finops" / "models" / "focus_1_4_model.json").read_text())
    columns = model["datasets"]["Cost and Usage"]["columns"]
    assert set(focus_names()) == set(columns)
    row = forecast_to_focus(forecast_scopes(SCOPES, Question()))[0]
    for name, column in columns.items():
        if column["feature_level"] == "Mandatory" and not column["allows_nulls"]:
            assert row[name], name
        if column["allowed_values"] and row[name]:
            assert row[name] in column["allowed_values"], name
    assert model["service_subcategory_parents"][row["ServiceSubcategory"]] == row["ServiceCategory"]


def test_focus_rows_need_a_currency() -> None:
    with pytest.raises(InputError, match="name it with --currency"):
        forecast_to_focus(forecast_scopes(SCOPES, Question(), currency="XXX"))


def test_the_table_of_the_example(check_golden: Callable[[str, str], None]) -> None:
    answer = forecast_scopes(load_daily(FILE, until_last_day=True), Question(), by="scope")
    check_golden("forecast/example.txt", render_answer(forecast_report(answer), "table"))


def test_the_heading_has_the_digits_that_its_range_leaves() -> None:
    """It said 50,552.57, 49,662.15 to 51,486.43; the screen below 50,550, 49,660 to 51,490."""
    answer = forecast_scopes(load_daily(FILE), Question(), currency="USD")
    title, screen = forecast_report(answer).title, render_answer(forecast_report(answer), "table")
    assert title == "total: 2026-11 lands at $50,550, $49,660 to $51,490 in 80 % of cases"
    assert "2026-11 at 50,550; 80 %: 49,660 to 51,490" in str(screen)
    euro = forecast_report(forecast_scopes(load_daily(FILE), Question(), currency="EUR")).title
    assert "at EUR 50,550, EUR 49,660 to EUR 51,490" in euro


def test_a_short_record_makes_no_promise() -> None:
    def told(days: int) -> str:
        answer = forecast_scopes({"a": flat(days, 5.0)}, Question(), currency="USD", by="scope")
        return str(render_answer(forecast_report(answer), "table"))

    assert "too little history for a range" in told(31)
    assert "roughly " in told(75)
    assert "do not overlap: 2; take the intervals as a rough guide" in " ".join(told(75).split())
    assert "; 80 %: " in told(240)
    assert "rough" not in told(240)


def test_periods_without_a_record_have_no_range_in_the_table() -> None:
    """It said 22,680 from 22,680 to 22,680, under "too little history for a range"."""

    def shown(days: int) -> str:
        scopes = {"a": flat(days, 5.0), "b": flat(days, 7.0)}
        answer = forecast_scopes(scopes, Question(), currency="USD", by="scope")
        return str(render_answer(forecast_report(answer), "table"))

    assert (shown(61).count("P10"), shown(240).count("P10")) == (1, 2)


@pytest.mark.parametrize(
    ("cell", "said"),
    [("9999-12-31T00:00:00Z,1", "no bill is of that year"), ("2026-10-01T00:00:00Z,NaN", "be read")],
)
def test_a_bill_that_no_forecast_can_use(tmp_path: Path, cell: str, said: str) -> None:
    path = tmp_path / "bill.csv"
    path.write_text(
        f"ChargePeriodStart,EffectiveCost,BilledCost,ChargeCategory,BillingCurrency\n{cell},1,Usage,USD\n"
    )
    with open_bill([path]) as bill, pytest.raises(InputError, match=said):
        daily_of_bill(bill)


@pytest.mark.parametrize(("by", "source"), [("scope", "--daily COSTS"), ("service", "--focus BILL")])
def test_the_next_step_reads_what_this_answer_read(by: str, source: str) -> None:
    shown = render_answer(
        forecast_report(forecast_scopes(SCOPES, Question(), currency="USD", by=by)), "table"
    )
    last = " ".join(str(shown).partition("next: ")[2].split())
    assert last.count(source) == 2 and last.count("--daily") + last.count("--focus") == 2
