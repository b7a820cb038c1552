"""What unpacking of MXFP4 and wide heads cost in generation."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.other_inference import FILE, read
from benchmarks.unpacking import BEFORE, NOW, factor, rows_of
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.inputs.load import parse_workload
from planner.performance.constants import load_constants
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_inference import H100, REQUESTS, workload

B200 = {**H100, "memory_gb_per_s": 8000.0, "generation": "blackwell"}


def rate(machine: dict[str, Any], slower: dict[str, float] | None = None, **asked: Any) -> float:
    """Requests per second of gpt-oss-20b."""
    text = workload(model={"preset": "gpt-oss-20b"}, inference=REQUESTS | asked)
    job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
    constants = load_constants().replace(slower or {})
    hardware = Table({name: [value] for name, value in machine.items()})
    found = estimate_shapes(job.model, job.training, hardware, (1,), constants=constants)
    return float(found.row(0)["samples_per_s"])


@pytest.mark.parametrize("version", ["0.11.0", "0.14.0"])
def test_weights_in_mxfp4_are_unpacked_where_chips_have_no_arithmetic_for_them(version: str) -> None:
    asked = {"precision": "mxfp4", "engine_version": version}
    none, twice = {NOW: 1.0, BEFORE: 1.0}, {NOW: 2.0, BEFORE: 2.0}
    assert rate(H100, none, **asked) > 1.2 * rate(H100, twice, **asked)
    assert rate(B200, none, **asked) == rate(B200, twice, **asked)
    assert rate(H100, none, **asked | {"precision": "bf16"}) == rate(
        H100, twice, **asked | {"precision": "bf16"}
    )


def test_releases_before_2026_unpack_more_slowly() -> None:
    assert load_constants()[BEFORE] > load_constants()[NOW] > 1.0


def test_one_publisher_moves_the_factor_less_than_its_rows_say() -> None:
    rows = [row for row in rows_of(read(FILE))[BEFORE] if row.publisher == "NVIDIA"][:3]
    found = factor(BEFORE, rows)
    off = [np.log(row.predict(load_constants().replace({BEFORE: found})) / row.measured) for row in rows]
    assert found > 1.0 and np.mean(off) > 0.0
    assert factor(BEFORE, []) == pytest.approx(1.0, abs=0.02)


def test_wide_heads_read_long_prompts_more_slowly() -> None:
    text = workload(model={"preset": "llama-3.1-8b"}, inference=REQUESTS | {"input_tokens": {"mean": 30_000}})
    job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
    # twice as wide, with as many keys and values
    assert job.model.kv_heads and job.model.hidden and job.model.heads
    wide = replace(
        job.model, kv_heads=job.model.kv_heads // 2, head_dim=2 * job.model.hidden // job.model.heads
    )
    hardware = Table({name: [value] for name, value in H100.items()})
    one, two = (
        float(estimate_shapes(model, job.training, hardware, (1,)).row(0)["samples_per_s"])
        for model in (job.model, wide)
    )
    assert 1.2 < one / two < 2.0
