"""Phases, evaluations, start and recurrence of a run: steps of each phase, and the rules on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault, FaultError
from planner.inputs.image_work import image_growth
from planner.inputs.models import has_no, main_network, merge_model
from planner.inputs.post_training import load_objectives
from planner.inputs.resolved import PHASES, Assumed, Origin, ResolvedPhase
from planner.normal import Z80

if TYPE_CHECKING:
    from planner.inputs.resolved import ResolvedModel
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Training

# Shares add up to 1 within this.
_ROUNDING = 0.005


def resolve_phases(
    training: Training, model: ResolvedModel, length: int, samples: int, noted: list[Assumed]
) -> tuple[tuple[ResolvedPhase, ...], int, int, int]:
    """Phases by their share of the steps, with the samples and steps of the whole run, and what it reads.

    A share is one of tokens where the model has any, else of samples; `samples` count sequences of `length` tokens.

    Args:
        training: a valid section.
        model: the network that it describes.
        length: tokens per sequence outside of phases, 1 for models without tokens.
        samples: of the run, were all sequences of that length.
        noted: takes the schedule.

    Returns:
        The phases (none where the run has one), samples, steps, and the sequences of `length` tokens that it reads:
        an amount of tokens is as large however long the sequences of its phases are.
    """
    if not training.phases:
        return (), samples, training.steps or math.ceil(samples / training.global_batch), samples
    text = model.family == "transformer"
    whole = sum(phase.share for phase in training.phases)
    steps, resolved = [], []
    for phase in training.phases:
        batch = phase.global_batch or training.global_batch
        phase_length = phase.sequence_length or length
        grown = _grown(model, phase.image_size)
        # an amount in tokens is shared as tokens; one in samples or epochs as samples
        ratio = length / phase_length if text and training.tokens is not None else 1.0
        steps.append(max(1, math.ceil(phase.share / whole * samples * ratio / batch)))
        resolved.append((batch, phase_length, grown))
    total = sum(steps)
    phases = tuple(ResolvedPhase(n / total, *item) for n, item in zip(steps, resolved, strict=True))
    each = [
        (n, batch, *([tokens] if text else [])) for n, (batch, tokens, _) in zip(steps, resolved, strict=True)
    ]
    value = ", ".join(" x ".join(map(str, one)) for one in each)
    noted.append(Assumed(PHASES, value, f"steps x samples{' x tokens' if text else ''}", "workload", ""))
    trained = sum(n * batch for n, (batch, _, _) in zip(steps, resolved, strict=True))
    return phases, trained, total, trained if training.tokens is None else samples


def _grown(model: ResolvedModel, image_size: int | None) -> float:
    """Factor of the FLOPs of a sample at the image size of a phase."""
    if not image_size or not model.image_size:
        return 1.0
    values = {
        key: getattr(model, key) for key in ("image_size", "layers", "hidden", "forward_flops_per_sample")
    }
    return image_growth(model.name, values, image_size)[0]


def evaluated_share(training: Training) -> float:
    """Samples evaluated for each one trained on."""
    evaluation = training.evaluation
    return (
        0.0 if evaluation is None else evaluation.samples / (evaluation.every_steps * training.global_batch)
    )


def mean_share(workload: Workload, noted: list[Assumed]) -> float:
    """Share of its training that a run does on average, 1 where none stops early."""
    share = None if workload.fleet is None else workload.fleet.mean_share
    if share is None:
        return _stopped_share(workload.training, noted)
    noted.append(
        Assumed("fleet.mean_share", f"{share:g}", "", "workload", "of each run's training, on average")
    )
    return float(share)


def _stopped_share(training: Training | None, noted: list[Assumed]) -> float:
    stop = None if training is None else training.early_stop
    if stop is None:
        return 1.0
    text = "of the training, on average: it ends where a metric says so"
    noted.append(Assumed("training.early_stop.mean_share", f"{stop.mean_share:g}", "", "workload", text))
    origin: Origin = "default" if stop.p90_share is None else "workload"
    text = "at which nine of ten such runs have stopped"
    noted.append(Assumed("training.early_stop.p90_share", f"{stop.p90_share or 1.0:g}", "", origin, text))
    return float(stop.mean_share)


def stop_log_sd(training: Training) -> float:
    """Standard deviation of the logarithm of the work done, of a run that stops early; 0 of one that does not."""
    stop = training.early_stop
    # nine of ten values of a normal distribution lie below its mean and Z80 standard deviations
    return 0.0 if stop is None else math.log((stop.p90_share or 1.0) / stop.mean_share) / Z80


def stop_faults(w: Workload) -> Iterator[Fault]:
    """What an early stop must be, and what it cannot be joined with."""
    training = w.training
    if training is None or training.early_stop is None:
        return
    path, stop = ("training", "early_stop"), training.early_stop
    if w.kind == "fleet":
        yield Fault(path, "is of a single run: of a fleet's runs give fleet.mean_share", at_key=True)
    if training.phases is not None:
        text = (
            "cannot be joined with phases, whose shares are of the whole run: give the phases up to the stop"
        )
        yield Fault(path, text, at_key=True)
    if stop.p90_share is not None and stop.p90_share < stop.mean_share:
        text = f"is below mean_share {stop.mean_share:g}: nine of ten runs stop no later than at this share"
        yield Fault((*path, "p90_share"), text)


def with_initial(workload: Workload, data_bytes: int | None) -> int | None:
    """Bytes that are copied before the run: the data, and the checkpoint that it starts from.

    Raises:
        FaultError: the size of the data is not known, so that of both is not either.
    """
    initial = workload.checkpoint.initial
    if initial is None:
        return data_bytes
    if data_bytes is None:
        text = "is copied with the data, whose size is not known: give data.size or data.sample_size"
        raise FaultError(Fault(("checkpoint", "initial"), text))
    return data_bytes + initial


def start_faults(w: Workload) -> Iterator[Fault]:
    """What a run that starts from a checkpoint, or comes again, needs."""
    if w.checkpoint.initial is not None and w.data.access == "stream":
        text = "is copied before the run, with the data: write 'access: stage' under data"
        yield Fault(("checkpoint", "initial"), text, at_key=True)
    if w.recurrence is None:
        return
    deadline = w.constraints.deadline
    if not isinstance(deadline, timedelta) or deadline > w.recurrence.every:
        text = "needs constraints.deadline as a duration of at most 'every': a run ends before the next one starts"
        yield Fault(("recurrence",), text, at_key=True)


def phase_faults(w: Workload) -> Iterator[Fault]:
    """What a schedule needs, and what it cannot be joined with."""
    training = w.training
    if training is None or training.phases is None:
        return
    path = ("training", "phases")
    if not training.phases:
        yield Fault(path, "is an empty list: give each phase, or remove it")
        return
    total = sum(phase.share for phase in training.phases)
    if abs(total - 1.0) > _ROUNDING:
        yield Fault(
            path, f"shares add up to {total:g}: they are shares of the whole amount of work, in all 1"
        )
    if training.steps is not None:
        yield Fault(
            path, "share an amount of work: give tokens, samples or epochs instead of steps", at_key=True
        )
    if w.kind == "fleet":
        yield Fault(
            path, "is modelled for one run: give the runs of each phase as a separate fleet", at_key=True
        )
    if load_objectives()[training.objective].rollouts or training.lengths is not None:
        other = "lengths" if training.lengths is not None else f"objective {training.objective}"
        yield Fault(
            path, f"cannot be joined with {other}: plan each phase as a separate workload", at_key=True
        )
    if w.constraints.min_throughput is not None:
        text = "the speed differs by phase: give a deadline instead"
        yield Fault(("constraints", "min_throughput"), text, at_key=True)
    if w.measured is not None:
        text = "a measured speed is of one batch and length: remove it, or plan that phase as a separate workload"
        yield Fault(("measured",), text, at_key=True)
    values = {} if w.model is None else merge_model(main_network(w.model))[0]
    sequences = values.get("family") == "transformer"
    for index, phase in enumerate(training.phases):
        if phase.sequence_length is not None and w.model and values and not sequences:
            text = f"{has_no('sequences', main_network(w.model))}: remove it"
            yield Fault((*path, index, "sequence_length"), text, at_key=True)
        if phase.image_size is not None and values and not values.get("image_size"):
            fault = "the model states no image size that it would change: give model.image_size, or remove it"
            yield Fault((*path, index, "image_size"), fault, at_key=True)


RULES = (
    (("kind", "training"), stop_faults),
    (("kind", "model", "training", "constraints", "measured"), phase_faults),
    (("checkpoint", "data", "recurrence", "constraints"), start_faults),
)
