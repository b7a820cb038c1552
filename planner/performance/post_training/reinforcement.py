"""A step of reinforcement learning: generation, and the weights' way to the engine, beside the update.

On policy and colocated the parts add up. Where generation has its own accelerators and may run ahead, the longer of
generation and training sets the pace. A share of the accelerators that trains takes 1 / share of the time that all of
them take: the layout of the trainer scales with its data-parallel degree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.inference.chips import stored_bytes
from planner.performance.inference.rollouts import generate
from planner.performance.layouts import Layouts
from planner.performance.links import Links, build_links
from planner.performance.post_training.spec import Rollouts
from planner.performance.spec import ModelSpec
from planner.performance.step import Step

Floats = npt.NDArray[np.float64]
SHARES = tuple(k / 16.0 for k in range(1, 16))


def with_rollouts(
    model: ModelSpec,
    rollouts: Rollouts,
    samples: int,
    devices: Devices,
    layout: Layouts,
    step: Step,
    c: Constants,
) -> Step:
    """Add generation and refit to training steps.

    Args:
        model: what learns and generates.
        rollouts: what each step generates.
        samples: answers of a step.
        devices: one row per layout.
        layout: the layouts.
        step: the training part.
        c: constants.
    """
    # loops of reinforcement learning move samples, pad and wait more than plain training
    parts = {name: part * c["rollouts.training_ratio"] for name, part in step.parts.items()}
    step = Step(step.total * c["rollouts.training_ratio"], parts)
    if rollouts.pool == "trainer":
        waits = np.maximum(rollouts.paced_s - step.total, 0.0)
        return Step(step.total + waits, step.parts | {"generation_s": waits})
    first, inverse = _clusters(layout)
    few = devices.take(first)
    nodes, count = layout.nodes[first], few.count
    whole = nodes * count

    def handover(tp: Floats) -> Floats:
        return refit_s(model, rollouts, few, build_links(few, c), tp, nodes, c)

    def made_by(accelerators: Floats, slower: Floats) -> tuple[Floats, Floats, Floats]:
        """Generation, refit and how much slower training is, of every layout."""
        made = generate(model, rollouts, samples, few, accelerators, c, handover=handover)
        return made.beside(step.total * slower, inverse), handover(made.tp)[inverse], slower

    if rollouts.colocated:
        return _sum(step, *made_by(whole, np.ones(layout.nodes.shape)))
    best: Step | None = None
    for share in (rollouts.generation_share,) if rollouts.generation_share else SHARES:
        own = np.clip(np.round(whole * share), 1.0, np.maximum(whole - 1.0, 1.0))
        slower = (whole / np.maximum(whole - own, 1.0))[inverse]
        step_with_rollouts = _sum(step, *made_by(own, slower), ahead=rollouts.steps_off_policy > 0)
        best = step_with_rollouts if best is None else _better(best, step_with_rollouts)
    assert best is not None
    return best


def _clusters(layout: Layouts) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A row of each distinct (hardware, nodes), and each row's position among them."""
    key = layout.hardware * 1_000_003 + layout.nodes.astype(np.int64)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse.ravel()


def _sum(step: Step, generation: Floats, refit: Floats, slower: Floats, *, ahead: bool = False) -> Step:
    parts = {name: part * slower for name, part in step.parts.items()}
    trained = sum(parts.values(), np.zeros(slower.shape))
    waits = np.maximum(generation - trained, 0.0) if ahead else generation
    parts |= {"generation_s": waits, "refit_s": refit}
    return Step(trained + waits + refit, parts)


def _better(first: Step, second: Step) -> Step:
    """Row by row the faster of two."""
    wins = second.total < first.total
    parts = {name: np.where(wins, second.parts[name], part) for name, part in first.parts.items()}
    return Step(np.where(wins, second.total, first.total), parts)


def refit_s(
    model: ModelSpec,
    rollouts: Rollouts,
    devices: Devices,
    links: Links,
    tp: Floats,
    nodes: Floats,
    c: Constants,
) -> Floats:
    """Time to hand the new weights to the engines: each accelerator takes its part once, over the slowest link, s."""
    own = stored_bytes(model, rollouts.engine) / tp
    across = links.inter_node / devices.count
    rate = np.where(nodes > 1, np.fmin(across, links.intra), links.intra)
    result: Floats = own / (rate * c["rollouts.refit_ratio"]) + c["rollouts.refit_s"]
    return result
