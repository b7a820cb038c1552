"""One step of generation for reinforcement learning: all answers of a step, to the last token of the longest.

Answers of different lengths run side by side and finish one after another, so that the end of a step runs a few long
answers on an idle machine; the time is integrated over the falling number of live ones. Generation that runs ahead and
takes new weights in flight has no such end (`planner.performance.inference.ahead`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.normal.arrays import rough_normal_quantile
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.inference.ahead import Ahead, build_ahead
from planner.performance.inference.cases import build_cases, efficiency
from planner.performance.inference.rates import Cases, Efficiency, prefill_s, room, round_s, step_s
from planner.performance.post_training.lengths import log_width, quantiles
from planner.performance.post_training.spec import Lengths, Rollouts
from planner.performance.spec import ModelSpec
from planner.records import record

QUANTILES = 24
DEGREES = (1, 2, 4, 8, 16, 32, 64)


@record(frozen=True)
class Generation:
    """Generation on each cluster; shape `(n,)`.

    Attributes:
        time_s: to generate the answers of a step, however long training takes, s; infinite where none fits.
        tp: accelerators of one engine.
        ahead: of generation that runs ahead and takes new weights in flight: what bounds it beside training.
    """

    time_s: Floats
    tp: Floats
    ahead: Ahead | None = None

    def least_s(self) -> Floats:
        """What no time of training makes it fall below, s, shape `(n,)`."""
        if self.ahead is None:
            return self.time_s
        least: Floats = np.minimum(self.time_s, self.ahead.throughput_s.min(axis=0))
        return np.where(np.isfinite(self.time_s), least, np.inf)

    def beside(self, trained: Floats, index: Ints) -> Floats:
        """Time of clusters `index` beside steps that train for `trained` seconds, s; infinite where none fits."""
        alone = self.time_s[index]
        if self.ahead is None:
            return alone
        return np.where(np.isfinite(alone), np.minimum(alone, self.ahead.take(index).time_s(trained)), np.inf)


def generate(
    model: ModelSpec,
    rollouts: Rollouts,
    samples: int,
    devices: Devices,
    accelerators: Floats,
    c: Constants,
    most_tp: Floats | None = None,
    handover: Callable[[Floats], Floats] | None = None,
) -> Generation:
    """Generate the answers of a step.

    That size of an engine is taken with which generation and the hand-over of the weights take least together.

    Args:
        model: what generates.
        rollouts: lengths, samples per prompt, engine.
        samples: answers of a step.
        devices: one row per cluster.
        accelerators: that generate, in each cluster.
        c: constants.
        most_tp: most accelerators of one engine, None for no limit.
        handover: time that an engine of so many accelerators takes to get new weights, s.
    """
    most = accelerators if most_tp is None else np.minimum(accelerators, most_tp)
    pinned = rollouts.engine.tensor_parallel
    degrees = (pinned,) if pinned else DEGREES
    tried = []
    for degree in degrees:
        tp = np.full(accelerators.shape, float(degree))
        one = _with_degree(model, rollouts, samples, devices, accelerators, tp, c)
        tried.append(replace(one, time_s=np.where(degree <= most, one.time_s, np.inf)))
    best, least = np.zeros(accelerators.shape, dtype=np.int64), np.full(accelerators.shape, np.inf)
    for at, one in enumerate(tried):
        both = one.time_s if handover is None else one.time_s + handover(one.tp)
        better = both < least * (1.0 - 1e-9)
        best, least = np.where(better, at, best), np.where(better, both, least)
    return _chosen(tried, best, least)


def _chosen(tried: list[Generation], best: Ints, least: Floats) -> Generation:
    """Of each cluster the size of an engine that is best; one accelerator where none fits."""
    columns = np.arange(best.shape[0])
    time = np.stack([one.time_s for one in tried])[best, columns]
    tp = np.where(np.isfinite(least), np.stack([one.tp for one in tried])[best, columns], 1.0)
    curves = [one.ahead for one in tried if one.ahead is not None]
    if not curves:
        return Generation(time, tp)
    throughput = np.stack([one.throughput_s for one in curves])[best, :, columns].T
    longest = np.stack([one.longest_s for one in curves])[best, :, columns].T
    return Generation(time, tp, Ahead(throughput, longest, curves[0].steps))


def _with_degree(
    model: ModelSpec,
    rollouts: Rollouts,
    samples: int,
    devices: Devices,
    accelerators: Floats,
    tp: Floats,
    c: Constants,
) -> Generation:
    replicas = np.maximum(np.floor(accelerators / tp), 1.0)
    share = np.ceil(samples / replicas)
    prompt, answers = rollouts.prompts.mean, rollouts.answers
    case = build_cases(
        model, rollouts.engine, devices, prompt=prompt, answer=answers.mean, running=share, tp=tp, c=c
    )
    engine = efficiency(rollouts.engine, devices, c)
    fits = room(case) >= 1.0
    live = np.maximum(np.minimum(np.minimum(share, engine.most_running), np.floor(room(case))), 1.0)
    # each prompt is read once, its keys and values shared by its samples; the first ones before anything is written
    prompts = np.maximum(1.0 / rollouts.samples_per_prompt, 1.0 / share)
    read = live * prompts * prefill_s(case, engine)
    steady: Floats = (share - live) / live * round_s(case, engine, live, prompts)
    time = read + steady + tail_s(case, engine, live, prompt, answers, samples)
    time = np.where(fits, time * c["rollouts.generation_ratio"], np.inf)
    if not (rollouts.in_flight and rollouts.steps_off_policy):
        return Generation(time, tp)
    ahead = build_ahead(
        case, engine, share, samples_per_prompt=rollouts.samples_per_prompt, steps=rollouts.steps_off_policy,
        longest=longest_answer(answers, samples), ratio=c["rollouts.generation_ratio"],
    )  # fmt: skip
    return Generation(np.minimum(time, ahead.alone_s()), tp, ahead)


def tail_s(
    case: Cases, engine: Efficiency, live: Floats, prompt: float, answers: Lengths, samples: int
) -> Floats:
    """Time for `live` answers that start together, until the last has ended."""
    lengths = np.append(quantiles(answers, QUANTILES), longest_answer(answers, samples))
    left = 1.0 - np.arange(QUANTILES + 1) / QUANTILES
    before = np.append(0.0, np.maximum.accumulate(lengths)[:-1])
    number = np.maximum(live * left[:, None], 1.0)
    each = step_s(case, engine, number, prompt + 0.5 * (before + lengths)[:, None])
    result: Floats = (np.maximum(lengths - before, 0.0)[:, None] * each).sum(axis=0)
    return result


def longest_answer(answers: Lengths, samples: int) -> float:
    """The longest of a step's answers: the quantile 1 - 1 / samples, or the limit."""
    width = log_width(answers)
    draw = float(rough_normal_quantile(np.asarray([1.0 - 0.5 / max(samples, 1)]))[0])
    return float(min(answers.mean * np.exp(width * draw - 0.5 * width * width), answers.longest))
