"""Published rates of inference that no constant was fitted to: they load and stay as near as the page says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.other_inference import FILE, Rate, report, score
from benchmarks.rows import read_csv, write_csv


@pytest.fixture(scope="module")
def found() -> list[Rate]:
    return score()


def test_every_row_states_where_it_was_published_and_what_was_asked() -> None:
    rows = read_csv(FILE)
    assert len({row["key"] for row in rows}) == len(rows) > 300
    for row in rows:
        asked = json.loads(row["inference"])
        assert row["source"] and row["note"] and float(row["output_tokens_per_s"]) > 0, row["key"]
        assert {"engine", "precision", "input_tokens", "output_tokens", "tensor_parallel"} <= set(asked)
        # the release that the source states, else its year
        assert ("engine_version" in asked) != ("engine_year" in asked), row["key"]
        assert asked["tensor_parallel"] <= int(row["accelerators"]), row["key"]
    assert len({row["source"].split("@")[0].split(" ")[0] for row in rows}) >= 7


@pytest.mark.parametrize(
    ("kind", "rows", "at_most"),
    [
        ("", 305, 22.0),
        ("ROCm, vLLM 0.10, batches", 20, 15.0),
        ("Qwen2.5, one sequence, vLLM 0.6.3, bf16", 23, 6.0),
        ("silybench, Qwen3-8B, vLLM 0.30", 40, 21.0),
    ],
)
def test_figures_stay_as_near_as_the_page_states(
    found: list[Rate], kind: str, rows: int, at_most: float
) -> None:
    part = [one for one in found if one.kind.startswith(kind) and math.isfinite(one.predicted)]
    assert len(part) >= rows
    assert 100.0 * np.median([abs(one.predicted / one.measured - 1.0) for one in part]) < at_most


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
