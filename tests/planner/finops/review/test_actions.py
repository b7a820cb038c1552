"""Actions rank by dollars in all, name their owner and their bound, and their commands run as written."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from planner.finops.review.model import Review
from planner.finops.review.report import render_review
from tests.conftest import CliResult
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)


def commitment(name: str, used: float, unused: float) -> list[dict[str, str]]:
    both = {"Used": used, "Unused": unused}
    return [
        charge(OCTOBER, cost, CommitmentDiscountId=name, CommitmentDiscountStatus=status, PricingCategory="Committed",
               ContractedCost=2 * cost)
        for status, cost in both.items()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Review:
    """Steady use at two prices and as spot, 100 commitments with 10 unused each, and one dear day of storage."""
    rows = each_day(OCTOBER, LAST, 1000)
    rows += each_day(OCTOBER, LAST, 50, RegionId="west")
    rows += each_day(OCTOBER, LAST, 30, PricingCategory="Dynamic", Tags='{"team":"batch"}')
    for number in range(100):
        rows += commitment(f"c{number}", 5, 10)
    rows += each_day(date(2026, 8, 1), LAST, 100, ServiceName="S3", ServiceCategory="Storage", SkuId="s3",
                     Tags='{"team":"data"}')  # fmt: skip
    rows.append(charge(date(2026, 10, 20), 2000, ServiceName="S3", ServiceCategory="Storage", SkuId="s3"))
    rows += each_day(date(2026, 8, 1), date(2026, 9, 30), 1000)
    folder = tmp_path_factory.mktemp("the bill")  # a command must quote it
    return review_of(write_bill(folder / "october bill.csv", rows), month=OCTOBER)


def test_small_unused_commitments_count_together(made: Review) -> None:
    """1,000 USD unused in commitments of 15 each: none was listed, and 0.00 saved per month."""
    rows = {row["what"]: row for row in rows_of(made, "actions", "actions")}
    row = rows["Fill or shrink 100 commitments of AWS"]
    assert (row["saves"], row["basis"], row["why"]) == (1000, "at most", "33.3 % of them is used")


def test_one_off_excess_is_no_monthly_saving(made: Review) -> None:
    (row,) = (row for row in rows_of(made, "actions", "actions") if row["what"].startswith("Look into S3"))
    assert row["saves"] is None and row["once"] == pytest.approx(2000, rel=0.05) and row["basis"] == "once"


def test_owners_are_teams_and_bounds_are_named(made: Review) -> None:
    rows = {row["what"]: row for row in rows_of(made, "actions", "actions")}
    assert rows["Run gpu on spot where work may pause"]["owner"] == "ml"
    assert next(row for name, row in rows.items() if name.startswith("Look into"))["owner"] == "ml"  # its day
    assert {rows[name]["basis"] for name in ("Run gpu on spot where work may pause", "Move gpu to west")} == {
        "at most"
    }
    amounts = [row["saves"] or row["once"] for row in rows.values() if row["saves"] or row["once"]]
    assert amounts == sorted(amounts, reverse=True)


def test_an_action_on_one_sku_or_resource_is_of_the_team_that_uses_it(tmp_path: Path) -> None:
    """All of them were addressed to the team that uses most of EC2."""
    serving, data = ('{"Team":"serving"}', '{"team":"data"}')
    rows = use("p5", 9000) + use("g6", 1000, Tags=serving) + use("g6", 50, PricingCategory="Dynamic")
    rows += use("x2", 200, Tags="", SubAccountName="sandbox") + use("x2", 100, RegionId="west", Tags="")
    rows += use("x1", 70, ResourceId="i-idle", ConsumedQuantity="0", Tags=data)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("actions",))
    assert {row["what"]: row["owner"] for row in rows_of(made, "actions", "actions")} == {
        "Run g6 on spot where work may pause": "serving", "Move x2 to west": "sandbox", "Delete i-idle": "data",
    }  # fmt: skip


def test_overlapping_actions_are_not_added_up(made: Review) -> None:
    total = figures(made)["actions_saves_money"]
    assert total.label == "Together at most, per month"
    rows = {row["what"]: row["saves"] for row in rows_of(made, "actions", "actions")}
    switch, move = rows["Run gpu on spot where work may pause"], rows["Move gpu to west"]
    # of 1,050 a day the unused commitments carry 2,000 a month; what is in the west can only get more of them, at half
    west = 31 * 50 * (1 - 2000 / (31 * 1050)) * 0.5
    assert total.value == pytest.approx(max(switch, move) + west + 1000)


def saved(path: Path, rows: list[dict[str, str]]) -> tuple[dict[str, float], float]:
    """The monthly savings of October's actions by what they are, and what they save together."""
    made = review_of(write_bill(path / "bill.csv", rows), month=OCTOBER, only=("actions",))
    listed = {row["what"]: row["saves"] for row in rows_of(made, "actions", "actions") if row["saves"]}
    return listed, {one.key: one.value for one in section(made, "actions").figures}["actions_saves_money"]


def use(sku: str, cost: float, **changed: str) -> list[dict[str, str]]:
    return [charge(OCTOBER, cost, days=31, SkuId=sku, **changed)]


def test_of_a_sku_in_a_region_the_better_of_a_move_and_spot_counts(tmp_path: Path) -> None:
    """p5 goes to spot in the east and to the west from the north; g5 has another way each: all of it is saved."""
    rows = use("p5", 1000) + use("p5", 200, PricingCategory="Dynamic") + use("p5", 900, RegionId="north")
    rows += use("p5", 500, RegionId="west") + use("g5", 300) + use("g5", 100, RegionId="west")
    rows += use("g4", 300) + use("g4", 50, PricingCategory="Dynamic")
    listed, together = saved(tmp_path, rows)
    assert listed == {
        "Move p5 to west": 500 + 400, "Run p5 on spot where work may pause": 800, "Move g5 to west": 200,
        "Run g4 on spot where work may pause": 250,
    }  # fmt: skip
    assert together == pytest.approx(800 + 400 + 200 + 250)


def test_small_moves_and_small_uses_of_spot_are_added_where_they_are_of_other_things(tmp_path: Path) -> None:
    """Their two lines stood for all of a service: only the larger counted."""
    rows = use("large", 200_000)
    for number in range(30):
        rows += use(f"m{number}", 60) + use(f"m{number}", 10, RegionId="west")
        rows += use(f"s{number}", 90) + use(f"s{number}", 50, PricingCategory="Dynamic")
    listed, together = saved(tmp_path, rows)
    assert list(listed.values()) == [30 * 50, 30 * 40]
    assert together == pytest.approx(30 * 90)


def test_a_sku_in_a_line_of_its_own_and_in_that_of_the_smaller_counts_once(tmp_path: Path) -> None:
    """p5 moves for 900, and is one of 31 that could go to spot for less than a line each."""
    rows = use("large", 200_000) + use("p5", 1000) + use("p5", 950, PricingCategory="Dynamic")
    rows += use("p5", 100, RegionId="west")
    for number in range(30):
        rows += use(f"s{number}", 90) + use(f"s{number}", 50, PricingCategory="Dynamic")
    listed, together = saved(tmp_path, rows)
    assert listed == {
        "31 smaller moves to spot (EC2 of AWS)": pytest.approx(30 * 40 + 50),
        "Move p5 to west": pytest.approx(900),
    }
    assert together == pytest.approx(900 + 30 * 40)


def covered(used: float, contracted: float, unused: float = 0) -> list[dict[str, str]]:
    """A commitment of a month that saves what its use would have cost more, and its unused part."""
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "SkuId": "c"}
    rows = each_day(
        OCTOBER, LAST, used, CommitmentDiscountStatus="Used", ContractedCost=str(contracted), **plan
    )
    return rows + each_day(OCTOBER, LAST, unused, CommitmentDiscountStatus="Unused", **plan) * bool(unused)


def test_steady_use_gets_a_commitment_where_that_saves_more_than_spot(tmp_path: Path) -> None:
    """Commitments save 40 %: the whole service counted for the kind that saves most of it."""
    rows = covered(60, 100)
    rows += each_day(OCTOBER, LAST, 200, SkuId="steady") + each_day(OCTOBER, LAST, 100, SkuId="paused")
    rows += each_day(OCTOBER, LAST, 90, SkuId="steady", PricingCategory="Dynamic", PricingQuantity="5")
    rows += each_day(OCTOBER, LAST, 30, SkuId="paused", PricingCategory="Dynamic", PricingQuantity="10")
    listed, together = saved(tmp_path, rows)
    assert listed == {
        "Commit more: EC2 of AWS": pytest.approx(31 * 300 * 0.4),
        "Run steady on spot where work may pause": pytest.approx(31 * 20),
        "Run paused on spot where work may pause": pytest.approx(31 * 70),
    }
    assert together == pytest.approx(31 * (200 * 0.4 + 70))


def test_what_is_not_steady_goes_to_spot_beside_a_commitment(tmp_path: Path) -> None:
    rows = covered(60, 100) + each_day(OCTOBER, LAST, 100)
    rows += each_day(OCTOBER, date(2026, 10, 10), 50, PricingQuantity="5")
    rows += each_day(OCTOBER, LAST, 7, PricingCategory="Dynamic")
    listed, together = saved(tmp_path, rows)
    assert listed == {
        "Run gpu on spot where work may pause": pytest.approx(3600 * 0.93),
        "Commit more: EC2 of AWS": pytest.approx(3100 * 0.4),
    }
    assert together == pytest.approx(3600 * 0.93)
    dear = [
        row | {"EffectiveCost": "75"} if row["PricingCategory"] == "Dynamic" else row for row in rows
    ]  # 25 % less
    _, together = saved(tmp_path, dear)
    assert together == pytest.approx(3100 * 0.4 + 500 * 0.25)


def test_what_is_idle_is_deleted_and_does_not_move_too(tmp_path: Path) -> None:
    """1,000 of the use at 3,000 is an idle machine: the rest moves for two thirds."""
    rows = use("p5", 2000, PricingQuantity="20") + use("p5", 1000, ResourceId="i-idle", ConsumedQuantity="0")
    rows += use("p5", 300, RegionId="west", PricingQuantity="9")
    listed, together = saved(tmp_path, rows)
    assert listed == {"Move p5 to west": pytest.approx(2000), "Delete i-idle": pytest.approx(1000)}
    assert together == pytest.approx(1000 + 2000 * 2 / 3)


def test_a_refund_of_an_idle_resource_makes_no_other_use_idle_or_movable(tmp_path: Path) -> None:
    """The refund is of the SKU that moves: its move counted for more than the action itself."""
    rows = use("large", 100_000) + use("q", 2000, ResourceId="i-idle", ConsumedQuantity="0")
    rows += [charge(OCTOBER, -500, SkuId="p5", PricingQuantity="", ResourceId="i-idle", ConsumedQuantity="0")]
    rows += use("p5", 3000) + use("p5", 600, RegionId="west")
    listed, together = saved(tmp_path, rows)
    assert listed == {"Move p5 to west": pytest.approx(1900), "Delete i-idle": pytest.approx(1500)}
    assert together == pytest.approx(1900 + 1500)


def test_idle_use_of_no_resource_is_of_the_team_that_uses_most_of_the_service(tmp_path: Path) -> None:
    """It was of the last team by name, whatever its part."""
    none = {"ResourceId": "", "ConsumedQuantity": "0"}
    rows = use("x1", 300, Tags='{"team":"data"}', **none) + use("x1", 1, Tags='{"team":"web"}', **none)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("actions",))
    assert [row["owner"] for row in rows_of(made, "actions", "actions")] == ["data"]


def test_a_provider_fills_its_commitments_and_buys_more_for_the_rest(tmp_path: Path) -> None:
    """Both are of other spend: 30 unused carry 50 of the steady use, and more are for the other 150."""
    listed, together = saved(tmp_path, covered(60, 100, unused=30) + each_day(OCTOBER, LAST, 200))
    assert listed == {
        "Commit less: shrink, exchange or sell c1": pytest.approx(31 * 30),
        "Commit more: EC2 of AWS": pytest.approx(31 * 150 * 0.4),
    }
    assert together == pytest.approx(31 * (30 + 150 * 0.4))


def test_an_excess_that_is_over_saves_nothing_in_a_month(tmp_path: Path) -> None:
    rows = [*each_day(date(2026, 8, 1), LAST), charge(date(2026, 10, 20), 2000)]
    listed, together = saved(tmp_path, rows)
    assert not listed and together is None


def test_commands_run_as_written(made: Review, run_cli: Callable[..., CliResult]) -> None:
    for command in {row["command"] for row in rows_of(made, "actions", "actions")}:
        program, *words = shlex.split(command)
        assert program == "planner"
        found = run_cli(*words)
        assert found.code == 0, (command, found.stderr)


def test_commitments_carry_their_id_and_the_chart_shows_those_of_the_table(made: Review) -> None:
    """The chart showed the eight most used above a table of the worst."""
    part = section(made, "commitments")
    rows = rows_of(made, "commitments", "commitments")
    assert {row["id"] for row in rows} <= {f"c{n}" for n in range(100)} and rows[0]["id"]
    (chart,) = part.charts
    assert chart.labels == tuple(row["id"] for row in rows[: len(chart.labels)])


def test_an_idle_machine_costs_what_was_not_refunded(tmp_path: Path) -> None:
    """Refunds were left out: 3,100 "saved" of a machine that cost 1,000 in the end; one refunded in full was named."""
    month = OCTOBER, LAST
    rows = each_day(*month, 1000)
    for name, back in (("i-half", -2100), ("i-all", -3100)):
        rows += each_day(*month, 100, ResourceId=name, ConsumedQuantity="0")
        rows.append(charge(month[1], back, ResourceId=name, ConsumedQuantity="0", ChargeClass="Correction"))
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    idle = {
        row["thing"]: row["saves"] for row in rows_of(made, "actions", "actions") if "Delete" in row["what"]
    }
    assert idle == {"i-half": pytest.approx(1000)}


def test_an_action_on_plain_use_has_the_name_of_plain_use(tmp_path: Path) -> None:
    """Of a bill without meters it had that of the reservation: "Move VM reservation to west"."""
    month = OCTOBER, LAST
    covered = {
        "PricingCategory": "Committed",
        "CommitmentDiscountId": "c1",
        "CommitmentDiscountStatus": "Used",
    }
    rows = each_day(*month, 50, ChargeDescription="VM reservation", **covered)
    rows += each_day(*month, 200, ChargeDescription="VM hours", RegionId="east")
    rows += each_day(*month, 100, ChargeDescription="VM hours", RegionId="west")
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    moves = [row["what"] for row in rows_of(made, "actions", "actions") if row["what"].startswith("Move")]
    assert moves == ["Move VM hours to west"]


@pytest.mark.parametrize(
    ("said", "steady"),
    [
        ({}, "3,100"),  # of FOCUS 1.4, which says so in a column that this bill lacks: nothing was eligible
        ({"CommitmentProgramEligibilityDetails": '{"a":"b"}', "SkuId": "cpu"}, "1,550"),
    ],
)
def test_compute_is_eligible_where_a_provider_does_not_say_what_is(
    said: dict[str, str], steady: str, tmp_path: Path
) -> None:
    """Coverage counted it as such, and "Commit more" was missing beside it."""
    rows = (
        [*each_day(OCTOBER, LAST, 100), *each_day(OCTOBER, LAST, 50, **said)]
        if said
        else each_day(OCTOBER, LAST)
    )
    rows += each_day(OCTOBER, LAST, 10, CommitmentDiscountId="c1", CommitmentDiscountStatus="Used", SkuId="c")
    rows = [row | {"ServiceProviderName": "AWS"} for row in rows]
    path = write_bill(tmp_path / "bill.csv", rows, leave=("ProviderName",))
    review = review_of(path, only=("actions",))
    (found,) = [
        row for row in rows_of(review, "actions", "actions") if row["what"] == "Commit more: EC2 of AWS"
    ]
    assert str(found["why"]).startswith(f"{steady} USD a month of it runs nine days of ten")


@pytest.mark.parametrize(("unused", "left"), [(0, 60), (18, 30), (36, 0), (90, 0)])
def test_unused_commitments_are_filled_before_more_are_bought(
    unused: float, left: float, tmp_path: Path
) -> None:
    """More commitments were advised beside 53.8 % utilisation. They save 40 %, so 18 unused carry 30 of use."""
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "SkuId": "c"}
    rows = each_day(OCTOBER, LAST, 60) + each_day(
        OCTOBER, LAST, 6, ServiceName="Small", ProviderName="Google"
    )
    rows += each_day(OCTOBER, LAST, 42, CommitmentDiscountStatus="Used", ContractedCost="70", **plan)
    if unused:
        rows += each_day(OCTOBER, LAST, unused, CommitmentDiscountStatus="Unused", **plan)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    found = {row["what"]: row for row in rows_of(made, "actions", "actions")}
    more = found.pop("Commit more: EC2 of AWS", None)
    assert (more is not None) == bool(left)
    if more is not None:
        assert more["saves"] == pytest.approx(31 * left * 0.4)
        assert ("could use the unused part of your AWS commitments" in str(more["why"])) == bool(unused)
    assert "Commit more: Small of Google" in found  # another provider's commitments carry none of it


@pytest.mark.parametrize(("on_gpus", "saved"), [(None, 20 * 0.5), (75, 20 * 0.5 + 1000 * 0.25)])
def test_commitments_on_other_machines_tell_no_discount_on_gpus(
    on_gpus: float | None, saved: float, tmp_path: Path
) -> None:
    """A plan of 10 a day on small machines saves 50 %: "Commit more" promised that of GPU machines of 1,000 a day."""
    gpus = {"SkuPriceDetails": '{"InstanceType":"p5.48xlarge","GpuCount":8}', "SkuId": "p5"}
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "CommitmentDiscountStatus": "Used"}
    small = {"SkuPriceDetails": '{"InstanceType":"m5.large","GpuCount":0}', "SkuId": "m5"}
    rows = each_day(OCTOBER, LAST, 10, ContractedCost="20", **small, **plan)
    rows += each_day(OCTOBER, LAST, 20, **small) + each_day(OCTOBER, LAST, 1000, **gpus)
    if on_gpus is not None:
        rows += each_day(OCTOBER, LAST, on_gpus, ContractedCost="100", **gpus, **plan)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    (more,) = [row for row in rows_of(made, "actions", "actions") if row["what"].startswith("Commit more")]
    assert more["saves"] == pytest.approx(31 * saved)
    assert more["basis"] == ("at least" if on_gpus is None else "estimate")
    assert more["unknown"] == (pytest.approx(31_000) if on_gpus is None else None)
    (listed,) = section(made, "actions").tables
    assert ("unknown" in {one.key for one in listed.columns if one.place == "cell"}) == (on_gpus is None)
    (together,) = [one for one in section(made, "actions").figures if one.key == "actions_saves_money"]
    assert together.label == f"Together at most{', where known' * (on_gpus is None)}, per month"
    told = " (not known on 31,000 USD a month of it)" * (on_gpus is None)
    assert f"{31 * saved:,.0f} USD a month{told}, " in str(render_review(made, "brief"))
    said = section(made, "actions").sentences[0]
    assert said == f"First: {more['what']}, {'at least ' * (on_gpus is None)}{31 * saved:,.0f} USD a month."
    unknown = "31,000 USD of it is GPU machines, and none of your AWS commitments shows what that would save"
    assert (unknown in str(more["why"])) == (on_gpus is None)
    assert "your AWS commitments save 50 %" in str(more["why"])
    assert ("those on GPU machines save 25 %" in str(more["why"])) == (on_gpus is not None)


def test_use_whose_discount_is_unknown_keeps_its_line_beside_a_saving_of_cents(tmp_path: Path) -> None:
    """Cents that were known of small machines hid 31,000 a month of GPU machines without a commitment."""
    gpus = {"SkuPriceDetails": '{"InstanceType":"p5.48xlarge","GpuCount":8}', "SkuId": "p5"}
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "CommitmentDiscountStatus": "Used"}
    small = {"SkuPriceDetails": '{"InstanceType":"m5.large","GpuCount":0}', "SkuId": "m5"}
    rows = each_day(OCTOBER, LAST, 1, ContractedCost="2", **small, **plan)
    rows += each_day(OCTOBER, LAST, 1, **small) + each_day(OCTOBER, LAST, 1000, **gpus)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    (more,) = [row for row in rows_of(made, "actions", "actions") if row["what"].startswith("Commit more")]
    assert more["saves"] == pytest.approx(31 * 0.5)
    assert "31,000 USD of it is GPU machines" in str(more["why"])


@pytest.mark.parametrize("used", ["0", "-5"])
def test_use_under_a_commitment_that_costs_nothing_tells_no_discount_for_the_unused(
    used: str, tmp_path: Path
) -> None:
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "SkuId": "c"}
    rows = each_day(OCTOBER, LAST, 60)
    rows += each_day(OCTOBER, LAST, 70, EffectiveCost=0, CommitmentDiscountStatus="Used", **plan)
    rows += each_day(OCTOBER, LAST, 20, CommitmentDiscountStatus="Unused", **plan)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    (more,) = [row for row in rows_of(made, "actions", "actions") if row["what"].startswith("Commit more")]
    assert "620 USD of it could use the unused part of your AWS commitments" in str(more["why"])


def test_no_commitment_is_advised_for_a_reservation_that_stands_unused(tmp_path: Path) -> None:
    """To shrink it and to commit to it were both advised; only the larger of the two was in the sum."""
    plan = {"CommitmentDiscountId": "c1", "PricingCategory": "Committed", "SkuId": "c"}
    rows = each_day(OCTOBER, LAST, 60)
    rows += each_day(OCTOBER, LAST, 42, CommitmentDiscountStatus="Used", ContractedCost="70", **plan)
    rows += each_day(
        OCTOBER, LAST, 40, CapacityReservationId="cr-1", CapacityReservationStatus="Unused", ResourceId=""
    )
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    found = {row["what"]: row["saves"] for row in rows_of(made, "actions", "actions")}
    assert found["Shrink the capacity reservation cr-1"] == pytest.approx(31 * 40)
    assert found["Commit more: EC2 of AWS"] == pytest.approx(31 * 60 * 0.4)
    together = {one.key: one.value for one in section(made, "actions").figures}["actions_saves_money"]
    assert together == pytest.approx(31 * (40 + 60 * 0.4))
