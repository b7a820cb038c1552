"""Long tags are read once: the questions on the short ones have the answers that they have on the bill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from planner.finops.kpis import query_kpi
from planner.finops.kpis.registry import load_kpi
from planner.finops.read import Bill, long_tags, open_bill
from planner.finops.review import short_tags
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review
from planner.finops.review.short_tags import SHORT, TABLE, keep_short_tags, names_runs, with_checked_tags
from planner.finops.use_cases.library import tag_paths
from tests.planner.finops.small_bill import charge, review_of, rows_of, sections_only, write_bill

OCTOBER, NOVEMBER = date(2026, 10, 1), date(2026, 11, 1)
MONTHS = {"start": OCTOBER, "end": NOVEMBER, "before_start": date(2026, 9, 1), "before_end": OCTOBER}
KEYS = ("team", "a'b c", "cost-center")
SPELLED = (("team", "Team"), ("a'b c",), ("cost-center",))  # charges carry team, Team, or both
RUN = ("run_id",)
# as clouds and people write them: other spellings, quotes, numbers, nothing, objects, and keys that nobody asks for
TEAMS = (
    "ML-Platform",
    "ml_platform",
    "ml platform",
    'say "ml"',
    "",
    "  ",
    None,
    7,
    {"of": ["a", "b"]},
    "x\\y",
)
LONG = {f"key-{number}": "value" * 3 for number in range(12)}


def tags(number: int) -> str:
    own = {"team": TEAMS[number % len(TEAMS)], "a'b c": f"cc {number % 3}", "cost-center": number % 2 or None}
    if number % 7 == 0:
        own["Team"] = own.pop("team") if number % 2 else "other"
    return "" if number % 13 == 0 else json.dumps({**own, **LONG})


def rows(run_on: date | None = None) -> list[dict[str, str]]:
    kinds = ("Usage", "Usage", "Usage", "Purchase", "Credit", "Tax")
    made = [
        charge(date(2026, 9, 1) + timedelta(number % 60), 1.25 + number % 17, Tags=tags(number),
               ChargeCategory=kinds[number % 6], ServiceName=f"service {number % 4}",
               CommitmentDiscountId=f"plan {number % 3}" if number % 5 == 0 else "",
               CommitmentDiscountStatus=("Used", "Unused")[number % 2] if number % 5 == 0 else "",
               SubAccountId=f"account {number % 3}", SubAccountName="", BillingAccountId="all")
        for number in range(400)
    ]  # fmt: skip
    if run_on is not None:
        made.append(charge(run_on, 9, Tags=json.dumps({"run_id": "r-1", **LONG})))
    return made


@pytest.fixture
def bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bill]:
    monkeypatch.setattr(short_tags, "MANY_ROWS", 1)
    with open_bill([write_bill(tmp_path / "bill.csv", rows())]) as opened:
        yield opened


@pytest.mark.parametrize("kpi", SHORT)
@pytest.mark.parametrize("apart", ["yes", "no"])
def test_questions_have_the_same_answers(kpi: str, apart: str, bill: Bill) -> None:
    assert keep_short_tags(bill, MONTHS, SPELLED, RUN)
    given = {f"tag_{number}": tag_paths(SPELLED[(number - 1) % 3]) for number in range(1, 7)}
    values = {**MONTHS, **given, "tags_apart": apart}
    asked = {name: values[name] for name in load_kpi(kpi).parameters}
    here, there = (query_kpi(bill.engine, kpi, asked, over=over) for over in ("", TABLE))
    assert len(here) >= 7
    order = [name for name in here.columns if not pd.api.types.is_float_dtype(here[name])]
    pd.testing.assert_frame_equal(
        *(frame.sort_values(order, ignore_index=True) for frame in (here, there)), rtol=1e-12
    )


def test_short_tags_and_small_bills_are_read_where_they_are(tmp_path: Path, bill: Bill) -> None:
    short = write_bill(tmp_path / "short.csv", [charge(OCTOBER + timedelta(n)) for n in range(9)])
    with open_bill([short]) as other:
        assert not keep_short_tags(other, MONTHS, SPELLED, RUN)
    short_tags.MANY_ROWS = 401
    assert not keep_short_tags(bill, MONTHS, SPELLED, RUN)


def test_months_compared_may_lie_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --compare a month lies between the two: it is in neither, and what is no JSON there is found too."""
    for module in (short_tags, long_tags):
        monkeypatch.setattr(module, "MANY_ROWS", 1)
    apart = MONTHS | {"before_start": date(2026, 7, 1), "before_end": date(2026, 8, 1)}
    made = [*rows(), *(charge(date(2026, month, 9), 70 + month, Tags=tags(1)) for month in (7, 8))]
    with open_bill([write_bill(tmp_path / "bill.csv", made)]) as opened:
        assert keep_short_tags(opened, apart, SPELLED, RUN)
        kept = opened.engine.query(f"SELECT DISTINCT ChargePeriodStart AS month FROM {TABLE} ORDER BY month")
        assert [f"{month:%Y-%m}" for month in kept["month"]] == ["2026-07", "2026-10"]
    for month in (6, 7, 8, 9, 10, 11):
        path = write_bill(tmp_path / f"{month}.csv", [*made, charge(date(2026, month, 9), 3, Tags=BROKEN)])
        with open_bill([parquet(path)], tags_later=True) as opened:
            assert keep_short_tags(opened, apart, SPELLED, RUN)
            assert [one.code for one in with_checked_tags(opened, apart).findings].count("bad_cells") == 1, (
                month
            )


@pytest.mark.parametrize("day", [date(2026, 10, 5), date(2026, 9, 5), date(2026, 7, 5), None])
def test_a_run_of_any_month_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, day: date | None
) -> None:
    monkeypatch.setattr(short_tags, "MANY_ROWS", 1)
    with open_bill([write_bill(tmp_path / "bill.csv", rows(day))]) as opened:
        assert keep_short_tags(opened, MONTHS, SPELLED, RUN)
        assert names_runs(opened, MONTHS, '%"run_id"%') == (day is not None)


def test_a_review_on_short_tags_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_bill(tmp_path / "bill.csv", rows(date(2026, 10, 5)))
    shown = []
    for many in (10**9, 1):
        monkeypatch.setattr(short_tags, "MANY_ROWS", many)
        made = review_of(path, only=("allocation", "actions", "gpu"), tags=KEYS)
        shown.append([(section.key, section.sentences, section.tables) for section in made.sections])
    assert shown[0] == shown[1]


def parquet(csv: Path) -> Path:
    """The same bill as Parquet, in which tags are texts as they are."""
    target = csv.with_suffix(".parquet")
    read = f"READ_CSV('{csv}', types = {{'Tags': 'VARCHAR'}}, nullstr = '')"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM {read}) TO '{target}' (FORMAT parquet)")
    return target


ALL = ("allocation", "actions", "gpu", "units", "quality")


def shown(path: Path, *, tags_later: bool, sections: tuple[str, ...] = ALL) -> Review:
    with (
        sections_only(*sections),
        open_bill([path], tags_later=tags_later) as bill,
    ):
        return review_bill(bill, month=date(2026, 10, 1), tags=KEYS, forecast=False)


BROKEN = "{'team': ml}" + "." * 200


ALONE = {  # one is enough to look at all, so each must be found by itself
    "tax": charge(date(2026, 10, 9), 3, Tags=BROKEN, ChargeCategory="Tax"),
    "credit": charge(date(2026, 9, 9), 3, Tags=BROKEN, ChargeCategory="Credit"),
    "month before": charge(date(2026, 7, 9), 3, Tags=BROKEN),
    "month after": charge(date(2026, 11, 1), 3, Tags=BROKEN),
}


@pytest.mark.parametrize(
    ("bad", "sections"),
    [
        ([], ALL),
        ([*(charge(date(2026, 10, 9), 3, Tags=text) for text in (BROKEN, "no json")), *ALONE.values()], ALL),
        *(([one], ("quality",)) for one in ALONE.values()),
    ],
    ids=["sound", "broken", *ALONE],
)
def test_tags_checked_on_the_way_are_those_checked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: list[dict[str, str]], sections: tuple[str, ...]
) -> None:
    """A review reads the tags of a large bill once: what is not JSON has no value and is a finding, as of opening."""
    for module in (short_tags, long_tags):
        monkeypatch.setattr(module, "MANY_ROWS", 1)
    path = parquet(write_bill(tmp_path / "bill.csv", [*rows(date(2026, 10, 5)), *bad]))
    with open_bill([path], tags_later=True) as bill:
        assert bill.unchecked == (str(path),)
        assert len(bill.engine.query("SELECT JSON_EXTRACT_STRING(MAX(Tags), '$.x') AS x FROM focus")) == 1
    later, before = (shown(path, tags_later=way, sections=sections) for way in (True, False))
    for one, other in zip(later.sections, before.sections, strict=True):
        assert (one.key, one.sentences, one.figures) == (other.key, other.sentences, other.figures)
    found = [[row for row in rows_of(made, "quality", "findings") if row["rows"]] for made in (later, before)]
    assert found[0] == found[1] and [row["rows"] for row in found[0]] == ([len(bad)] if bad else [])
