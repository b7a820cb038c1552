"""The month at a glance: tiles, a trend that says how far it reaches, and splits that add up to the month's spend."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.finops.review.model import Review, Section
from planner.finops.review.report import render_review
from planner.finops.review.sections.forecast import Outlook, range_words
from planner.finops.review.sections.overview import MONTHS, NAMED
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Review:
    """20 months, the last of seven teams, with a credit that carries no tag and two SKUs of one name."""
    rows = [charge(date(2025 + (2 + n) // 12, (2 + n) % 12 + 1, 1), 100 + n, days=2) for n in range(19)]
    rows += each_day(date(2026, 9, 1), date(2026, 9, 30), 1, SkuId="old")
    for number in range(7):
        tags, name = f'{{"team":"t{number}","env":"prod"}}', "GPU" if number < 2 else f"meter {number}"
        rows += each_day(OCTOBER, LAST, 10 * (number + 1), Tags=tags, SkuId=f"s{number}", SkuMeter=name,
                         SkuPriceDetails='{"InstanceType":"p5"}')  # fmt: skip
    rows.append(
        charge(OCTOBER, -500, ChargeCategory="Credit", Tags="", SkuId="", PricingQuantity="", PricingUnit="")
    )
    rows.append(charge(OCTOBER, 77, ChargeCategory="Tax", Tags=""))
    path = write_bill(tmp_path_factory.mktemp("overview") / "bill.csv", rows)
    return review_of(path, month=OCTOBER, lines=True)


def series(part: Section, key: str) -> dict[str, float | None]:
    (chart,) = (one for one in part.charts if one.key == key)
    return dict(zip(chart.labels, chart.series[0][1], strict=True))


def test_every_split_adds_up_to_the_spend(made: Review) -> None:
    part = section(made, "overview")
    (spend,) = (one for one in part.figures if one.key == "overview_spend_money")
    assert spend.value == pytest.approx(31 * 280 - 500)  # without tax
    for key in ("spend_providers", "spend_tag_1", "spend_tag_2"):
        assert math.fsum(v or 0.0 for v in series(part, key).values()) == pytest.approx(spend.value), key
    teams = series(part, "spend_tag_1")
    assert len(teams) == NAMED + 1 and teams["3 others"] == pytest.approx(31 * 30 - 500)


def test_the_trend_ends_in_the_month_and_has_at_most_thirteen(made: Review) -> None:
    months = series(section(made, "overview"), "spend_months")
    assert len(months) == MONTHS and (min(months), max(months)) == ("2025-10", "2026-10")
    assert section(made, "overview").figures[0].trend == tuple(months.values())
    assert "bill begins" not in section(made, "overview").charts[0].alt


def test_a_short_bill_says_so(tmp_path: Path) -> None:
    one = section(
        review_of(write_bill(tmp_path / "1.csv", each_day(OCTOBER, LAST)), only=("overview",)), "overview"
    )
    assert one.sentences[0] == "The bill has no month before October 2026: there is no trend yet."
    assert not one.figures[0].trend and "spend_months" not in {chart.key for chart in one.charts}
    rows = each_day(date(2026, 8, 14), LAST)
    two = section(review_of(write_bill(tmp_path / "2.csv", rows), only=("overview",)), "overview")
    assert two.charts[0].alt.endswith(
        "The bill begins in August 2026, the first from 14 August on: 3 of 13 months."
    )


@pytest.mark.parametrize(
    ("tags", "shown", "said"),
    [
        ('{"CostCenter":"7"}', [], "Spend by team and environment is not known: no charge of the month carries these"),
        ('{"env":"dev"}', ["spend_tag_2"], "Spend by team is not known: no charge of the month carries this tag"),
    ],
)  # fmt: skip
def test_tags_that_nothing_carries_have_a_sentence_and_no_chart(
    tags: str, shown: list[str], said: str, tmp_path: Path
) -> None:
    """Two charts of one bar each said "(no tag): 93 % of spend"."""
    path = write_bill(tmp_path / "bill.csv", each_day(OCTOBER, LAST, Tags=tags))
    part = section(review_of(path, only=("overview",)), "overview")
    assert [one.key for one in part.charts if one.key.startswith("spend_tag")] == shown
    assert said in " ".join(part.sentences)


def test_skus_that_share_a_name_are_told_apart(made: Review) -> None:
    rows = {row["sku"]: row["product"] for row in rows_of(made, "movers", "movers")}
    assert (rows["s0"], rows["s1"], rows["s5"]) == ("GPU, p5 (s0)", "GPU, p5 (s1)", "meter 5, p5")


def test_the_flat_sheet_adds_up_by_month_and_team(made: Review) -> None:
    assert made.lines is not None
    names = [column.key for column in made.lines.columns]
    rows = [dict(zip(names, row, strict=True)) for row in made.lines.rows]
    assert len({row["month"] for row in rows}) == MONTHS and "Tax" not in {
        row["charge_category"] for row in rows
    }
    october = [row for row in rows if row["month"] == "2026-10"]
    assert math.fsum(row["cost"] for row in october) == pytest.approx(31 * 280 - 500)
    assert {row["team"]: row["cost"] for row in october}["t6"] == pytest.approx(31 * 70)


@pytest.mark.parametrize("fmt", ["brief", "slack", "teams"])
def test_messages_say_which_month_is_compared_with(tmp_path: Path, fmt: str) -> None:
    rows = each_day(date(2026, 8, 1), date(2026, 8, 31), 50) + each_day(date(2026, 9, 1), LAST, 100)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, compare_month=date(2026, 8, 1))
    text = str(render_review(made, fmt))
    assert "Against August 2026" in text and "100.0 % more than August 2026" in text
    assert "Moved most" in text and "gpu (EC2, east, Standard) +1,550" in text


def test_a_range_below_nothing_is_not_told() -> None:
    """It was "roughly between -837,076 and 970,843"."""
    backtest = SimpleNamespace(windows=9, is_rough=True)
    wide, narrow = (
        SimpleNamespace(days_left=3, backtest=backtest, landing=66_883.0, low=low, high=970_843.0)
        for low in (-837_076.0, 60_000.0)
    )
    assert range_words(Outlook(wide, None, "November")) == "its range is too wide to be of use"
    assert range_words(Outlook(narrow, None, "November")) == "roughly between 60,000 and 970,000"


def test_what_an_ended_month_is_over_its_budget_has_all_digits(tmp_path: Path) -> None:
    """The tile said "26,000 USD over" of a month that was 25,973 over, as the table of budgets has it."""
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(
        "version: 1\nkind: budget\nname: b\ncurrency: USD\nbudgets: [{name: all, amount: 620000}]\n"
    )
    path = write_bill(tmp_path / "bill.csv", each_day(OCTOBER, LAST, 645973 / 31))
    shown = review_of(path, only=("overview",), month=OCTOBER, budgets=load_budgets(budgets))
    (tile,) = (one for one in shown.sections[0].figures if one.key == "overview_budget_money")
    assert tile.note == "25,973 USD (4.2 %) over"
