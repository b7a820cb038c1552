"""Generation ahead of training: prompts of later steps take the place of answered ones, so that no step has a tail.

A replica writes N answers at once without end. With B of them to a step, O tokens in the mean, M in the longest, t(N)
the time of a step of decoding and k steps ahead, two things bound the time T between two updates:

    throughput    T >= B O t(N) / N
    staleness     (k + 1) T >= M t(N) + trained

An answer is asked for when the weights of its step are handed over and needed k steps later, when training of its step
begins: (k + 1) T less the training (`trained`) of one step. More answers at once raise the throughput and delay each of
them, so that N is where both take as long, up to what the engine holds and to the k + 1 steps that are asked for.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.performance.inference.rates import Cases, Efficiency, room, round_s
from planner.records import record

# Numbers of answers at once that are tried, from a thirty-second of the most to the most.
TRIED = 16
FEWEST = 1.0 / 32.0
_SHARES = np.geomspace(FEWEST, 1.0, TRIED)[:, None]


@record(frozen=True)
class Ahead:
    """Bounds of the time between updates by the number of answers at once; shape `(TRIED, n)` each.

    Attributes:
        throughput_s: time to write the answers of a step, s; falls with their number.
        longest_s: time from the request of the longest answer to its end, s; grows with their number.
        steps: steps by which generation runs ahead.
    """

    throughput_s: Floats
    longest_s: Floats
    steps: int

    def take(self, index: Ints) -> Ahead:
        """Clusters `index`."""
        return Ahead(self.throughput_s[:, index], self.longest_s[:, index], self.steps)

    def time_s(self, trained: Floats) -> Floats:
        """Least time between two updates that train for `trained` seconds, shape `(n,)`; infinite where none fits."""
        return _least(self.throughput_s, (self.longest_s + trained) / (self.steps + 1.0))

    def alone_s(self) -> Floats:
        """The same however long training takes within that time: (k + 1) T - trained is at least k T."""
        return _least(self.throughput_s, self.longest_s / self.steps)


def build_ahead(
    case: Cases, engine: Efficiency, share: Floats, *, samples_per_prompt: int, longest: float, steps: int, ratio: float
) -> Ahead:  # fmt: skip
    """Bounds for replicas.

    Args:
        case: what is asked of each replica, with the mean prompt and answer.
        engine: what it reaches.
        share: answers of a step on each replica.
        samples_per_prompt: answers to each prompt, which is read once.
        longest: tokens of the longest answer of a step.
        steps: by which generation may run ahead, at least 1.
        ratio: measured over predicted time of generation.
    """
    held = np.floor(room(case))
    most = np.maximum(np.minimum(np.minimum(held, engine.most_running), (steps + 1.0) * share), 1.0)
    number = np.maximum(most * _SHARES, 1.0)
    # prompts are read between or in the steps of answers that are under way
    one = round_s(case, engine, number, np.maximum(1.0 / samples_per_prompt, 1.0 / share))
    unfit = np.where(held >= 1.0, ratio, np.inf)
    return Ahead(share / number * one * unfit, longest / case.answer * one * unfit, steps)


def _least(falling: Floats, growing: Floats) -> Floats:
    """Least over the rows of the greater of two, between rows where they cross; shape `(n,)`."""
    crossed = growing >= falling
    after = np.where(crossed.any(axis=0), crossed.argmax(axis=0), len(falling) - 1)
    before, columns = np.maximum(after - 1, 0), np.arange(falling.shape[1])
    (high, low), (rising, top) = (
        (rows[before, columns], rows[after, columns]) for rows in (falling, growing)
    )
    greater = np.maximum(low, top)
    between = (high > rising) & (top >= low) & np.isfinite(greater)
    with np.errstate(invalid="ignore"):
        share = (high - rising) / np.where(between, high - rising + top - low, 1.0)
        result: Floats = np.where(between, high + share * (low - high), greater)
    return result
