"""The fit of inference engines finds slow chips and slow steps apart, and widths count publishers never seen."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.engine_widths import Effect, Gaps, between, effects, spread, unseen, write
from benchmarks.fit_inference import Question
from benchmarks.inference_rows import Measured, load_cases
from benchmarks.rows import read_csv, write_csv
from planner.performance.constants import DIRECTORY
from planner.performance.inference.rates import Cases

KEY = ("vllm", 2024)


def _cases(prompt: list[float], running: list[float]) -> Cases:
    """An 8B model on an H100, one row for each length of prompts and number of requests."""
    size = len(prompt)
    values = {
        "params": 8e9, "active": 8e9, "routed": 0.0, "layers": 32.0, "hidden": 4096.0, "experts": 0.0,
        "per_token": 0.0, "key_value_bytes": 131072.0, "attends": 1.0, "window": np.inf, "windowed": 0.0,
        "weight_bytes": 2.0, "expert_bytes": 2.0, "tables": 1e9, "table_bytes": 2.0, "answer": 128.0, "tp": 1.0,
        "pp": 1.0, "peak": 989e12, "memory_rate": 3.35e12, "memory": 80e9, "link_rate": 450e9,
    }  # fmt: skip
    columns = {name: np.full(size, value) for name, value in values.items()}
    made = Cases(**columns, prompt=np.asarray(prompt), running=np.asarray(running))
    assert len(fields(made)) == 24
    return made


def _question(engine: str, compute: float, step_s: float) -> Question:
    prompt = [1024.0, 4096.0, 8192.0, 16384.0] * 4
    running = [1.0] * 4 + [4.0] * 4 + [16.0] * 4 + [64.0] * 4
    rows = [
        Measured("k", "dense llm batched", f"g{at}", "p", engine, 2026, "", "", 1.0, np.nan, np.nan)
        for at in range(len(prompt))
    ]
    question = Question(_cases(prompt, running), rows)
    true = question.start.copy()
    true[:3] = np.log([compute, 0.8, step_s])
    rates = np.exp(question.predict(true, np.arange(len(rows))))
    rows = [replace(row, rate=float(rate)) for row, rate in zip(rows, rates, strict=True)]
    return Question(_cases(prompt, running), rows)


@pytest.mark.parametrize(("compute", "step_s"), [(0.06, 0.008), (0.5, 0.03), (0.6, 0.004)])
def test_the_fit_finds_a_slow_chip_and_a_slow_step(compute: float, step_s: float) -> None:
    question = _question("vllm_long_prompts", compute, step_s)
    everything = np.arange(len(question.rows))
    fitted = question.fit(everything)
    assert np.abs(question.predict(fitted, everything) - question.rate).max() < 0.1
    assert np.exp(fitted[0]) == pytest.approx(compute, rel=0.25)
    assert np.exp(fitted[2]) == pytest.approx(step_s, rel=0.4)


def test_a_start_that_leads_nowhere_is_one_of_several() -> None:
    question = _question("vllm_long_prompts", 0.06, 0.008)
    everything = np.arange(len(question.rows))
    question.start[0] = np.log(5.0)  # more than a chip gives: no small change of it changes a rate
    one = question.predict(question.fit(everything, question.start), everything) - question.rate
    several = question.predict(question.fit(everything), everything) - question.rate
    assert np.abs(several).max() < 0.5 * np.abs(one).max()


def test_a_loop_in_python_that_was_never_measured_is_as_slow_as_its_launches() -> None:
    """Transformers writes some 40 tokens/s of a 7B model on an A100 (premAI), whatever the card could read."""
    rates = {}
    for engine in ("vllm", "other"):
        question = _question(engine, 0.45, 2e-3)
        rates[engine] = float(np.exp(question.predict(question.start, np.asarray([0])))[0])
    assert rates["vllm"] > 90 and 30 < rates["other"] < 50


def _gaps(*parts: tuple[str, list[float]]) -> Gaps:
    return Gaps(
        np.asarray([name for name, off in parts for _ in off]),
        np.asarray([one for _, off in parts for one in off]),
    )


def test_a_publisher_counts_once_whatever_its_rows_and_not_with_few() -> None:
    found = effects(KEY, _gaps(("a", [0.1, 0.3] * 50), ("b", [-0.5] * 5), ("c", [2.0] * 4)))
    near: Any = pytest.approx
    assert found == [Effect("a", KEY, 100, near(0.2)), Effect("b", KEY, 5, near(-0.5))]
    made = [Effect(str(at), KEY, 5, off) for at, off in enumerate((0.1, -0.2, 0.3, -0.4, 0.5, 0.0))]
    assert between(made) == pytest.approx(0.4)


def test_a_width_has_the_scatter_and_what_publishers_differ_by() -> None:
    none = _gaps()
    assert spread(_gaps(("a", [0.3, -0.3] * 10)), none, 0.4) == pytest.approx(0.5)
    assert spread(_gaps(("a", [0.0] * 10)), none, 0.0) == 0.1
    # a publisher that the fit never saw, half of all by publisher
    wide = spread(_gaps(("a", [0.3, -0.3] * 10)), _gaps(("b", [0.9] * 5)), 0.4)
    assert wide == pytest.approx(0.9)
    assert spread(_gaps(("a", [0.3, -0.3] * 10)), _gaps(("b", [0.1] * 5)), 0.4) == pytest.approx(0.5)


def test_a_publisher_of_shared_rows_is_not_unseen_on_another_page() -> None:
    left = unseen(
        _gaps(("NVIDIA", [0.1] * 5), ("Azure", [0.2] * 5)), ["NVIDIA/TensorRT-LLM", "argonne-lcf/Bench"]
    )
    assert set(left.publisher.tolist()) == {"Azure"} and left.off.tolist() == [0.2] * 5


def test_only_the_widths_of_the_given_engines_are_written(tmp_path: Path) -> None:
    before, path = read_csv(DIRECTORY.parent / "engines.csv"), tmp_path / "engines.csv"
    write_csv(path, [list(before[0]), *(list(row.values()) for row in before)])
    write({KEY: 0.777}, path)
    for old, new in zip(before, read_csv(path), strict=True):
        own = (new["engine"], int(new["year"])) == KEY
        assert new == ({**old, "spread": "0.777"} if own else old)


def test_bundled_widths_count_publishers() -> None:
    """No engine claims less than the two parts that the page states: the least scatter and 0.24 between publishers."""
    rows = read_csv(DIRECTORY.parent / "engines.csv")
    assert min(float(row["spread"]) for row in rows) > np.hypot(0.1, 0.235)


def test_names_of_models_and_chips_are_read_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    row = {
        "id": "a", "source": "somebody/page@1", "date": "2024-08", "engine": "vLLM", "model": "Llama-2-7B",
        "precision": "fp16 / fp16", "accelerator": "MI300X", "accelerators": "1", "tensor_parallel": "1",
        "pipeline_parallel": "1", "scenario": "offline", "input_tokens": "512", "output_tokens": "512",
        "concurrency": "128", "output_tokens_per_s": "1590", "tokens_per_s_total": "3180", "ttft_s": "", "tpot_s": "",
        "confidence": "medium", "class": "dense llm batched", "group": "g",
    }  # fmt: skip
    rows = [row, {**row, "model": "LLAMA-2-7B", "accelerator": "mi300x"}]
    write_csv(path, [list(row), *(list(one.values()) for one in rows)])
    cases, measured, left = load_cases(path)
    assert not left and measured[0] == measured[1] and measured[0].chip == "amd.before_2025"
    for column in fields(cases):
        first, second = getattr(cases, column.name)
        assert first == second, column.name
