"""Choices of a training section: as assumptions of the plan, given or defaulted, and those left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.checks import start_moment
from planner.inputs.post_training import ADAPTED, rank_of
from planner.inputs.presets import find_preset, load_released
from planner.inputs.resolved import Assumed, Origin, Stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from planner.inputs.post_training import PostTraining
    from planner.inputs.post_training_schema import Inference
    from planner.inputs.resolved import ResolvedModel
    from planner.inputs.training_schema import Model, Training

_NO_BF16 = "the machines have no bf16"
# Objectives whose samples are seldom packed.
_SAMPLE_BY_SAMPLE = frozenset({"sft", "dpo", "orpo", "kto", "reward"})


def noted_choices(training: Training, keys: Sequence[str], post: PostTraining, stack: str) -> list[Assumed]:
    """Choices by key, of software the class `stack`, then those of adapters, lengths and updates."""
    out = [noted_choice(training, key, stack if key == "stack" else None) for key in keys]
    return [
        *out,
        *noted_of_method(training),
        *noted_of_adapters(training, post),
        *noted_of_lengths(training, post),
        *noted_of_updates(training),
    ]


def as_released(section: Inference, model: Model, noted: list[Assumed]) -> Inference:
    """Batch inference in the precision that the model was released in, where none is stated and one is known."""
    preset = find_preset(model.preset) if model.preset is not None else None
    released = None if preset is None else load_released().get(preset.name)
    if model.stored_precision is not None:
        released = (
            model.stored_precision,
            f"quantization_config of {model.config}" if model.config else "stored_precision",
        )
    if released is None or "precision" in section.model_fields_set:
        return section
    precision, source = released
    noted.append(Assumed("inference.precision", precision, "", "default", f"as released: {source}"))
    return section.model_copy(update={"precision": precision})


def stack_of(training: Training, *, text: bool) -> Stack:
    """The software class: as stated, else the default; image trainers of adapters do not compile."""
    left_out = "stack" not in training.model_fields_set
    return "eager" if left_out and not text and training.method in ADAPTED else training.stack


def noted_choice(training: Training, key: str, value: str | None = None) -> Assumed:
    """A choice of the training section, given or defaulted; `value`: what the default became."""
    value = value or str(getattr(training, key))
    if key in training.model_fields_set:
        return Assumed(f"training.{key}", value, "", "workload")
    # bf16 is the default of the schema: another one was chosen for the machines (`candidates.default_precision`)
    note = _NO_BF16 if key == "precision" and value != "bf16" else ""
    return Assumed(f"training.{key}", value, "", "default", note)


def noted_of_method(training: Training) -> list[Assumed]:
    """What the program does besides predicting the next token with all weights: launch files say who has it."""
    objective = [] if training.objective == "pretrain" else [noted_choice(training, "objective")]
    return [*objective, *([noted_choice(training, "method")] if training.method in ADAPTED else [])]


def noted_of_adapters(training: Training, post: PostTraining) -> list[Assumed]:
    """Rank, kind and targets of adapters, and how frozen weights are quantised."""
    if training.method not in ADAPTED or post.adapter is None:
        return []
    named = "lora_rank" in training.model_fields_set or (
        training.adapter is not None and training.adapter.rank
    )
    rank = Assumed("training.lora_rank", str(rank_of(training)), "", "workload" if named else "default")
    given: Origin = "workload" if training.adapter is not None else "default"
    out = [rank, Assumed("training.adapter", f"{post.adapter} on {', '.join(post.targets)}", "", given)]
    if training.method == "qlora":
        origin: Origin = "workload" if training.quantization else "default"
        out.append(Assumed("training.quantization", post.base, "", origin))
    return out


def noted_of_updates(training: Training) -> list[Assumed]:
    """The batch of an optimizer update, where a step of rollouts has several: launch files accumulate to it."""
    rollouts = training.rollouts
    if rollouts is None or rollouts.update_batch in (None, training.global_batch):
        return []
    return [Assumed("training.rollouts.update_batch", str(rollouts.update_batch), "samples", "workload")]


def noted_of_lengths(training: Training, post: PostTraining) -> list[Assumed]:
    """The distribution of lengths, where there is one."""
    if post.lengths is None:
        return _whole_sequences(training)
    lengths = post.lengths
    origin: Origin = "workload" if training.lengths is not None else "derived"
    text = f"mean {lengths.mean:,.0f}, p95 {lengths.p95:,.0f}, longest {lengths.longest:,.0f}"
    return [Assumed("training.lengths", text, "tokens", origin)]


def _whole_sequences(training: Training) -> list[Assumed]:
    """That each sample of a fine-tuning counts as a whole sequence, where neither lengths nor packing is stated."""
    tuned = training.objective in _SAMPLE_BY_SAMPLE or training.method in ADAPTED
    stated = training.packing is not None or training.tokens is not None or training.sequence_length is None
    if stated or not tuned:
        return []
    note = "every sample is as long as a sequence; their lengths, e.g. lengths: {mean: 600, p95: 2000}, are not stated"
    return [Assumed("training.lengths", str(training.sequence_length), "tokens", "default", note)]


def open_choices(training: Training, model: ResolvedModel) -> tuple[str, ...]:
    """What was left to a default: the interval is wider."""
    moving = ["stack"]
    if model.family == "transformer":
        moving.append("attention")
        eight_bit = training.precision in ("fp8", "fp4")
        # The date of the software moves nothing else (`planner.performance.kernels`).
        if model.experts and training.stack == "tuned" and eight_bit:
            moving.append("software_date")
    return tuple(key for key in moving if not _is_stated(training, key))


def _is_stated(training: Training, key: str) -> bool:
    """Whether a choice was made: `attention: auto` or an empty date leave it open in words."""
    return key in training.model_fields_set and getattr(training, key) not in (None, "auto")


def software_day(training: Training, start: date | datetime | None) -> date | None:
    """The day of the software's release: as stated, else that of the run, None for today's."""
    if training.software_date is not None or start is None:
        return training.software_date
    return start_moment(start).date()
