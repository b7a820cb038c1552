"""Steps that hold prompts and answers together: what they take, their limits, and how speed follows its causes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.prompt_ratios import MACHINES, MODELS, RATIOS, most_measured, reached
from planner.performance.constants import load_constants
from planner.performance.device import build_devices
from planner.performance.inference.beyond import prompt_doubts
from planner.performance.inference.engines import find_engine
from planner.performance.inference.rates import (
    all_bytes,
    first_token_s,
    mixed_steps,
    prefill_s,
    round_s,
    step_s,
)
from planner.performance.post_training.spec import Engine, Lengths, Requests, Rollouts, Tuning
from planner.performance.spec import TrainingSpec
from tests.planner.performance.test_inference import H100, REQUESTS, case, engine, estimate
from tests.planner.performance.test_performance import A100, machines

MOST = 8192.0
MIXED = engine(step_tokens=MOST)
# The best share of the peak that prompts and answers of a 16-bit model were measured to reach, prompts not cached:
# Qwen3-14B on one A100 in vLLM 0.11, 2,000 tokens in and 100 out (GPUStack); 0.54 of Qwen3-8B on one H100 (silybench).
BEST_MEASURED, MARGIN = 0.56, 1.1
SIZES = st.floats(1, 4096)


def round_of(number: float, model: Any = None, reached: Any = None, prompts: float = 1.0) -> float:
    return float(round_s(model or case(), reached or MIXED, np.asarray([number]), prompts)[0])


def test_engines_mix_by_what_their_documentation_says() -> None:
    assert find_engine("vllm", 2026).step_tokens == find_engine("vllm", 2025).step_tokens == MOST
    for name, year in (("vllm_v0", 2025), ("vllm", 2024), ("sglang", 2026), ("tensorrt_llm", 2024)):
        assert find_engine(name, year).step_tokens == 0.0


def test_an_engine_that_does_one_or_the_other_adds_both_times_up() -> None:
    asked, number = case(prompt=2000, answer=200), np.asarray([64.0])
    apart = 64 * prefill_s(asked, engine()) + 200 * step_s(asked, engine(), number, np.asarray([2100.0]))
    assert round_of(64, asked, engine()) == pytest.approx(apart[0], rel=1e-12)


def test_one_request_alone_shares_no_step() -> None:
    asked = case(prompt=2000, answer=200, running=1)
    assert round_of(1, asked) == pytest.approx(round_of(1, asked, engine()), rel=0.02)


def test_prompts_hide_the_reading_of_weights_and_the_other_way_round() -> None:
    """Long prompts beside long answers: less than both times, more than either."""
    asked = case(prompt=1024, answer=128)
    apart, mixed = round_of(256, asked, engine()), round_of(256, asked)
    read = 256 * prefill_s(asked, engine())[0]
    write = round_of(256, asked, prompts=0.0)
    assert max(read, write) < mixed < 0.97 * apart


@given(st.floats(1, 512), SIZES, st.floats(1, 100_000), st.floats(0, 1))
def test_steps_hold_all_tokens_within_their_limit(
    number: float, answer: float, prompt: float, prompts: float
) -> None:
    steps = mixed_steps(case(prompt=prompt, answer=answer), MIXED, np.asarray([number]), prompts)
    held = steps.number * steps.share * steps.read
    assert held[0] == pytest.approx(number * prompts * prompt, rel=1e-9, abs=1e-9)
    assert steps.read[0] <= MOST and 0.0 <= steps.share[0] <= 1.0 + 1e-9
    assert steps.number[0] * steps.live[0] == pytest.approx(number * answer)
    assert steps.live[0] <= number * (1 + 1e-9)


@given(st.floats(1, 512), st.floats(1, 512), SIZES, st.floats(1, 32_768))
def test_more_requests_at_once_are_answered_faster(
    few: float, more: float, answer: float, prompt: float
) -> None:
    low, high = sorted((few, more))
    asked = case(prompt=prompt, answer=answer, running=high)
    assert low / round_of(low, asked) <= high / round_of(high, asked) * (1 + 1e-9)


@given(st.floats(1, 512), SIZES, SIZES, st.floats(1, 32_768))
def test_longer_answers_take_longer(number: float, one: float, other: float, prompt: float) -> None:
    short, long = sorted((one, other))
    times = [round_of(number, case(prompt=prompt, answer=answer)) for answer in (short, long)]
    assert times[0] <= times[1] * (1 + 1e-9)


@given(
    st.sampled_from(["peak", "memory_rate", "link_rate"]),
    st.floats(1, 4),
    st.floats(1, 512),
    SIZES,
    st.floats(1, 32_768),
)
def test_faster_machines_answer_faster(
    cause: str, faster: float, number: float, answer: float, prompt: float
) -> None:
    asked = case(prompt=prompt, answer=answer, tp=2)
    quick = replace(asked, **{cause: getattr(asked, cause) * faster})
    assert round_of(number, quick) <= round_of(number, asked) * (1 + 1e-9)
    first = [first_token_s(one, MIXED, np.asarray([number]))[0] for one in (quick, asked)]
    assert first[0] <= first[1] * (1 + 1e-9)


@given(st.floats(1, 512), SIZES, st.floats(1, 32_768))
def test_prompts_that_are_not_read_cost_nothing(number: float, answer: float, prompt: float) -> None:
    asked = case(prompt=prompt, answer=answer)
    alone = answer * step_s(asked, MIXED, np.asarray([number]), np.asarray([prompt + 0.5 * answer]))[0]
    assert round_of(number, asked, prompts=0.0) == pytest.approx(alone)
    assert round_of(number, asked) >= alone * (1 - 1e-9)


def test_no_ratio_of_prompt_to_answer_beats_its_chip_or_what_was_measured() -> None:
    """The page's table: 45 jobs, each with its share of the peak and of the memory's rate."""
    found = list(reached())
    assert len(found) == len(MACHINES) * len(MODELS) * len(RATIOS) == 45
    for one in found:
        assert 0.0 < one.peak <= BEST_MEASURED * MARGIN, one
        assert 0.0 < one.bandwidth < 1.0, one
    heavy = [one.peak for one in found if one.ratio == "40:1" and one.model == "llama-3.1-8b"]
    assert min(heavy) > 0.3  # prompts are still bound by arithmetic


def test_the_best_measured_share_is_that_of_the_rows() -> None:
    found = most_measured()
    assert found[0][1] == pytest.approx(BEST_MEASURED, abs=0.01)
    assert all(predicted <= BEST_MEASURED * MARGIN for _, _, predicted in found)


def test_long_prompts_with_short_answers_are_said_to_be_unmeasured_and_have_a_wide_interval() -> None:
    def width(prompt: float, answer: float, **more: Any) -> float:
        asked = REQUESTS | {"input_tokens": {"mean": prompt}, "output_tokens": {"mean": answer}} | more
        row = estimate(inference=asked).row(0)
        return float(np.log(row["step_time_high_s"] / row["step_time_s"]))

    usual = width(1000, 250)
    assert width(16_000, 1000) == pytest.approx(usual)
    assert usual < width(800, 20) < width(4000, 4) == pytest.approx(np.hypot(usual, 0.4))
    assert width(4000, 4, shared_prefix=True) == pytest.approx(usual)
    # vLLM 0.8 to 0.13 was measured with 320 to 1
    assert width(800, 20, engine_version="0.11") == pytest.approx(width(1000, 250, engine_version="0.11"))


def test_the_doubt_names_both_ratios() -> None:
    lengths = Lengths(800, 800, 800), Lengths(20, 20, 20)
    (doubt,) = prompt_doubts(Requests(*lengths, Engine("vllm", year=2026)))
    assert "40 prompt tokens per token of an answer" in doubt and "16 up to which vllm 2026" in doubt
    assert not prompt_doubts(Requests(*lengths, Engine("vllm", year=2026), shared_prefix=True))
    assert not prompt_doubts(Requests(lengths[1], lengths[0], Engine("vllm", year=2026)))


@pytest.mark.parametrize(
    ("engine", "year", "prompt", "told"),
    [
        ("vllm", 2026, 1640, ""),  # 16.4 to 1, where 16 were measured
        ("vllm", 2026, 1660, "17 prompt tokens per token of an answer, more than the 16 up to which"),
        ("vllm", 2024, 440, ""),
        ("vllm", 2024, 500, "5 prompt tokens per token of an answer, more than the 1 up to which"),
        ("gpt_fast", 2024, 500, "5 prompt tokens per token of an answer, more than the 0.025 up to which"),
        ("llama.cpp", 2024, 1e6, ""),  # prompts alone were measured
    ],
)
def test_the_doubt_names_what_was_measured_and_a_larger_ratio(
    engine: str, year: int, prompt: float, told: str
) -> None:
    asked = Requests(Lengths(prompt, prompt, prompt), Lengths(100, 100, 100), Engine(engine, year=year))
    doubts = prompt_doubts(asked)
    assert bool(doubts) == bool(told) and all(told in doubt for doubt in doubts)


def test_rollouts_say_so_in_the_same_words_where_their_pool_generates() -> None:
    lengths, engine = (Lengths(8000, 8000, 8000), Lengths(100, 100, 100)), Engine("vllm", year=2026)
    (doubt,) = prompt_doubts(Rollouts(*lengths, samples_per_prompt=4, engine=engine))
    assert doubt.startswith("20 prompt tokens per token of an answer, more than the 16")
    assert (doubt,) == prompt_doubts(Requests(Lengths(2000, 2000, 2000), lengths[1], engine))
    assert not prompt_doubts(Rollouts(*lengths, samples_per_prompt=8, engine=engine))  # a prompt is read once
    assert not prompt_doubts(Rollouts(*lengths, engine=engine, pool="trainer"))
    assert not prompt_doubts(None)


def test_no_engine_claims_prompts_that_only_another_has_measured() -> None:
    """SGLang takes vLLM's figures, but prompts of its own rows are about as long as their answers."""
    for year in (2025, 2026):
        assert find_engine("sglang", year).most_prompt < 2.0 < find_engine("vllm", year).most_prompt


def test_smaller_cards_read_fewer_tokens_of_prompts_in_a_step() -> None:
    """vLLM's default of a server, whatever else the card can do; the A100 of 80 GB counts as small."""
    training = TrainingSpec(1, 1, "bf16", tuning=Tuning(requests=Requests(None, None, Engine("vllm", 2026))))
    each = {
        name: build_devices(machines(machine), training, "transformer", load_constants()).step_tokens[0]
        for name, machine in {
            "A100": A100,
            "H100": H100,
            "48 GB": {**H100, "accelerator_memory_gib": 48.0},
        }.items()
    }
    assert each == {"A100": 2048.0, "H100": MOST, "48 GB": 2048.0}
    apart = replace(training, tuning=Tuning(requests=Requests(None, None, Engine("sglang", 2026))))
    assert build_devices(machines(H100), apart, "transformer", load_constants()).step_tokens[0] == 0.0


def test_weights_are_read_once_for_prompts_and_answers() -> None:
    """A step of both is bound by the reading of the weights or by arithmetic, not by their sum."""
    asked, number = case(prompt=256, answer=256), np.asarray([8.0])
    context = np.asarray([384.0])
    both = step_s(asked, MIXED, number, context, 64.0)[0]
    weights = all_bytes(asked)[0] / (3.35e12 * 0.8)
    assert step_s(asked, MIXED, number, context)[0] < both < 1.1 * weights + 2e-3
