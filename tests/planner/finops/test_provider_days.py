"""One provider's missing days are named, and gate what the month's days gate."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.forecast.source import read_costs
from planner.finops.provider_days import spans
from planner.finops.review.model import Review
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import each_day, review_of, rows_of, section, write_bill

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
ENDS = {SEPTEMBER: date(2026, 9, 30), OCTOBER: date(2026, 10, 31)}


def use(
    month: date, provider: str, cost: float = 100, last: int = 31, first: int = 1
) -> list[dict[str, str]]:
    end = min(ENDS[month], month.replace(day=min(last, ENDS[month].day)))
    return each_day(month.replace(day=first), end, cost, ProviderName=provider)


def august(provider: str) -> list[dict[str, str]]:
    return each_day(date(2026, 8, 1), date(2026, 8, 31), ProviderName=provider)


def made(path: Path, *parts: list[dict[str, str]]) -> Review:
    bill = write_bill(path / "bill.csv", [row for part in parts for row in part])
    return review_of(bill, month=OCTOBER, only=("bridge", "movers", "quality"))


def test_a_provider_whose_file_is_late_is_left_out(tmp_path: Path) -> None:
    """It said 31.7 % less than September, and all days complete; then nothing of why cost changed."""
    september = [*use(SEPTEMBER, "AWS"), *use(SEPTEMBER, "Azure", 700)]
    review = made(tmp_path, september, use(OCTOBER, "AWS", 120), use(OCTOBER, "Azure", 700, last=10))
    named = "Azure has use on 10 of 31 days (none on 11 to 31 October)"
    assert review.verdict.endswith(
        "24.0 % more than September 2026 without Azure, whose reported use ends on 10 October."
    )
    found = figures(review)
    assert found["complete_ratio"].value == 1.0
    assert found["complete_providers_ratio"].value == pytest.approx(10 / 31)
    assert found["bridge_before_money"].value == pytest.approx(30 * 100)
    assert found["bridge_after_money"].value == pytest.approx(31 * 120)
    assert named in section(review, "quality").sentences[0] and not section(review, "quality").detail
    (row,) = rows_of(review, "quality", "provider_days")
    assert (row["provider"], row["days"], row["of"], row["missing"]) == ("Azure", 10, 31, "11 to 31 October")
    bridge = section(review, "bridge")
    assert bridge.status == "flagged" and f"Azure is left out of both months: {named}." in bridge.sentences[0]


def test_a_provider_whose_file_ends_a_day_early_is_compared_with_care(tmp_path: Path) -> None:
    september = [row for name in ("AWS", "Azure") for row in use(SEPTEMBER, name)]
    review = made(tmp_path, september, use(OCTOBER, "AWS"), use(OCTOBER, "Azure", last=30))
    assert "more than September 2026 (with care: Azure has use on 30 of 31 days" in review.verdict


def test_a_provider_that_lacks_days_of_the_compared_month_withholds_the_comparison(tmp_path: Path) -> None:
    """It said 34.8 % more than September, nothing flagged."""
    gap = use(SEPTEMBER, "Azure", last=3) + use(SEPTEMBER, "Azure", first=15)
    review = made(tmp_path, use(SEPTEMBER, "AWS"), gap, use(OCTOBER, "AWS"), use(OCTOBER, "Azure"))
    assert "not comparable with September 2026 (Azure has use on 19 of 30 days" in review.verdict
    for key in ("bridge", "movers"):
        assert section(review, key).status == "withheld"
        assert "none on 4 to 14 September" in section(review, key).reason


def test_a_provider_whose_bill_begins_within_the_compared_month_is_left_out(tmp_path: Path) -> None:
    """The bridge and the movers of the whole bill were withheld."""
    review = made(tmp_path, use(SEPTEMBER, "AWS"), use(SEPTEMBER, "Azure", first=15), use(OCTOBER, "AWS", 120),
                  use(OCTOBER, "Azure", 700))  # fmt: skip
    begins = "the bill of Azure begins on 15 September"
    assert review.verdict.endswith(
        "24.0 % more than September 2026 without Azure, whose bill begins on 15 September."
    )
    assert f"cost {31 * 820:,} USD" in review.verdict  # the month itself has all of it
    found = figures(review)
    assert found["bridge_before_money"].value == pytest.approx(30 * 100)
    assert found["bridge_after_money"].value == pytest.approx(31 * 120)
    bridge, movers = section(review, "bridge"), section(review, "movers")
    assert (bridge.status, movers.status) == ("flagged", "flagged")
    for one in (bridge, movers):
        assert f"Azure is left out of both months: {begins}." in one.sentences[0]
    assert [row["provider"] for row in rows_of(review, "movers", "movers")] == ["AWS"]
    assert [row["service"] for row in rows_of(review, "bridge", "bridge_services")] == ["EC2 (AWS)"]


def test_what_begins_late_is_said_of_the_trend_and_ends_its_clause(tmp_path: Path) -> None:
    """ "... whose bill begins on 15 September and 16.7 % under its budget": read as one."""
    budget = tmp_path / "budget.yaml"
    budget.write_text(
        "version: 1\nkind: budget\nname: all\ncurrency: USD\nbudgets:\n  - {name: all, by: total, amount: 7750}\n"
    )
    rows = [
        *use(SEPTEMBER, "AWS"),
        *use(SEPTEMBER, "Azure", first=15),
        *use(OCTOBER, "AWS"),
        *use(OCTOBER, "Azure"),
    ]
    review = review_of(
        write_bill(tmp_path / "bill.csv", rows),
        month=OCTOBER,
        only=("overview",),
        budgets=load_budgets(budget),
    )
    assert "whose bill begins on 15 September, and 20.0 % under its budget of 7,750 USD." in review.verdict
    trend = next(chart for chart in section(review, "overview").charts if chart.key == "spend_months")
    assert "The bill of Azure begins on 15 September." in trend.alt


def test_a_provider_whose_bill_ends_within_the_compared_month_is_left_out(tmp_path: Path) -> None:
    """A neocloud that was given up on 20 September: the bridge and the movers of the whole bill were withheld."""
    review = made(tmp_path, august("AWS"), august("Lambda"), use(SEPTEMBER, "AWS"),
                  use(SEPTEMBER, "Lambda", 700, last=20), use(OCTOBER, "AWS", 120))  # fmt: skip
    assert review.verdict.endswith(
        "24.0 % more than September 2026 without Lambda, whose bill ends on 20 September."
    )
    found = figures(review)
    assert found["bridge_before_money"].value == pytest.approx(30 * 100)
    assert found["bridge_after_money"].value == pytest.approx(31 * 120)
    for key in ("bridge", "movers"):
        one = section(review, key)
        assert one.status == "flagged"
        assert (
            "Lambda is left out of both months: the bill of Lambda ends on 20 September." in one.sentences[0]
        )


def test_a_provider_without_use_for_less_than_four_weeks_may_be_late(tmp_path: Path) -> None:
    lambda_ = august("Lambda") + use(SEPTEMBER, "Lambda", last=20)
    review = made(tmp_path, lambda_, august("AWS"), use(SEPTEMBER, "AWS"), use(OCTOBER, "AWS", last=17))
    said = " ".join(section(review, "quality").sentences)
    assert "Lambda has use on 20 of 30 days (none on 21 to 30 September)" in said


def test_days_that_another_provider_lacks_are_said_beside_one_that_is_left_out(tmp_path: Path) -> None:
    """Leaving out the one must not hide the other's two days."""
    lacks = use(SEPTEMBER, "Google", last=13) + use(SEPTEMBER, "Google", first=16)
    review = made(tmp_path, use(SEPTEMBER, "AWS"), use(SEPTEMBER, "Azure", first=15), lacks,
                  *(use(OCTOBER, name) for name in ("AWS", "Azure", "Google")))  # fmt: skip
    assert "without Azure, whose bill begins on 15 September (with care: " in review.verdict
    assert "Google has use on 28 of 30 days (none on 14 to 15 September)" in review.verdict


def test_a_provider_whose_bill_begins_within_the_month_is_new(tmp_path: Path) -> None:
    """With the month after it in the bill the comparison was withheld, without it not."""
    november = [
        each_day(date(2026, 11, 1), date(2026, 11, 30), 100, ProviderName=name) for name in ("AWS", "Azure")
    ]
    months = (use(SEPTEMBER, "AWS"), use(OCTOBER, "AWS"), use(OCTOBER, "Azure", first=15))
    for later in ([], november):
        review = made(tmp_path, *months, *later)
        assert "than September 2026" in review.verdict and "without Azure" not in review.verdict
        assert figures(review)["bridge_new_money"].value == pytest.approx(17 * 100)


@pytest.mark.parametrize("last", [30, 28])
def test_a_provider_that_ends_with_the_month_is_left_out(last: int, tmp_path: Path) -> None:
    """Or whose file of October is missing; it was "not comparable (Azure has no use in October)"."""
    review = made(
        tmp_path, use(SEPTEMBER, "AWS"), use(SEPTEMBER, "Azure", 700, last=last), use(OCTOBER, "AWS", 120)
    )
    why = "which has no use after 30 September (did it end, or is its file missing?)"
    why = why if last == 30 else "whose bill ends on 28 September"
    with_it = ", 84.5 % less with it" if last == 30 else ""
    assert review.verdict.endswith(f"24.0 % more than September 2026 without Azure, {why}{with_it}.")
    words = f"Azure {why.removeprefix('which ')}" if last == 30 else "the bill of Azure ends on 28 September"
    assert f"checks of the data fails: {words}." in section(review, "quality").sentences[0]
    assert figures(review)["bridge_before_money"].value == pytest.approx(30 * 100)
    assert section(review, "bridge").status == "flagged"


@pytest.mark.parametrize(
    ("azure", "said"),
    [
        (
            use(SEPTEMBER, "Azure"),
            [
                "Azure has no use after 30 September (did it end, or is its file missing?): forecasts take it as "
                "ended; it cost 3,000 USD in September"
            ],
        ),
        (
            use(SEPTEMBER, "Azure") + use(OCTOBER, "Azure", last=20),
            [
                "Azure has use on 20 of 31 days (none on 21 to 31 October): forecasts take these as days without cost"
            ],
        ),
        (use(SEPTEMBER, "Azure") + use(OCTOBER, "Azure", last=28), []),  # a bill may be late by some days
        (use(SEPTEMBER, "Azure", last=20), []),
        (use(SEPTEMBER, "Azure") + use(OCTOBER, "Azure"), []),
    ],
    ids=["no file of October", "eleven days late", "three days late", "given up", "both months"],
)
def test_forecasts_and_budgets_ask_for_a_provider_that_is_missing(
    azure: list[dict[str, str]], said: list[str], tmp_path: Path
) -> None:
    """They took the other's cost for all of it, without a word; a few hours on 1 November are no month."""
    hours = each_day(date(2026, 11, 1), date(2026, 11, 1))
    rows = [*august("AWS"), *august("Azure"), *use(SEPTEMBER, "AWS"), *use(OCTOBER, "AWS"), *hours, *azure]
    path = write_bill(tmp_path / "bill.csv", rows)
    assert list(read_costs([str(path)], None, ["total"]).findings) == [f"warning: {words}" for words in said]
    review = review_of(path, month=OCTOBER, only=("forecast",), forecast=True)
    spoken = [words for words in section(review, "forecast").sentences if "forecasts take" in words]
    assert spoken == [f"{words}." for words in said]  # the expected cost stood there without a word


@pytest.mark.parametrize(
    ("azure", "said"),
    [
        ([*august("Azure"), *use(SEPTEMBER, "Azure"), *use(OCTOBER, "Azure")], ""),
        (
            [*august("Azure"), *use(SEPTEMBER, "Azure")],
            "Azure has no use after 30 September (did it end, or is its file missing?): forecasts take it as ended; it "
            "cost 3,000 USD in September",
        ),
        (each_day(date(2026, 11, 1), date(2026, 11, 1), ProviderName="Azure"), ""),
    ],
    ids=["some days late", "no file of October", "new"],
)
@pytest.mark.parametrize("last", [1, 3])
def test_the_first_days_of_a_month_say_nothing_of_a_provider(
    last: int, azure: list[dict[str, str]], said: str, tmp_path: Path
) -> None:
    """One that is late "ended", one that was new "ended" at 0 USD; of a month without a file nothing was said."""
    november = each_day(date(2026, 11, 1), date(2026, 11, last))
    rows = [*august("AWS"), *use(SEPTEMBER, "AWS"), *use(OCTOBER, "AWS"), *november, *azure]
    path = write_bill(tmp_path / "bill.csv", rows)
    assert list(read_costs([str(path)], None, ["total"]).findings) == [f"warning: {said}"] * bool(said)
    review = review_of(path, month=date(2026, 11, 1), only=("forecast",), forecast=True)
    assert "take it as ended" not in " ".join(section(review, "forecast").sentences)


def test_a_provider_that_begins_with_the_month_is_left_out(tmp_path: Path) -> None:
    """It was "not comparable with September 2026 (Azure has no use in September)"."""
    review = made(tmp_path, use(SEPTEMBER, "AWS"), use(OCTOBER, "AWS", 120), use(OCTOBER, "Azure", 700))
    why = "which has no use before 1 October (is it new, or is its file missing?)"
    assert f"24.0 % more than September 2026 without Azure, {why}, 747.3 % more with it" in review.verdict
    assert figures(review)["bridge_after_money"].value == pytest.approx(31 * 120)


def test_a_provider_that_ended_before_the_compared_month_is_not_spoken_of(tmp_path: Path) -> None:
    review = made(tmp_path, august("AWS"), august("Azure"), use(SEPTEMBER, "AWS"), use(OCTOBER, "AWS", 120))
    assert "24.0 % more than September 2026." in review.verdict
    assert not {"complete_providers_ratio", "before_complete_providers_ratio"} & figures(review).keys()


def test_one_provider_in_the_place_of_another_is_compared_with_it(tmp_path: Path) -> None:
    """Both were left out: "against 0 USD in September 2026 without AWS, whose bill ends on 14 September and Azure"."""
    review = made(tmp_path, august("AWS"), use(SEPTEMBER, "AWS", last=14), use(SEPTEMBER, "Azure", first=15),
                  use(OCTOBER, "Azure", 120))  # fmt: skip
    assert (
        "24.0 % more than September 2026 (with care: September 2026: the bill of AWS ends on 14 September; the "
        in (review.verdict)
    )
    found = figures(review)
    assert (found["bridge_before_money"].value, found["bridge_after_money"].value) == (3000, 3720)


def test_several_that_are_left_out_are_told_apart(tmp_path: Path) -> None:
    review = made(tmp_path, august("AWS"), august("Azure"), use(SEPTEMBER, "AWS"), use(SEPTEMBER, "Azure", last=20),
                  use(SEPTEMBER, "Lambda", first=9), use(OCTOBER, "AWS", 100), use(OCTOBER, "Lambda"))  # fmt: skip
    ends, begins = "Azure, whose bill ends on 20 September", "Lambda, whose bill begins on 9 September"
    assert f"than September 2026 without {ends}, and {begins}" in review.verdict


def test_a_provider_that_comes_back_does_not_begin(tmp_path: Path) -> None:
    """Without use in August its bill "began" on 15 September, though it had been there in July."""
    july = [
        each_day(date(2026, 7, 1), date(2026, 8, 31), 100),
        each_day(date(2026, 7, 1), date(2026, 7, 31), 100, ProviderName="Azure"),
    ]
    review = made(tmp_path, *july, use(SEPTEMBER, "AWS"), use(SEPTEMBER, "Azure", first=15), use(OCTOBER, "AWS"),
                  use(OCTOBER, "Azure"))  # fmt: skip
    named = "Azure has use on 16 of 30 days (none on 1 to 14 September)"
    assert f"not comparable with September 2026 ({named})" in review.verdict
    assert section(review, "bridge").status == "withheld"


@pytest.mark.parametrize(
    "more",
    [
        [],
        use(OCTOBER, "Burst", first=5, last=9),  # a run of a few days, never before
        use(SEPTEMBER, "Tiny", cost=0.1) + use(OCTOBER, "Tiny", cost=0.1, last=4),
        each_day(SEPTEMBER, SEPTEMBER, 50, ProviderName="Support") + each_day(OCTOBER, OCTOBER, 50),
    ],
    ids=["whole", "burst", "immaterial", "monthly"],
)
def test_what_lacks_no_days_passes(more: list[dict[str, str]], tmp_path: Path) -> None:
    both = [use(month, name) for month in (SEPTEMBER, OCTOBER) for name in ("AWS", "Azure")]
    review = made(tmp_path, *both, more)
    assert figures(review)["complete_providers_ratio"].value == 1.0
    assert "than September 2026" in review.verdict


def test_a_gap_inside_the_only_month_is_named(tmp_path: Path) -> None:
    gap = use(OCTOBER, "Azure", last=11) + use(OCTOBER, "Azure", first=14)
    review = made(tmp_path, use(OCTOBER, "AWS"), gap)
    assert rows_of(review, "quality", "provider_days")[0]["missing"] == "12 to 13 October"


def test_one_provider_is_judged_by_the_month_alone(tmp_path: Path) -> None:
    review = made(tmp_path, use(OCTOBER, "AWS", last=9))
    assert "complete_providers_ratio" not in figures(review)


def test_spans_of_days() -> None:
    days = [date(2026, 10, day) for day in (1, 3, 4, 5, 9, 12, 13)]
    assert spans(days) == "1, 3 to 5, 9 October and 2 more days"
    assert spans([]) == "no day"
