"""Plans against the bill: an exact split, the causes that were put in, and a measurement that calibrate can read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.calibration.logs import ReadOptions, read_log
from planner.errors import InputError
from planner.finops.plan_vs_actual import (
    ActualRun,
    PlannedRun,
    load_plans,
    measure,
    planned_run,
    split_difference,
)
from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.utilisation import load_utilisation
from planner.plan.ids import CostId
from planner.plan.model import Plan
from tests.focus_company.plans import STORAGE_USD, effects_of, write_plans, write_utilisation
from tests.focus_company.plans import plan_of as company_plan
from tests.focus_company.shared import small_company
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill
from tests.saved_plans import plan_line, saved_plan

positive = st.floats(0.1, 1e4)


def plan_of(nodes: float, hours: float, price: float, lost: float = 0.0, other: float = 0.0) -> PlannedRun:
    total = nodes * hours * price + other
    return PlannedRun(
        "run-1",
        "p.json",
        "w",
        "aws",
        ("r",),
        ("p5.48xlarge",),
        ("spot",),
        nodes,
        hours,
        lost,
        price,
        total,
        "tokens",
        1e5,
        1.0,
        hours,
    )


@given(positive, positive, positive, positive, positive, positive, st.floats(0, 1), st.floats(0, 1))
def test_the_effects_sum_to_the_difference(
    n0: float, h0: float, p0: float, n1: float, h1: float, p1: float, share0: float, share1: float
) -> None:
    plan = plan_of(n0, h0, p0, share0 * h0, 7.0)
    actual = ActualRun(n1, h1, share1 * h1, n1 * h1 * p1, n1 * h1 * p1 + 3.0)
    d = split_difference(plan, actual)
    parts = (d.price, d.duration, d.nodes, d.interruption or 0.0, d.storage, d.other)
    scale = max(n0 * h0 * p0, n1 * h1 * p1, 1.0)
    assert math.fsum(parts) == pytest.approx(d.total, abs=1e-9 * scale)
    assert d.other == pytest.approx(3.0 - 7.0, abs=1e-9 * scale)


def test_one_cause_alone_takes_all() -> None:
    plan = plan_of(4, 50, 30)
    dearer = split_difference(plan, ActualRun(4, 50, 0.0, 4 * 50 * 33, 4 * 50 * 33))
    assert (dearer.price, dearer.duration, dearer.nodes) == (
        pytest.approx(600),
        pytest.approx(0),
        pytest.approx(0),
    )
    more_lost = split_difference(plan, ActualRun(4, 55, 5.0, 4 * 55 * 30, 4 * 55 * 30))
    assert (more_lost.interruption, more_lost.duration) == (pytest.approx(600), pytest.approx(0))
    wider = split_difference(plan, ActualRun(5, 40, 0.0, 5 * 40 * 30, 5 * 40 * 30))
    assert wider.total == pytest.approx(0)
    assert wider.nodes == pytest.approx(-wider.duration)


def test_lost_hours_swapped_for_work_move_between_causes_at_no_cost() -> None:
    same = split_difference(plan_of(4, 50, 30, lost=2.0), ActualRun(4, 50, 6.0, 6000, 6000))
    assert same.interruption == pytest.approx(4 * 4 * 30)
    assert same.duration == pytest.approx(-4 * 4 * 30)


def test_without_measured_losses_there_is_no_interruption_effect() -> None:
    d = split_difference(plan_of(4, 50, 30, lost=2.0), ActualRun(4, 60, None, 7200, 7200))
    assert d.interruption is None
    assert d.duration == pytest.approx(1200)


@pytest.mark.parametrize("run", small_company().runs, ids=lambda run: run.run_id)
def test_the_generated_runs_give_their_causes(run: object, tmp_path: Path) -> None:
    from tests.focus_company.runs import Run

    assert isinstance(run, Run)
    (plan,) = load_plans(write_plans(tmp_path, [run]))
    assert plan.total_usd == pytest.approx(run.planned_usd + STORAGE_USD)
    d = split_difference(
        plan, ActualRun(run.nodes, run.hours, run.lost_hours, run.billed_usd, run.billed_usd)
    )
    truth = effects_of(run)
    assert d.price == pytest.approx(truth["price"])
    assert d.nodes == pytest.approx(truth["nodes"])
    assert d.duration == pytest.approx(truth["work"])
    assert d.interruption == pytest.approx(truth["lost"])
    assert (d.storage, d.other) == (0.0, pytest.approx(-STORAGE_USD))  # no cost line says what that is


def test_the_measurement_is_read_by_calibrate(tmp_path: Path) -> None:
    run = small_company().runs[0]
    plan = planned_run(company_plan(run), "p.json")
    assert plan is not None
    actual = ActualRun(run.nodes, run.hours, run.lost_hours, run.billed_usd, run.billed_usd)
    made = measure(plan, actual, run.tokens)
    assert made is not None
    # 60 hours billed, 2 of them not training, none lost
    assert made.value_per_s == pytest.approx(run.tokens / (58 * 3600))
    path = tmp_path / "run.csv"
    path.write_text(made.csv)
    log = read_log(path, "csv", ReadOptions())
    assert (log.unit, log.values) == ("tokens", pytest.approx((made.value_per_s,)))
    assert f"'{made.value_per_s:.6g} tokens/s'" in made.command and "--nodes 4" in made.command


def test_a_plan_without_a_run_id_has_its_own_and_no_two_share_one(tmp_path: Path) -> None:
    run = small_company().runs[0]
    plain, unnamed = company_plan(run), tmp_path / "unnamed.json"
    unnamed.write_text(json.dumps({k: v for k, v in plain.to_dict().items() if k != "run_id"}))
    (found,) = load_plans([unnamed])
    assert found.run_id == replace(plain, stated_run_id="").run_id != run.run_id
    (one,) = write_plans(tmp_path / "a", [run])
    (two,) = write_plans(tmp_path / "b", [run])
    with pytest.raises(InputError, match="keep one file per run"):
        load_plans([one, two])
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({**plain.to_dict(), "lines": [{"nodes": 3}]}))
    with pytest.raises(InputError, match=r"lines\[0\].billed_hours: is missing"):
        load_plans([broken])


def test_a_made_plan_has_the_same_run_id_each_time() -> None:
    from dataclasses import replace

    from tests.planner.render.render_plans import TRAINING

    assert TRAINING.run_id == replace(TRAINING, created_at="2026-12-24T00:00:00+00:00").run_id
    assert TRAINING.run_id != replace(TRAINING, workload_sha256="0" * 64).run_id
    assert TRAINING.to_dict()["run_id"] == TRAINING.run_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,busy_gpu_hours\n", "no columns 'allocated_gpu_hours', 'goodput_gpu_hours'; needed: date"),
        ("{head}October,1,1,1\n", ":2: date: 'October' is not a day"),
        ("{head}2026-10-01,1,x,1\n", ":2: busy_gpu_hours: 'x' is not a number"),
        ("{head}2026-10-01,1,nan,1\n", "is not a number"),
        ("{head}2026-10-01,1,0.5,0.7\n", "goodput_gpu_hours 0.7 is above busy_gpu_hours 0.5"),
    ],
)
def test_wrong_utilisation_files_are_told_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "busy.csv"
    path.write_text(text.replace("{head}", "date,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours\n"))
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        load_utilisation(path)


def test_useful_hours_of_a_bill_that_names_no_gpus_have_no_price(tmp_path: Path) -> None:
    """They cost 0.00 each, and so did a million tokens."""
    from datetime import date

    busy = tmp_path / "busy.csv"
    busy.write_text(
        "date,run_id,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours,tokens\n2026-10-01,,10,9,8,5000000\n"
    )
    rows = each_day(date(2026, 10, 1), date(2026, 10, 31))
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows), only=("gpu",), utilisation=load_utilisation(busy)
    )
    found = figures(made)
    for key in ("gpu_useful_hour_money", "gpu_million_tokens_money"):
        assert found[key].value is None and found[key].status == "withheld"
        assert found[key].reason == "what GPUs cost in the month is not known"


def test_utilisation_sums_by_run(tmp_path: Path) -> None:
    from datetime import date

    from tests.focus_company.plans import useful_hours

    company = small_company()
    busy = load_utilisation(write_utilisation(tmp_path / "busy.csv", company.runs))
    for run in company.runs:
        found = busy.between(date.min, date.max, run.run_id)
        assert found is not None
        sums = (found.allocated, found.busy, found.goodput, found.lost)
        assert sums == pytest.approx(useful_hours(run))
    assert busy.between(date(2020, 1, 1), date(2020, 2, 1)) is None


def test_a_replaced_machine_is_one_node_and_an_address_is_none(tmp_path: Path) -> None:
    """Four hours on two nodes, of which one is taken away and replaced; an address is paid by the hour too."""
    header = (
        "ChargePeriodStart,ChargePeriodEnd,ChargeCategory,BilledCost,EffectiveCost,ListCost,ContractedCost,"
        "BillingCurrency,ProviderName,ServiceName,ServiceCategory,SkuId,PricingCategory,PricingQuantity,PricingUnit,"
        "ResourceId,Tags,SkuPriceDetails"
    )
    rows = []
    for hour in range(4):
        period = f"2026-10-05T{hour:02d}:00:00Z,2026-10-05T{hour + 1:02d}:00:00Z"
        rows += [
            f"{period},Usage,33,33,60,60,USD,AWS,EC2,Compute,s,Dynamic,1,Hours,{name},"
            '"{""run_id"":""run-1""}","{""GpuCount"":""eight""}"'
            for name in ("a", "b" if hour < 2 else "c")
        ]
        rows.append(f'{period},Usage,0.005,0.005,0.005,0.005,USD,AWS,VPC,Networking,i,Standard,1,Hours,ip,'
                    '"{""run_id"":""run-1""}",')  # fmt: skip
    path = tmp_path / "bill.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    with open_bill([path]) as bill:
        made = review_bill(bill, plans=(plan_of(2, 4, 30),), forecast=False)
    found = {figure.key: figure.value for part in made.sections for figure in part.figures}
    assert found["plan_price_effect_money"] == pytest.approx(2 * 4 * 3)
    assert found["plan_duration_effect_money"] == pytest.approx(0)
    assert found["plan_nodes_effect_money"] == pytest.approx(0)
    assert found["plan_other_effect_money"] == pytest.approx(0.02)
    assert found["gpu_hours"] is None  # "eight" is not a number, and no error either


def test_a_utilisation_file_of_a_few_days_is_said_to_be_one(tmp_path: Path) -> None:
    bill_path, busy_path = tmp_path / "bill.csv", tmp_path / "busy.csv"
    bill_path.write_text(
        "ChargePeriodStart,ChargeCategory,BilledCost,EffectiveCost,BillingCurrency,PricingQuantity,PricingUnit,"
        'SkuPriceDetails\n2026-10-05T00:00:00Z,Usage,33,33,USD,1,Hours,"{""GpuCount"":8}"\n'
    )
    busy_path.write_text("date,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours\n2026-10-05,6,5,4\n")
    with open_bill([bill_path]) as bill:
        made = review_bill(bill, utilisation=load_utilisation(busy_path), forecast=False)
    part = next(part for part in made.sections if part.key == "gpu")
    assert part.sentences[1] == (
        "At least 50.0 % of them did work that was kept: the utilisation file has rows on 1 of the month's 31 days."
    )
    held = {one.key: one.status for one in part.figures}
    assert (held["gpu_goodput_ratio"], held["gpu_useful_hour_money"], held["gpu_hours"]) == (
        "flagged",
        "flagged",
        "ok",
    )


def _in_turn(tmp_path: Path, hours: int, first: date, last: date, run_days: int) -> dict[str, Any]:
    """The run table's row: a plan of two lines in turn, 4 machines, `hours` in all, at 1 USD; a run of so many days."""
    launch = SimpleNamespace(in_turn=True)
    lines = [plan_line(4, hours / 2, region=region) for region in ("east", "west")]
    plan = saved_plan(*lines, stated_run_id="r", hours=float(hours))
    made = planned_run(cast("Plan", _Patched(plan, launch)), "p.json")
    assert made is not None
    rows = each_day(first, last, 1, SkuId="other", Tags="")
    for machine in range(4):
        for number in range(run_days):
            region = "east" if number < run_days / 2 else "west"
            rows.append(charge(first + timedelta(number), 24, ResourceId=f"m{machine}", PricingQuantity=24,
                               RegionId=region, Tags='{"run_id":"r"}'))  # fmt: skip
    shown = review_of(write_bill(tmp_path / "bill.csv", rows), only=("plan_vs_actual",), plans=(made,))
    (row,) = rows_of(shown, "plan_vs_actual", "plan_vs_actual")
    return row


class _Patched:
    """A plan with another launch."""

    def __init__(self, plan: Plan, launch: object) -> None:
        self._plan, self.launch = plan, launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    @property
    def starts_in_hours(self) -> float:
        return 0.0


def test_storage_of_a_run_has_its_own_cause(tmp_path: Path) -> None:
    """Planned: 4 machines for 240 h at 1 USD and 40 USD of storage; billed: 55 USD of it and 7 USD of transfer."""
    first = date(2026, 10, 1)
    line = plan_line(4, 240)
    kept = replace(line.costs[0], id=CostId.CHECKPOINT_STORAGE, amount_usd=Decimal(40))
    line = replace(line, costs=(*line.costs, kept))
    made = planned_run(saved_plan(line, stated_run_id="r", hours=240.0), "p.json")
    assert made is not None and made.storage_usd == 40
    tag = {"Tags": '{"run_id":"r"}'}
    rows = [charge(first, 55, ServiceCategory="Storage", PricingUnit="GiB-Mo", PricingQuantity=9, **tag)]
    rows.append(charge(first, 7, ServiceCategory="Networking", PricingUnit="GB", PricingQuantity=9, **tag))
    for machine in range(4):
        rows += [
            charge(first + timedelta(day), 24, ResourceId=f"m{machine}", PricingQuantity=24, **tag)
            for day in range(10)
        ]
    rows += each_day(first, date(2026, 10, 31), 1, SkuId="other", Tags="")
    shown = review_of(write_bill(tmp_path / "bill.csv", rows), only=("plan_vs_actual",), plans=(made,))
    (row,) = rows_of(shown, "plan_vs_actual", "plan_vs_actual")
    assert (row["storage"], row["other"]) == (pytest.approx(15), pytest.approx(7))


def test_lines_one_after_another_are_one_cluster(tmp_path: Path) -> None:
    """4 machines for 240 h were read as 8 for 120 h: a run that kept its plan differed by nodes and by duration."""
    row = _in_turn(tmp_path, 240, date(2026, 10, 1), date(2026, 10, 31), 10)
    assert (row["planned"], row["billed"], row["planned_hours"], row["hours"]) == (960, 960, 240, 240)
    assert [row[name] for name in ("difference", "duration", "nodes", "other")] == [0, 0, 0, 0]
    assert set(row["regions"].split(", ")) == {"east", "west"} and row["due"] == 1


def test_an_unfinished_run_is_compared_with_what_is_due(tmp_path: Path) -> None:
    """After 5 of 10 days half of the plan is due: it said that the run cost 480 USD less than planned."""
    row = _in_turn(tmp_path, 240, date(2026, 10, 1), date(2026, 10, 5), 5)
    assert (row["due"], row["planned"], row["billed"], row["difference"]) == (0.5, 480, 480, 0)


@pytest.mark.parametrize("named", [True, False])
def test_without_machines_in_the_bill_nothing_is_measured(tmp_path: Path, named: bool) -> None:
    """A run on 2 of 4 planned machines, without their ids: half of its speed was written for `planner calibrate`."""
    run = small_company().runs[0]
    made = load_plans(write_plans(tmp_path / "plans", [run]))
    tag, first = {"Tags": json.dumps({"run_id": run.run_id})}, date(2026, 10, 1)
    rows = each_day(first, date(2026, 10, 31), 1, SkuId="other", Tags="")
    for machine in range(2):
        rows += each_day(first, date(2026, 10, 5), 24, ResourceId=f"m{machine}", PricingQuantity=24, **tag)
    path = write_bill(tmp_path / "bill.csv", rows, leave=() if named else ("ResourceId",))
    busy = load_utilisation(write_utilisation(tmp_path / "busy.csv", [run]))
    shown = review_of(path, only=("plan_vs_actual",), plans=made, utilisation=busy)
    (row,) = rows_of(shown, "plan_vs_actual", "plan_vs_actual")
    assert (row["nodes"] != 0) == named
    assert bool(rows_of(shown, "plan_vs_actual", "measurements")) == named
    assert any("names no machines" in said for said in shown.sections[0].sentences) != named


def test_a_plan_is_not_compared_with_charges_that_are_there_twice(tmp_path: Path) -> None:
    """Run-1 is of both months: either one doubled, its cost is too high, also where the reviewed month is sound."""
    details = {"PricingQuantity": 24, "SkuPriceDetails": '{"GpuCount":8,"InstanceType":"p5.48xlarge"}'}
    charges: dict[int, list[dict[str, str]]] = {9: [], 10: []}
    for run, first, last in (
        ("run-1", date(2026, 9, 16), date(2026, 9, 30)),
        ("run-1", date(2026, 10, 1), date(2026, 10, 15)),
        ("run-2", date(2026, 10, 16), date(2026, 10, 31)),
    ):
        tags = f'{{"team":"ml","run_id":"{run}"}}'
        charges[first.month] += each_day(first, last, 48, Tags=tags, **details)

    def reviewed(doubled: int) -> Any:
        bill = tmp_path / str(doubled)
        bill.mkdir()
        for month, rows in charges.items():
            write_bill(bill / f"{month}.csv", rows)
        if doubled:
            write_bill(bill / "again.csv", [row | {"x_part": "2"} for row in charges[doubled]])
        plans = (plan_of(1, 720, 2), replace(plan_of(1, 384, 2), run_id="run-2"))
        with open_bill([bill]) as opened:
            return review_bill(opened, month=date(2026, 10, 1), plans=plans, forecast=False)

    assert [row["run_id"] for row in rows_of(reviewed(0), "plan_vs_actual", "plan_vs_actual")] == [
        "run-1",
        "run-2",
    ]
    this_month = section(reviewed(10), "plan_vs_actual")
    assert this_month.status == "withheld" and "counted twice" in this_month.reason and not this_month.tables
    other = reviewed(9)
    words = "Charges of September 2026 are counted twice, so the cost of run run-1 is not known."
    for part, table in (("plan_vs_actual", "plan_vs_actual"), ("gpu", "gpu_runs")):
        assert [row["run_id"] for row in rows_of(other, part, table)] == ["run-2"]
        assert words in section(other, part).sentences
