"""Generation that runs ahead of training: the bounds on its pace, and a simulation of the queue that they stand for."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from planner.performance.inference.ahead import FEWEST, TRIED, Ahead
from tests.planner.performance.test_rollouts import estimate

MEAN = 500.0


def draws(width: float, longest: float, size: tuple[int, ...], seed: int) -> np.ndarray:
    """Lengths of answers, tokens: lognormal, cut off at the longest."""
    normal = np.random.default_rng(seed).standard_normal(size)
    return np.clip(MEAN * np.exp(width * normal - 0.5 * width * width), 1.0, longest)


def simulated_s(
    batch: int, lengths: np.ndarray, token_s: tuple[float, float], steps: int, trained: float, places: int
) -> float:
    """Mean time between updates of a replica that never waits for its longest answers, s.

    An answer is asked for when the weights before its step are at most `steps` versions old; each step trains on the
    answers that were asked for it.
    """
    fixed, each = token_s
    running: list[tuple[float, int]] = []
    asked, written, version, now = 0, 0.0, 0, 0.0
    ended = np.zeros(len(lengths) // batch, dtype=np.int64)
    trains_until, updates = math.inf, [0.0]
    while version < len(ended) - steps - 2:
        while asked < (version + steps + 1) * batch and len(running) < places:
            heapq.heappush(running, (written + float(lengths[asked]), asked // batch))
            asked += 1
        if trains_until == math.inf and ended[version] == batch:
            trains_until = now + trained
        token = fixed + each * len(running)
        next_end = now + (running[0][0] - written) * token if running else math.inf
        if trains_until <= next_end:
            written += (trains_until - now) / token
            now, trains_until, version = trains_until, math.inf, version + 1
            updates.append(now)
        else:
            now, (written, step) = next_end, heapq.heappop(running)
            ended[step] += 1
    return float(np.diff(updates)[len(updates) // 3 :].mean())


def predicted_s(
    batch: int, mean: float, longest: float, token_s: tuple[float, float], steps: int, trained: float, places: int
) -> float:  # fmt: skip
    most = min(places, (steps + 1) * batch)
    number = np.maximum(most * np.geomspace(FEWEST, 1.0, TRIED), 1.0)[:, None]
    token = token_s[0] + token_s[1] * number
    ahead = Ahead(batch * mean * token / number, longest * token, steps)
    return max(float(ahead.time_s(np.asarray([trained]))[0]), trained)


@pytest.mark.parametrize(
    ("batch", "width", "limit", "each", "steps", "trained", "places"),
    [
        (64, 0.6, 3000, 1e-5, 1, 1.0, 999),  # bound by how old answers may be
        (64, 0.6, 3000, 1e-5, 1, 8.0, 999),
        (64, 0.6, 3000, 1e-4, 1, 5.0, 999),
        (64, 1.0, 4000, 1e-4, 1, 5.0, 999),
        (64, 0.3, 750, 1e-5, 1, 1.0, 999),
        (64, 0.6, 3000, 1e-5, 2, 5.0, 999),
        (256, 0.6, 3000, 1e-4, 1, 5.0, 128),  # by the places of the engine
        (64, 0.6, 3000, 1e-5, 1, 20.0, 999),  # by the trainer
    ],
)
def test_the_bounds_say_what_a_simulated_queue_takes(
    batch: int, width: float, limit: int, each: float, steps: int, trained: float, places: int
) -> None:
    lengths = draws(width, limit, (60 * batch,), seed=3)
    longest = float(draws(width, limit, (2000, batch), seed=1).max(axis=1).mean())
    measured = simulated_s(batch, lengths, (0.01, each), steps, trained, places)
    predicted = predicted_s(batch, float(lengths.mean()), longest, (0.01, each), steps, trained, places)
    assert predicted == pytest.approx(measured, rel=0.12)
    drained = max(trained, longest * (0.01 + each * min(batch, places) / 3.0))
    assert measured < 1.1 * drained


def test_between_the_numbers_tried_the_time_is_interpolated() -> None:
    number = np.linspace(1.0, 128.0, 20_000)
    token = 0.01 + 1e-4 * number
    dense = np.maximum(64 * MEAN * token / number, (3000.0 * token + 4.0) / 2.0).min()
    assert predicted_s(64, MEAN, 3000.0, (0.01, 1e-4), 1, 4.0, 999) == pytest.approx(dense, rel=0.02)


def test_what_fits_nowhere_takes_for_ever() -> None:
    nothing = np.full((TRIED, 1), np.inf)
    assert Ahead(nothing, nothing, 1).alone_s() == math.inf


def test_weights_in_flight_save_the_wait_for_the_longest_answer() -> None:
    apart = {
        "placement": "disaggregated", "generation_share": 0.25, "steps_off_policy": 1,
        "response_tokens": {"mean": 800, "p95": 2400, "max": 16_000},
    }  # fmt: skip
    waits, flies = estimate(**apart, in_flight_updates=False), estimate(**apart)
    assert flies["step_time_s"] < 0.9 * waits["step_time_s"]
    further = estimate(**(apart | {"steps_off_policy": 4}))
    assert further["step_time_s"] <= flies["step_time_s"] * (1 + 1e-9)
    trained = sum(flies[name] for name in ("compute_s", "memory_bound_s", "other_models_s"))
    assert further["step_time_s"] > trained


@pytest.mark.parametrize("in_flight", [True, False])
def test_an_engine_larger_than_the_pool_that_generates_does_not_fit(in_flight: bool) -> None:
    ahead = {"placement": "disaggregated", "steps_off_policy": 1, "in_flight_updates": in_flight}
    assert not estimate(**ahead, tensor_parallel=8, generation_share=0.25)["fits"]  # 4 of 16 accelerators
    assert estimate(**ahead, tensor_parallel=4, generation_share=0.25)["fits"]
