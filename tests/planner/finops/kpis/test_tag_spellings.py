"""Values of a tag that differ in spelling only are one owner, named with how they were written."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review
from tests.planner.finops.small_bill import charge, each_day, rows_of, section, sections_only, write_bill

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
SPELLINGS = {"ML-Platform": 50, "ml_platform": 30, "ML Platform": 15, "mlplatform": 4, "MLPLATFORM": 1}


def bill(path: Path, costs: dict[str, float]) -> Path:
    rows = [
        charge(date(2026, 10, day + 1), cost, Tags=f'{{"team":"{team}","env":"prod"}}')
        for day, (team, cost) in enumerate(costs.items())
    ]
    rows += each_day(SEPTEMBER, SEPTEMBER, 20, Tags='{"team":"mL--platform","env":"Prod"}')
    return write_bill(path / "bill.csv", rows)


def review(path: Path, **options: bool) -> Review:
    with sections_only("allocation"), open_bill([path]) as opened:
        return review_bill(opened, month=OCTOBER, forecast=False, exact_tags=options.get("exact", False))


def owners(made: Review) -> dict[str, float]:
    return {row["owner"]: row["cost"] for row in rows_of(made, "allocation", "allocation")}


def test_spellings_are_one_owner_under_the_dearest(tmp_path: Path) -> None:
    made = review(bill(tmp_path, SPELLINGS | {"search": 7}))
    assert owners(made) == {"ML-Platform": pytest.approx(100), "search": pytest.approx(7)}
    said = section(made, "allocation").sentences[0]
    named = "ML-Platform is also spelled ML Platform, MLPLATFORM, mL--platform, ml_platform, mlplatform"
    assert named in said and "--exact-tags keeps them apart" in said
    assert "prod is also spelled Prod" in said


def test_exact_tags_keep_them_apart(tmp_path: Path) -> None:
    made = review(bill(tmp_path, SPELLINGS), exact=True)
    found = owners(made)
    assert {name: found[name] for name in SPELLINGS} == pytest.approx(SPELLINGS)
    assert "spelled" not in section(made, "allocation").sentences[0]


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (("team-1-2", "team-12"), 2),
        (("Team 1-2", "team_1_2"), 1),
        (("-", "_"), 2),
        (("ÄRZTE", "ärzte"), 1),
        (("a.b", "ab"), 2),
    ],
)
def test_what_is_one_value(values: tuple[str, ...], count: int, tmp_path: Path) -> None:
    made = review(bill(tmp_path, dict.fromkeys(values, 10.0)))
    assert len([name for name, cost in owners(made).items() if cost]) == count


def test_the_sums_are_those_of_the_bill_whatever_the_spelling(tmp_path: Path) -> None:
    path = bill(tmp_path, SPELLINGS | {"search": 7, "Search": 9, "": 3})
    merged, apart = review(path), review(path, exact=True)
    assert sum(owners(merged).values()) == pytest.approx(sum(owners(apart).values())) == pytest.approx(119)
