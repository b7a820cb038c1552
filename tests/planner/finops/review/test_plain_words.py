"""Sentences of the review that a finance lead reads first: true, and in plain words."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from planner.finops.read.rates import load_rates
from planner.finops.review.answer import review_bill
from planner.finops.review.brief import brief_sections
from planner.finops.review.report import review_answer
from planner.finops.showback.statement import rules_by_tag, team_statement
from planner.render.formats import load_renderer
from planner.render.numbers import percent
from tests.planner.finops.small_bill import (
    charge,
    each_day,
    review_of,
    rows_of,
    section,
    sections_only,
    write_bill,
)

SEPTEMBER, OCTOBER, LAST = date(2026, 9, 1), date(2026, 10, 1), date(2026, 10, 31)


@pytest.mark.parametrize(
    ("october", "said"),
    [
        (100.0, "3.3 % more than September 2026 (as much per day)."),
        (101.0, "4.4 % more than September 2026 (1.0 % more per day)."),
        (99.0, "2.3 % more than September 2026 (1.0 % less per day)."),
        (150.0, "55.0 % more than September 2026."),
    ],
)
def test_a_change_that_is_the_calendar_s_is_told_from_one_of_use(
    october: float, said: str, tmp_path: Path
) -> None:
    """Every October cost 3.3 % more than its September."""
    rows = each_day(SEPTEMBER, date(2026, 9, 30), 100) + each_day(OCTOBER, LAST, october)
    assert review_of(write_bill(tmp_path / "bill.csv", rows), only=("quality",)).verdict.endswith(said)


def test_a_fee_of_a_month_does_not_fall_with_the_days(tmp_path: Path) -> None:
    rows = [charge(SEPTEMBER, 3000, days=30), charge(OCTOBER, 3000, days=31)]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("quality",))
    assert made.verdict.endswith("0.0 % more than September 2026.")


@pytest.mark.parametrize(
    ("kind", "each", "said"),
    [
        (
            "Credit",
            -100,
            "cost 0 USD without tax, after 3,100 USD of credits, 100.0 % less than September 2026.",
        ),
        (
            "Adjustment",
            -150,
            "cost -1,550 USD without tax, after 4,650 USD of adjustments, against 3,000 USD in",
        ),
        ("Credit", -5, "cost 2,945 USD without tax, 1.8 % less than September 2026."),
    ],
)
def test_what_credits_took_off_is_said(kind: str, each: float, said: str, tmp_path: Path) -> None:
    """A month paid by credits was "0 USD, 100.0 % less"; a refund made another one 151.7 % cheaper."""
    rows = each_day(SEPTEMBER, LAST, 100) + each_day(OCTOBER, LAST, each, ChargeCategory=kind, SkuId="off")
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge",))
    assert said in made.verdict
    bridge = section(made, "bridge").sentences[0]
    assert ("%" in bridge) == (each != -150), bridge


@pytest.mark.parametrize("refund", [{"ChargeCategory": "Adjustment"}, {"ChargeClass": "Correction"}, {}])
def test_shares_of_a_month_below_0_are_not_shown(refund: dict[str, str], tmp_path: Path) -> None:
    """They were "ml: -200 % of spend", "-200.0 % of the cost that can be tagged", and "nan %" of a month of 0."""
    rows = each_day(SEPTEMBER, LAST, 100)
    of = refund or {"ChargeCategory": "Credit"}
    rows.append(charge(OCTOBER, -4650 if refund else -3100, Tags="{}") | of)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("overview", "allocation"))
    texts = str(load_renderer("md")(review_answer(made), width=100, color=False))
    overview = texts[: texts.index("Whose cost is it?")]
    assert "ml cost most: 3,100 USD. Credits and refunds are as much or more than all cost." in overview
    assert "%" not in overview[overview.index("Spend by provider") :]
    assert not re.search(r"nan %|-[\d.]+ %", texts)
    coverage = next(f for s in made.sections for f in s.figures if f.key == "allocation_ratio")
    assert (coverage.value is None) == ("ChargeClass" in refund)
    if "ChargeClass" not in refund:
        assert coverage.value == 1.0


def test_shares_above_the_whole_are_not_shown(tmp_path: Path) -> None:
    """A refund left 110 of a month's 3,410: "3,100.0 % of the cost that can be tagged", "ml: 2,818 % of spend"."""
    rows = each_day(SEPTEMBER, LAST, 100) + each_day(SEPTEMBER, LAST, 10, Tags='{"team":"web","env":"dev"}')
    rows.append(charge(OCTOBER, -3300, SkuId="back", ChargeClass="Correction", Tags='{"team":"web"}'))
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows), only=("overview", "bridge", "movers", "allocation")
    )
    texts = str(load_renderer("md")(review_answer(made), width=100, color=False))
    assert "ml cost most: 3,100 USD. After credits and refunds, 110 USD is left of all cost." in texts
    assert "Cost with team and env is 3,410 USD, cost without them -3,300 USD: refunds leave" in texts
    assert all(float(found.replace(",", "")) <= 100 for found in re.findall(r"([\d.,]+) %", texts))
    page = str(load_renderer("html")(review_answer(made), width=100, color=False))
    assert not re.search(r"[\d,]{4,}(\.\d)? %", page)
    # and it is no new thing that costs less than nothing
    assert "credits, refunds, fees and corrections (-3,300)" in section(made, "bridge").sentences[0]
    assert {row["product"]: row["reason"] for row in rows_of(made, "movers", "movers")}["back"] == "refunds"


def test_a_small_refund_leaves_shares_as_they_are(tmp_path: Path) -> None:
    rows = [*each_day(SEPTEMBER, LAST, 100), charge(OCTOBER, -2, ChargeClass="Correction", Tags="{}")]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("allocation",))
    assert (
        "100.0 % of the cost that can be tagged carries team and env"
        in section(made, "allocation").sentences[0]
    )


def test_a_forecast_of_nothing_has_no_digits_that_its_range_has_not(tmp_path: Path) -> None:
    """It was "0.6 USD (roughly between 0 and 23,416.4)"."""
    rows = each_day(date(2026, 8, 1), LAST, 960)
    rows += each_day(OCTOBER, LAST, -960, ChargeCategory="Credit", SkuId="credit")
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("forecast",), forecast=True)
    assert "November 2026 is expected at 0 USD (roughly between 0 and " in made.verdict
    assert ",000)." in made.verdict


def test_a_range_without_a_width_is_none(tmp_path: Path) -> None:
    """It was "80 % likely between 3,000 and 3,000"."""
    rows = each_day(date(2025, 10, 1), LAST, 100)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("forecast",), forecast=True)
    assert made.verdict.endswith(
        "November 2026 is expected at 3,000 USD (with next to no error on earlier periods)."
    )
    (said,) = next(one for one in brief_sections(made) if one.key == "forecast").sentences
    assert said == "November 2026, expected: 3,000 USD"


def test_an_unusual_day_is_of_the_team_that_caused_it(tmp_path: Path) -> None:
    """It was addressed to the team that uses most of the service in the month."""
    rows = each_day(date(2026, 8, 1), LAST, 1000)
    rows.append(charge(date(2026, 10, 14), 5000, Tags='{"team":"data"}'))
    rows.append(charge(date(2026, 10, 21), 5000, Tags="{}"))
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    found = {row["what"]: row["owner"] for row in rows_of(made, "actions", "actions")}
    assert (found["Look into EC2 on 14 October"], found["Look into EC2 on 21 October"]) == ("data", "")


@pytest.mark.parametrize(
    ("last", "said"), [(24, "; it continues at 4,000 USD a day"), (21, "the days around it")]
)
def test_an_excess_that_has_not_ended_is_told_from_one_that_has(last: int, said: str, tmp_path: Path) -> None:
    """A machine that was left running was an excess "once", like one that had been stopped."""
    rows = each_day(date(2026, 7, 1), date(2026, 10, 24), 1000)
    rows += each_day(date(2026, 10, 20), date(2026, 10, last), 4000)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    (row,) = [row for row in rows_of(made, "actions", "actions") if str(row["what"]).startswith("Look into")]
    assert row["what"] == "Look into EC2 from 20 October"
    assert str(row["why"]).endswith(said)


def test_the_only_commitment_that_is_not_full_has_its_name(tmp_path: Path) -> None:
    """It was "Fill or shrink 1 more commitment of AWS", beside no other."""
    plan = {"CommitmentDiscountId": "sp-1", "CommitmentDiscountName": "Plan", "PricingCategory": "Committed"}
    rows = each_day(OCTOBER, LAST, 90, CommitmentDiscountStatus="Used", **plan)
    rows += each_day(OCTOBER, LAST, 10, CommitmentDiscountStatus="Unused", Tags="", **plan)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("actions",))
    (row,) = [row for row in rows_of(made, "actions", "actions") if row["basis"] == "at most"]
    assert (row["what"], row["owner"], row["thing"]) == ("Fill or shrink Plan (sp-1)", "ml", "sp-1")


def test_a_change_of_exchange_rates_is_not_said_to_be_one_of_prices(tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("date,from,to,rate\n2026-09,EUR,USD,1.10\n2026-10,EUR,USD,1.20\n")
    path = write_bill(tmp_path / "bill.csv", each_day(SEPTEMBER, LAST, 100, BillingCurrency="EUR"))
    with sections_only("bridge"), open_bill([path], rates=load_rates(rates, "USD")) as bill:
        made = review_bill(bill, forecast=False)
    assert "higher prices or exchange rates (+305)" in section(made, "bridge").sentences[0]


def test_a_month_below_0_says_nothing_of_commitments_and_percentages(tmp_path: Path) -> None:
    """ "0 USD of unused commitments count as a cost", and a team had "-313.3 % against the month before"."""
    rows = [
        *each_day(date(2026, 9, 1), LAST),
        charge(date(2026, 10, 15), -9000, ChargeCategory="Adjustment", ChargeClass="Correction"),
    ]
    path = write_bill(tmp_path / "bill.csv", rows)
    said = section(review_of(path, only=("commitments",)), "commitments").sentences[0]
    assert said == "What was used cost as much as at list and contracted prices."
    with open_bill([path]) as bill:
        statement = team_statement(bill, date(2026, 10, 1), rules_by_tag("team"), "ml")
    assert "ml: -5,900.00 USD in October 2026" in statement.title and "%" not in statement.title


def test_a_change_of_many_times_is_not_told_per_day_too(tmp_path: Path) -> None:
    """A prepayment of a year: "800,001 times the 1,500 USD of September 2026 (6,575,342.5 % more per day)"."""
    rows = [
        *each_day(date(2026, 9, 1), LAST),
        charge(date(2026, 10, 15), 1.2e9, days=365, ChargeCategory="Purchase"),
    ]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("overview",))
    assert "400,001 times the 3,000 USD of September 2026." in made.verdict


def test_what_is_unused_of_a_commitment_moved_nowhere(tmp_path: Path) -> None:
    """It has no quantity, nor has that of another: "charges without a quantity; moved to"."""
    rows = each_day(date(2026, 9, 1), LAST)
    for name, region, cost in (("c1", "", 10), ("c2", "west", 20)):
        plan = {
            "CommitmentDiscountId": name,
            "PricingCategory": "Committed",
            "RegionId": region,
            "PricingQuantity": "",
        }
        for first, last, more in ((date(2026, 9, 1), date(2026, 9, 30), 0), (OCTOBER, LAST, 5)):
            rows += each_day(first, last, cost + more, CommitmentDiscountStatus="Unused", **plan)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("movers",))
    reasons = [row["reason"] for row in rows_of(made, "movers", "movers") if "volume" not in row["reason"]]
    assert reasons == ["charges without a quantity"] * 2


def test_faults_of_both_months_are_said_once_under_data_quality(tmp_path: Path) -> None:
    rows = each_day(date(2026, 9, 1), LAST, ListCost="0", ContractedCost="0")
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("quality",))
    said = " ".join(section(made, "quality").sentences)
    assert said.count("list prices are known for 0.0 % of use cost only") == 1
    assert said.endswith("Figures that depend on them are withheld. September 2026 has the same faults.")
    rows = [row | {"Tags": ""} if row["ChargePeriodStart"] > "2026-10" else row for row in rows]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("quality",))
    said = section(made, "quality").sentences[0]
    assert "list prices are known for 0.0 % of use cost only (in September 2026 too)" in said


def test_a_tag_that_was_renamed_is_told_from_one_that_never_was(tmp_path: Path) -> None:
    """The month at a glance sent to keys that were nowhere: team was there, in other months."""
    rows = each_day(date(2026, 8, 1), date(2026, 9, 30))
    rows += each_day(OCTOBER, LAST, Tags='{"cost-team":"ml","env":"prod"}')
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("overview", "allocation"))
    assert "no charge of the month carries this tag" in " ".join(section(made, "overview").sentences)
    assert (
        section(made, "allocation")
        .sentences[0]
        .endswith(
            "Other months carry the tag team, October 2026 does not: the keys of its charges are cost-team, env "
            "(--tags names those to use)."
        )
    )
    september = review_of(tmp_path / "bill.csv", month=date(2026, 9, 1), only=("allocation",))
    assert "does not" not in section(september, "allocation").sentences[0]


def test_a_tag_that_the_month_before_lacks_is_named(tmp_path: Path) -> None:
    """Renamed on the first of the month: "ml: 0 before, +3,100", and no word of it."""
    rows = each_day(date(2026, 9, 1), date(2026, 9, 30), Tags='{"squad":"ml","env":"prod"}')
    path = write_bill(tmp_path / "bill.csv", [*rows, *each_day(OCTOBER, LAST)])
    assert (
        "September 2026 does not carry the tag team: the keys of its charges are env, squad; changes by it say nothing."
    ) in section(review_of(path, only=("allocation",)), "allocation").sentences[0]


def test_all_of_a_cost_is_no_shortfall_of_the_last_digit() -> None:
    """One team with all of the month: "serving: >99.9 %" beside "100 % of spend"."""
    assert percent(0.1 + 0.2 + 0.7 - 1e-16) == "100.0 %"
    assert percent(0.9999999) == ">99.9 %"


def test_credits_of_several_names_are_not_said_to_be_one_of_them(tmp_path: Path) -> None:
    """`Migration credit` was said to have taken off 40,000, of which 400 were its own."""
    rows = each_day(SEPTEMBER, date(2026, 10, 31))
    for cost, name in ((-400, "Migration credit"), (-39_600, "Startup credits")):
        own = {"ChargeCategory": "Credit", "ChargeDescription": name, "SkuId": "", "PricingQuantity": ""}
        rows.append(charge(date(2026, 10, 15), cost, **own))
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("movers",))
    (row,) = [row for row in rows_of(review, "movers", "movers") if row["change"] < -1000]
    assert row["product"] == "Migration credit and others"


def test_a_verdict_keeps_to_two_lines(tmp_path: Path) -> None:
    """Reasons for care took three lines more, and stood below it again."""
    rows = [charge(day, -10) | {"EffectiveCost": ""} for day in (date(2026, 9, 3), date(2026, 10, 3))]
    rows += [row | {"EffectiveCost": ""} for row in each_day(date(2026, 8, 1), LAST, SkuId="a-long-name")]
    path = write_bill(tmp_path / "bill.csv", rows, leave=("EffectiveCost",))
    made = review_of(path, only=("quality",), forecast=True)
    assert "than September 2026 (with care)." in made.verdict
    assert len(made.verdict) <= 200
    said = section(made, "quality").sentences
    assert len(said[0]) <= 200
    assert "the bill has no EffectiveCost, BilledCost is used instead" in said[0]
    assert "is negative in rows that are neither credits nor corrections" in " ".join(said)
