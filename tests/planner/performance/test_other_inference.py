"""Published rates of inference, most of which nothing was fitted to: they load and stay as near as the page says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.eager_mode import LAUNCHES, PAIRS, fit, load
from benchmarks.fit_servers import FITTED, LIKE, width, write
from benchmarks.other_inference import FILE, LATER, Rate, read, report, score
from benchmarks.rows import read_csv, write_csv
from planner.performance.constants import DIRECTORY, load_constants


@pytest.fixture(scope="module")
def found() -> list[Rate]:
    return score()


@pytest.mark.parametrize(("path", "least", "publishers"), [(FILE, 300, 7), (LATER, 200, 8)])
def test_every_row_states_where_it_was_published_and_what_was_asked(
    path: Path, least: int, publishers: int
) -> None:
    rows = read_csv(path)
    assert len({row["key"] for row in rows}) == len(rows) > least
    for row in rows:
        asked = json.loads(row["inference"])
        assert row["source"] and row["note"] and float(row["output_tokens_per_s"]) > 0, row["key"]
        assert {"engine", "precision", "input_tokens", "output_tokens", "tensor_parallel"} <= set(asked)
        # the release that the source states, else its year
        both = ("engine_version" in asked) + ("engine_year" in asked)
        assert both == 1 or (both == 0 and "release of vLLM not stated" in row["note"]), row["key"]
        assert asked["tensor_parallel"] <= int(row["accelerators"]), row["key"]
    assert len({row["source"].split("@")[0].split(" ")[0] for row in rows}) >= publishers


@pytest.mark.parametrize(
    ("kind", "rows", "at_most", "in_nine_of_ten"),
    [
        ("", 305, 11.5, 52.0),
        ("ROCm, vLLM 0.10, batches", 20, 8.0, 20.0),
        ("Qwen2.5, one sequence, vLLM 0.6.3, bf16", 23, 7.0, 14.0),
        ("silybench, Qwen3-8B, vLLM 0.30", 40, 7.0, 18.0),
    ],
)
def test_figures_stay_as_near_as_the_page_states(
    found: list[Rate], kind: str, rows: int, at_most: float, in_nine_of_ten: float
) -> None:
    part = [one for one in found if one.kind.startswith(kind) and math.isfinite(one.predicted)]
    assert len(part) >= rows
    off = [100.0 * abs(one.predicted / one.measured - 1.0) for one in part]
    assert np.median(off) < at_most
    assert np.quantile(off, 0.9) < in_nine_of_ten


def test_rows_that_nothing_may_be_fitted_on_say_why() -> None:
    unfit = [row for row in read(LATER) if row.unfit]
    assert 20 < len(unfit) < 60
    assert {row.publisher for row in unfit} == {"cssnoeasy", "sequrity-ai"}


def test_the_report_counts_every_row_once_and_in_its_class(found: list[Rate]) -> None:
    lines = report(found)
    assert [int(line[42:47]) for line in lines] == [
        len(found),
        *(sum(one.kind == kind for one in found) for kind in dict.fromkeys(one.kind for one in found)),
    ]


def test_a_row_is_inside_where_the_ratio_is_less_than_the_half_width() -> None:
    assert Rate("k", "c", 10.0, 12.0, 15.0).inside
    assert not Rate("k", "c", 10.0, 12.0, 14.0).inside


def test_an_unknown_accelerator_is_named(tmp_path: Path) -> None:
    head, first = list(read_csv(FILE)[0]), read_csv(FILE)[0]
    write_csv(tmp_path / "rows.csv", [head, [{**first, "accelerator": "abacus"}[name] for name in head]])
    with pytest.raises(ValueError, match="abacus"):
        score(tmp_path / "rows.csv")


def test_widths_hold_four_of_five_rows_and_of_publishers() -> None:
    gaps = np.asarray([0.15] * 90 + [0.6] * 10)
    assert width(gaps, np.asarray(["one"] * 100)) == pytest.approx(0.15)
    assert width(gaps, np.asarray(["one"] * 90 + ["other"] * 10)) == pytest.approx(0.6)
    assert width(gaps, np.asarray([*"abcdefghi"] * 10 + ["other"] * 10)) == pytest.approx(0.15)
    assert width(-gaps / 100.0, np.asarray(["one"] * 100)) == 0.1


def test_engines_with_few_rows_take_the_figures_of_another_and_the_rest_of_the_table_stays(
    tmp_path: Path,
) -> None:
    before, path = read_csv(DIRECTORY.parent / "engines.csv"), tmp_path / "engines.csv"
    write_csv(path, [list(before[0]), *(list(row.values()) for row in before)])
    most = dict.fromkeys(FITTED, 12.0) | dict.fromkeys(LIKE, 3.0)
    write({key: (np.asarray([0.5, 0.25, 0.125, 0.0625]), 0.75, 9) for key in FITTED}, most, path)
    for old, new in zip(before, read_csv(path), strict=True):
        key = (new["engine"], int(new["year"]))
        if LIKE.get(key, key) not in FITTED:
            assert new == old
            continue
        assert [new[name] for name in ("compute_ratio", "bandwidth_ratio", "step_s", "sequence_s", "spread")] == [
            "0.5", "0.25", "0.125", "0.0625", "0.75"
        ]  # fmt: skip
        assert new["rows"] == ("9" if key in FITTED else "0")
        assert new["most_prompt"] == (
            "12" if key in FITTED else "3"
        )  # as long as its own rows, not the other's
        kept = ("most_running", "step_tokens", "mixing", "source")
        assert {name: new[name] for name in kept} == {name: old[name] for name in kept}


def test_the_launches_of_eager_mode_are_the_mean_of_publishers_and_the_interval_holds_them() -> None:
    rows = load()
    each, launches, spread = fit(rows)
    constants = load_constants()
    assert len(each) == 4 and min(each.values()) < 0.5 * max(each.values())
    assert constants[LAUNCHES] == pytest.approx(launches, rel=2e-3)
    assert constants["decode.eager_spread"] == pytest.approx(spread, rel=2e-3)
    gaps = [abs(row.gap(launches)) for row in rows]
    assert np.mean([gap <= np.hypot(0.27, spread) for gap in gaps]) >= 0.8


def test_every_pair_of_eager_mode_states_its_source() -> None:
    assert all(row["source"] and row["note"] for row in read_csv(PAIRS))
