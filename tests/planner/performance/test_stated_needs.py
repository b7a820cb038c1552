"""What trainers state that jobs need: the rows have sources, and the page shows what the planner says beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.other_publishers import Scored, score
from benchmarks.rows import read_csv
from benchmarks.stated_needs import STATED, table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance" / "stated-needs.md"


@pytest.fixture(scope="module")
def found() -> list[Scored]:
    return score(STATED)


def test_every_row_has_a_source_and_says_what_was_assumed() -> None:
    rows = read_csv(STATED)
    assert len({row["key"] for row in rows}) == len(rows) > 60
    assert all(row["source"] and row["note"] and row["start"] for row in rows)


def test_the_page_shows_what_is_predicted(found: list[Scored]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [line for line in table(read_csv(STATED), found) if line not in page.splitlines()]
    assert not missing, (
        "run python -m benchmarks.stated_needs and copy its table into docs/performance/stated-needs.md"
    )


def test_what_ran_is_offered_and_memory_is_near(found: list[Scored]) -> None:
    ran = [one for one in found if one.ran]
    assert sum(one.fits for one in ran) >= 0.93 * len(ran)
    gaps = [abs(one.memory[1] / one.memory[0] - 1.0) for one in found if one.memory]
    assert np.median(gaps) < 0.12
    assert np.mean([gap < 0.25 for gap in gaps]) > 0.9
