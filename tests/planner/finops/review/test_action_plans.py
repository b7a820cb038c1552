"""Each action leads to the plan that does it, or says what is missing for one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.finops.plan_vs_actual import PlannedRun
from planner.finops.review.report import review_answer
from planner.render import render_answer
from tests.conftest import CliResult
from tests.planner.finops.small_bill import each_day, review_of, rows_of, write_bill

pytestmark = pytest.mark.usefixtures("one_bill")

Run = Callable[..., CliResult]
OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)
MACHINE = '{"InstanceType":"p5.48xlarge"}'


@pytest.fixture(scope="module")
def example() -> list[dict[str, Any]]:
    """The actions of the example bill."""
    return rows_of(review_of(Path("examples/focus"), only=("actions",)), "actions", "actions")


def test_plans_of_the_example_bill_run_as_written(example: list[dict[str, Any]], run_cli: Run) -> None:
    """`planner commit --from-focus examples/focus` ended with exit code 2: no price of its machines was known."""
    commands = {row[name] for row in example for name in ("plan", "command") if row[name]}
    assert any(command.startswith("planner commit --from-focus examples/focus") for command in commands)
    for command in commands:
        program, *words = shlex.split(command)
        found = run_cli(*words)
        assert (program, found.code) == ("planner", 0), (command, found.stderr)


def test_each_action_has_a_plan_or_says_what_is_missing(example: list[dict[str, Any]]) -> None:
    assert example and all(bool(row["plan"]) != bool(row["plan_needs"]) for row in example)


def run_of(path: str, option: str, region: str, usd: float) -> PlannedRun:
    return PlannedRun(path, path, "job", "aws", (region,), ("p5.48xlarge",), (option,), 1.0, 10.0, 0.0, usd / 10, usd,
                      "samples", None, None, 10.0)  # fmt: skip


def actions_of(tmp_path: Path, plans: tuple[PlannedRun, ...]) -> dict[str, dict[str, Any]]:
    rows = each_day(date(2026, 9, 1), LAST, 1000, SkuPriceDetails=MACHINE)
    rows += each_day(OCTOBER, LAST, 50, RegionId="west", SkuPriceDetails=MACHINE)
    rows += each_day(OCTOBER, LAST, 30, PricingCategory="Dynamic", SkuPriceDetails=MACHINE)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("actions",), plans=plans)
    return {row["what"].split()[0]: row for row in rows_of(made, "actions", "actions")}


def test_the_saved_plan_that_does_an_action_is_named(tmp_path: Path) -> None:
    """The cheapest plan of the machine in the new region, or as spot where it runs; a plan of today's use is none."""
    without = actions_of(tmp_path, (run_of("as-now.json", "on_demand", "us-east-1", 1.0),))
    assert all(
        without[kind]["plan"] == "" and "--plans" in without[kind]["plan_needs"] for kind in ("Move", "Run")
    )
    region = next(iter({row["RegionId"] for row in each_day(OCTOBER, OCTOBER, 1)}))
    plans = (
        run_of("dear.json", "on_demand", "west", 900.0), run_of("my west.json", "on_demand", "west", 700.0),
        run_of("spot.json", "spot", region, 500.0),
    )  # fmt: skip
    found = actions_of(tmp_path, plans)
    assert (found["Move"]["plan"], found["Move"]["plan_file"]) == (
        "planner verify 'my west.json'",
        "my west.json",
    )
    assert (found["Run"]["plan_file"], found["Run"]["plan_needs"]) == ("spot.json", "")


@pytest.mark.parametrize("kept", [(), ("--map-file", "columns.csv")])
def test_the_plan_of_a_mapped_bill_reads_its_columns(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch, kept: tuple[str, ...]
) -> None:
    """No purchase was planned of a bill in columns of its own, though `planner commit` reads one."""
    monkeypatch.chdir(tmp_path)
    rows = [{**row, "Machines": row.pop("SkuId")} for row in each_day(date(2026, 9, 1), LAST, 1000)]
    sold = {"SkuPriceDetails": '{"InstanceType":"p4d.24xlarge"}', "RegionId": "us-east-1"}
    path = write_bill(tmp_path / "bill.csv", [{**row, **sold} for row in rows])
    own = ("--map", "Machines=SkuId", *kept)
    found = run_cli("review", "--focus", path.name, *own, "--no-forecast", "-o", "json")
    assert found.code == 0, found.stderr
    (table,) = (t for s in json.loads(found.stdout)["sections"] if s["key"] == "actions" for t in s["tables"])
    names = [column["key"] for column in table["columns"]]
    more = next(row for row in (dict(zip(names, cells, strict=True)) for cells in table["rows"])
                if row["what"].startswith("Commit more"))  # fmt: skip
    columns = " ".join(kept or own)
    assert more["plan"] == f"planner commit --from-focus bill.csv {columns}", more["plan_needs"]
    done = run_cli(*shlex.split(more["plan"])[1:], "--no-regret")
    assert done.code == 0, done.stderr


def test_more_commitments_say_what_their_plan_leaves_out(example: list[dict[str, Any]]) -> None:
    """`planner commit --from-focus` left out machines of 97 % of their cost without a word on the page."""
    more = [row for row in example if row["what"].startswith("Commit more") and row["plan"]]
    assert more and all("excludes machines, also with GPUs" in row["why"] for row in more)


def test_a_page_leads_to_the_saved_plan_from_its_own_folder(tmp_path: Path, run_cli: Run) -> None:
    rows = each_day(date(2026, 9, 1), LAST, 1000, SkuPriceDetails=MACHINE)
    rows += each_day(OCTOBER, LAST, 50, RegionId="west", SkuPriceDetails=MACHINE)
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("actions",),
        plans=(run_of(str(tmp_path / "my west.json"), "on_demand", "west", 700.0),),
    )  # fmt: skip
    (tmp_path / "pages").mkdir()
    answer = replace(review_answer(made), folder=str(tmp_path / "pages"))
    assert '<a href="./../my%20west.json">' in str(render_answer(answer, "html"))


@pytest.mark.parametrize(
    ("region", "own_price", "is_planned"), [("us-east-1", 0, True), ("own-1", 0, False), ("own-1", 0.6, True)]
)
def test_commitments_are_planned_where_a_machine_has_a_price(
    tmp_path: Path, run_cli: Run, region: str, own_price: float, is_planned: bool
) -> None:
    """`planner commit` refused bills of which neither the catalog nor their own commitments have a price."""
    machine = {"SkuPriceDetails": '{"InstanceType":"p4d.24xlarge"}', "RegionId": region}
    rows = each_day(date(2026, 9, 1), LAST, 1000, **machine)
    owned = {
        "CommitmentDiscountId": "c-1",
        "CommitmentDiscountStatus": "Used",
        "CommitmentDiscountType": "Reserved",
    }
    if own_price:
        rows += each_day(date(2026, 9, 1), LAST, 100, EffectiveCost=100 * own_price, **machine, **owned)
    path = write_bill(tmp_path / "bill.csv", rows)
    found = rows_of(review_of(path, month=OCTOBER, only=("actions",)), "actions", "actions")
    more = next(row for row in found if row["what"].startswith("Commit more"))
    assert bool(more["plan"]) == is_planned
    assert ("price of a one-year commitment" in more["plan_needs"]) != is_planned
    assert (run_cli("commit", "--from-focus", str(path)).code == 0) == is_planned
