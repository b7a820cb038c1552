"""80 % intervals from residuals of measured rows that the fit had not seen: wider where less was measured.

The log width is the root of the sum of squares of what covers 80 % of the rows of the software class, what the
accelerator family adds (many rows and publishers: little), what mixtures of experts add, how many doublings a job is
beyond what was measured with its software, and what the user left open.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.work import Work

# Beyond this width a prediction is called uncertain, in words.
UNCERTAIN = 0.35
# What a job is compared by with the measured ones, and how a figure outside is told.
AXES = {
    "sequence": "sequence length",
    "size": "model size",
    "work": "work per accelerator and step",
}


def log_spread(
    kind: str,
    stack: str,
    work: Work,
    thin: Floats,
    accelerators: Floats,
    c: Constants,
    open_choices: tuple[str, ...] = (),
) -> Floats:
    """Half-width of the 80 % interval in log step time, shape of `thin` and `accelerators`.

    Args:
        kind: model family.
        stack: software stack class.
        work: the job; one row, or one per row of `thin`.
        thin: extra spread of the accelerator family (0 where many rows were measured).
        accelerators: devices of the cluster.
        c: constants; `interval.<kind>.<stack>` (or `interval.<kind>`) is the width that, with the rest, covers 80 % of
            the measured rows when their workload group is left out of the fit.
        open_choices: what the user left open; each adds `interval.<kind>.open.<choice>` (or `interval.open.<choice>`).
    """
    base = c.get(f"interval.{kind}.{stack}", c[f"interval.{kind}"])
    squares = base**2 + thin * thin + work.inferred * c["vision.inferred_spread"] ** 2
    squares = squares + np.where(work.routed > 0, c.get(f"interval.{kind}.experts", 0.0) ** 2, 0.0)
    beyond = sum(distances(kind, stack, work, accelerators, c).values(), np.zeros(accelerators.shape))
    squares = squares + (c["interval.per_doubling"] * beyond) ** 2
    squares = squares + work.unsure**2
    tuning = np.where(
        work.reinforced > 0, c.get("interval.rollouts", 0.0), c.get(f"interval.tuning.{stack}", 0.0)
    )
    squares = squares + work.tuned * tuning**2
    squares = squares + sum(_left_open(kind, choice, c) ** 2 for choice in open_choices)
    result: Floats = np.sqrt(squares)
    return result


def _left_open(kind: str, choice: str, c: Constants) -> float:
    """How far the default of a choice moves the measured rows of a model family, as log width."""
    return c.get(f"interval.{kind}.open.{choice}", c.get(f"interval.open.{choice}", 0.0))


def distances(kind: str, stack: str, work: Work, accelerators: Floats, c: Constants) -> dict[str, Floats]:
    """Doublings by which jobs are outside of what was measured with their software, by axis.

    Of fine-tuning, what was measured of pre-training with the same software counts too; what lies between the two
    ranges is outside of both.
    """
    out: dict[str, Floats] = {}
    for axis, value in axes(work, accelerators).items():
        doublings, tuned = (
            _outside(f"measured.{what}.{stack}.{axis}", value, c) for what in (kind, "tuning")
        )
        doublings = np.where(work.tuned > 0, np.fmin(doublings, tuned), doublings)  # to the nearer range
        out[axis] = np.broadcast_to(np.fmax(doublings, 0.0), accelerators.shape)
    return out


def _outside(measured: str, value: Floats, c: Constants) -> Floats:
    """Doublings to a range that was measured, negative inside of it; NaN where nothing was measured."""
    low, high = (c.get(f"{measured}.{end}", np.nan) for end in ("low", "high"))
    return np.fmax(np.log2(low / value), np.log2(value / high))


def axes(work: Work, accelerators: Floats) -> dict[str, Floats]:
    """What jobs are compared by: tokens, parameters that a token uses, tokens (samples) per accelerator and step."""
    active = np.where(work.routed > 0, work.layers * work.layer_active_params, work.params)
    return {
        "sequence": np.maximum(work.seq, 1.0),
        "size": np.maximum(active, 1.0),
        "work": np.maximum(work.global_batch * work.seq, 1.0) / accelerators,
    }


def doubts(
    kind: str,
    stack: str,
    work: Work,
    thin: float,
    accelerators: float,
    c: Constants,
    open_choices: tuple[str, ...],
    generation: float = 0.0,
) -> tuple[str, ...]:
    """Why the interval of one job is wide, in words; empty where the prediction is as good as most.

    Args:
        kind: model family.
        stack: software stack class.
        work: the job.
        thin: extra spread of the accelerator family.
        accelerators: devices of the cluster.
        c: constants, as in `log_spread`.
        open_choices: what the user left open.
        generation: extra spread of an engine that generates in each step.
    """
    count = np.asarray([accelerators])
    width = log_spread(kind, stack, work, np.hypot(np.asarray([thin]), generation), count, c, open_choices)
    if not width[0] > UNCERTAIN:
        return ()
    words = []
    if thin > 0.2:
        words.append("few runs of this kind of model were measured on this accelerator family")
    if work.inferred[0] > 0:
        words.append("the network's operators are inferred from its FLOPs")
    if work.unsure[0] > 0:
        words.append(f"the FLOPs given are right within a factor of {np.exp(work.unsure[0]):.2g}")
    if work.routed[0] > 0 and c.get(f"interval.{kind}.experts", 0.0) > 0:
        words.append("mixtures of experts vary with the software release")
    if work.reinforced[0] > 0:
        words.append("steps with generation vary with lengths, engines and loops")
    for axis, doublings in distances(kind, stack, work, count, c).items():
        if doublings[0] >= 1.0:
            words.append(
                f"{AXES[axis]} is {2.0 ** doublings[0]:.0f} x outside of what was measured with this software"
            )
    words += [f"training.{choice} is left open" for choice in open_choices]
    return tuple(words) or ("runs with this software vary widely",)
