"""Published memory limits: what others say fits is not refused, what they say runs out is named so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.memory_limits import LIMITS, Limit, lines, predict_limits
from benchmarks.rows import read_csv
from planner.performance.constants import load_constants
from planner.performance.memory import NONE
from planner.performance.memory_activations import passing
from planner.performance.memory_states import states
from planner.performance.memory_work import build_footprint
from planner.performance.post_training.spec import Tuning
from tests.planner.performance.memory_cases import GPT3, LLAMA_8B, footprint, layout, training

C = load_constants()
BARE = C.replace({"memory.activation_ratio": 1.0, "memory.live_ratio": 1.0})
# TensorFlow 1 keeps copies of all weights and moments while it updates them: no software class of the planner does.
UNLIKE = "github.com/google-research/bert"


@pytest.fixture(scope="module")
def limits() -> list[Limit]:
    return predict_limits()


def test_every_limit_has_its_source_and_what_it_rests_on() -> None:
    rows = read_csv(LIMITS)
    assert Counter(row["outcome"] for row in rows)["out_of_memory"] >= 40
    assert all(row["read_from"] and row["basis"] for row in rows)
    assert len({row["case"] for row in rows}) == len(rows)


def test_jobs_that_run_out_of_memory_are_found_and_those_that_fit_are_not(limits: list[Limit]) -> None:
    own = [limit for limit in limits if not limit.source.startswith(UNLIKE)]
    found = np.mean([limit.risk > C["memory.oom_alarm"] for limit in own if limit.out_of_memory])
    wrong = np.mean([limit.risk > C["memory.oom_alarm"] for limit in own if not limit.out_of_memory])
    assert found >= 0.94 and wrong <= 0.05


def test_the_report_counts_by_source(limits: list[Limit]) -> None:
    text = lines(limits, C["memory.oom_alarm"])
    assert text[0].endswith("all") and len(text) == 1 + len({limit.source for limit in limits})


def test_a_gelu_of_several_operators_keeps_in_eager_code_what_each_one_gives() -> None:
    stepwise, kernel = (_kept_bytes(stepwise, "eager") for stepwise in (True, False))
    # Three more tensors of 2 bytes and of the feed-forward width, in each of two layers.
    assert stepwise - kernel == pytest.approx(2 * 2048 * 3 * 2 * 49152)


@pytest.mark.parametrize("stack", ["compiled", "fused", "tuned"])
def test_compilers_and_hand_written_kernels_make_one_operator_of_a_gelu(stack: str) -> None:
    assert _kept_bytes(True, stack) == _kept_bytes(False, stack)


def _kept_bytes(stepwise: bool, stack: str) -> float:
    """Activations of two layers at batch 1 and no recompute."""
    job = footprint(replace(GPT3, layers=2, stepwise_gelu=stepwise), stack=stack)
    return float(passing(job, layout(), NONE, BARE).activations[0])


def test_quantised_models_keep_their_tables_in_32_bit_in_eager_code() -> None:
    tuning = Tuning(objective="sft", base="nf4")
    tables = 2.0 * 128256 * 4096
    eager, compiled = (
        states(
            build_footprint(LLAMA_8B, training(LLAMA_8B, stack=stack, lora_rank=16, tuning=tuning)),
            layout(),
            C,
        )
        for stack in ("eager", "compiled")
    )
    assert float((eager.weights - compiled.weights)[0]) == pytest.approx(2.0 * tables, rel=0.01)
