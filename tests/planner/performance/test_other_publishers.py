"""Published rows that no constant was fitted to: they load, state their sources, and stay as near as the page says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.other_publishers import FILE, VISION, Scored, report, score
from benchmarks.rows import read_csv, write_csv


@pytest.fixture(scope="module")
def found() -> list[Scored]:
    return score()


def test_every_row_states_where_it_was_published_and_something_measured() -> None:
    rows = read_csv(FILE)
    assert len({row["key"] for row in rows}) == len(rows) > 150
    for row in rows:
        assert row["source"] and row["start"], row["key"]
        assert row["step_s"] or row["memory_gib"] or row["ran_out"] == "true", row["key"]
        assert (row["memory_gib"] == "") == (row["convention"] == ""), row["key"]
    assert len({row["source"].split("@")[0].split(" ")[0] for row in rows}) >= 12


def test_figures_stay_as_near_as_the_page_states(found: list[Scored]) -> None:
    steps = [one for one in found if one.step]
    gaps = [abs(one.step[1] / one.step[0] - 1.0) for one in steps if one.step]
    sizes = [abs(one.memory[1] / one.memory[0] - 1.0) for one in found if one.memory]
    assert np.median(gaps) < 0.2
    assert np.mean([one.inside for one in steps]) > 0.7
    assert np.median(sizes) < 0.11
    ran = [one for one in found if one.ran]
    assert sum(one.fits for one in ran) >= 0.97 * len(ran)
    assert sum(one.fits for one in found if not one.ran) <= 1


def test_vision_models_stay_as_near_as_the_page_states() -> None:
    rows = read_csv(VISION)
    assert len({row["key"] for row in rows}) == len(rows) > 80
    assert all(row["source"] and row["start"] and row["step_s"] for row in rows)
    found = score(VISION)
    gaps = [abs(one.step[1] / one.step[0] - 1.0) for one in found if one.step]
    assert len(gaps) == len(rows)
    assert np.median(gaps) < 0.18
    assert np.mean(gaps) < 0.22
    assert np.mean([one.inside for one in found]) > 0.7
    assert all(one.fits for one in found)


def test_the_report_counts_every_row_once_and_in_its_class(found: list[Scored]) -> None:
    lines = report(found)
    assert [int(line[28:33]) for line in lines] == [
        len(found),
        *(sum(one.kind == kind for one in found) for kind in dict.fromkeys(one.kind for one in found)),
    ]


def test_a_row_is_inside_where_the_ratio_is_less_than_the_half_width() -> None:
    row = Scored("k", "c", True, True, (10.0, 12.0, 15.0), None)
    assert row.inside
    assert not Scored("k", "c", True, True, (10.0, 12.0, 12.0 * math.sqrt(1.2)), None).inside


def test_an_unknown_accelerator_is_named(tmp_path: Path) -> None:
    head, first = list(read_csv(FILE)[0]), read_csv(FILE)[0]
    write_csv(tmp_path / "rows.csv", [head, [{**first, "accelerator": "abacus"}[name] for name in head]])
    with pytest.raises(ValueError, match="abacus"):
        score(tmp_path / "rows.csv")
