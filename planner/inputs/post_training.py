"""What a workload says of post-training, complete: objective, adapters, lengths, reference, rollouts, requests."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.presets import find_preset
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.post_training_schema import Contrastive, Inference, Rollouts, Teacher
    from planner.inputs.post_training_schema import Lengths as LengthSection
    from planner.inputs.training_schema import Training

ADAPTED = ("lora", "qlora")
# Steps of batch inference exist only to count progress: requests of one such step.
REQUESTS_PER_STEP = 1024
# Of lengths given by their mean alone: 95 % of chat and reasoning answers are within about twice the mean.
P95_OVER_MEAN = 2.0


@record(frozen=True)
class Objective:
    """A row of data/objectives.csv: what a sample is and which other models run beside the one that learns."""

    name: str
    sequences: int
    reference: bool
    mismatched: int
    rollouts: bool
    critic: bool
    teacher: bool
    description: str


@record(frozen=True)
class Lengths:
    """Lengths of sequences in tokens: mean, the length 95 % do not exceed, and the longest."""

    mean: float
    p95: float
    longest: float


@record(frozen=True)
class PostTraining:
    """Post-training of one run, complete.

    Attributes:
        objective: name; `sequences` of them make a sample.
        adapter: kind of the adapters, None where all weights learn; `targets` the adapted matrices.
        base: how frozen weights are kept: half, int8, nf4, nf4_double.
        lengths: lengths of sequences, None where all are as long as `sequence_length`; `packed`: several fill one;
            `grouped`: those of like length share a batch.
        reference: none, resident, precomputed or adapters_off; `critic`: a model of the same size learns values.
        mismatched: answers to each prompt that learner and reference read beside a sample.
        teacher_params, teacher_active_params: of distillation.
        rollouts: the section, with its complete lengths in `prompts` and `answers`; the same of `inference`.
        passes: forward passes per item of `inference`; `rate_ratio`: its rate over that of these passes alone.
        contrastive: the section.
    """

    objective: str = "pretrain"
    sequences: int = 1
    adapter: str | None = None
    targets: tuple[str, ...] = ("attention",)
    base: str = "half"
    lengths: Lengths | None = None
    packed: bool = True
    grouped: bool = False
    reference: str = "none"
    mismatched: int = 0
    critic: bool = False
    teacher_params: float | None = None
    teacher_active_params: float | None = None
    rollouts: Rollouts | None = None
    inference: Inference | None = None
    prompts: Lengths | None = None
    answers: Lengths | None = None
    passes: float = 1.0
    rate_ratio: float = 1.0
    contrastive: Contrastive | None = None

    def tokens_per_sample(self, sequence_length: int) -> float:
        """Tokens of a sample that carry content."""
        if self.lengths is None or self.packed:
            return self.sequences * sequence_length
        return self.sequences * self.lengths.mean

    def samples_per_sequence(self, sequence_length: int) -> float:
        """Samples of the data set that packing puts into one sequence; 1 without packing or stated lengths."""
        if self.lengths is None or not self.packed:
            return 1.0
        return sequence_length / self.lengths.mean


@cache
def load_objectives() -> dict[str, Objective]:
    """Read objectives.csv."""
    return {
        row["objective"]: Objective(
            row["objective"], int(row["sequences_per_sample"]), row["reference"] == "true",
            int(row["mismatched"]), row["rollouts"] == "true", row["critic"] == "true", row["teacher"] == "true",
            row["description"],
        )
        for row in bundled_rows("objectives.csv")
    }  # fmt: skip


@cache
def adapter_names() -> tuple[str, ...]:
    """Kinds of adapters that data/adapters.csv knows."""
    return tuple(row["adapter"] for row in bundled_rows("adapters.csv"))


def adapter_key(kind: str) -> str:
    """An adapter's name as the table writes it: `LN-Tuning` is `ln_tuning`."""
    return kind.strip().lower().replace("-", "_").replace(" ", "_")


def complete(lengths: LengthSection, limit: float = math.inf) -> Lengths:
    """Fill in what a section of lengths leaves open; no length exceeds `limit`."""
    longest = min(float(lengths.max or math.inf), limit)
    p95 = lengths.p95 if lengths.p95 is not None else P95_OVER_MEAN * lengths.mean
    p95 = max(min(p95, longest), lengths.mean)
    if not math.isfinite(longest):
        longest = 2.0 * p95
    return Lengths(min(lengths.mean, longest), p95, max(longest, p95))


def longest_stated(training: Training) -> int | None:
    """The longest sequence by the lengths stated, twice their 95th percentile where no max is; None without lengths."""
    if training.lengths is not None:
        return math.ceil(complete(training.lengths).longest)
    if training.rollouts is None:
        return None
    prompts, responses = training.rollouts.prompt_tokens, training.rollouts.response_tokens
    return math.ceil(complete(prompts).longest + complete(responses).longest)


def together(first: Lengths, second: Lengths) -> Lengths:
    """Lengths of prompts with their answers; the longer part gives the spread."""
    p95 = max(first.p95 + second.mean, first.mean + second.p95)
    return Lengths(first.mean + second.mean, p95, first.longest + second.longest)


def resolve_post_training(
    training: Training, sequence_length: int, towers: bool = False, text: bool = True
) -> PostTraining:
    """Complete what a valid training says.

    Args:
        training: the section.
        sequence_length: tokens of the longest sequence.
        towers: the halves of a pair run through networks of their own.
        text: whether the model is a transformer, whose adapters are known by layer.
    """
    objective = load_objectives()[training.objective]
    adapted = training.method in ADAPTED and text
    adapter = training.adapter
    prompts = answers = None
    lengths = None if training.lengths is None else complete(training.lengths, sequence_length)
    if training.rollouts is not None:
        prompts, answers = (
            complete(training.rollouts.prompt_tokens),
            complete(training.rollouts.response_tokens),
        )
        lengths = lengths or together(prompts, answers)
    packed = lengths is None if training.packing is None else training.packing
    reference = training.reference or ("adapters_off" if adapted else "resident")
    teacher, active = _teacher(training.teacher)
    return PostTraining(
        objective=objective.name,
        sequences=1 if towers and objective.name == "contrastive" else objective.sequences,
        adapter=(adapter_key(adapter.kind) if adapter is not None else "lora") if adapted else None,
        targets=adapter.targets if adapter is not None else ("attention",),
        base=(training.quantization or "nf4_double") if training.method == "qlora" else "half",
        lengths=lengths,
        packed=packed,
        # trainers of reinforcement learning pack answers, or sort them by length
        grouped=training.group_by_length or training.rollouts is not None,
        reference=reference if objective.reference else "none",
        mismatched=objective.mismatched,
        critic=objective.critic,
        teacher_params=teacher,
        teacher_active_params=active,
        rollouts=training.rollouts,
        prompts=prompts,
        answers=answers,
        contrastive=training.contrastive,
    )


def rank_of(training: Training) -> int | None:
    """Rank of the adapters, None where all weights learn."""
    if training.method not in ADAPTED:
        return None
    rank = training.adapter.rank if training.adapter is not None else None
    return rank or training.lora_rank


def resolve_inference(inference: Inference, passes: float, rate_ratio: float) -> PostTraining:
    """Complete what a valid section of batch inference says; `planner.inputs.item_passes` tells passes and ratio."""
    prompts = None if inference.input_tokens is None else complete(inference.input_tokens)
    answers = None if inference.output_tokens is None else complete(inference.output_tokens)
    lengths = together(prompts, answers) if prompts and answers else prompts or answers
    return PostTraining(
        lengths=lengths,
        packed=False,
        inference=inference,
        prompts=prompts,
        answers=answers,
        passes=passes,
        rate_ratio=rate_ratio,
    )


def _teacher(teacher: Teacher | None) -> tuple[float | None, float | None]:
    if teacher is None:
        return None, None
    values = {} if teacher.preset is None else _preset_sizes(teacher.preset)
    params = teacher.params or values.get("params")
    return params, teacher.active_params or values.get("active_params") or params


def _preset_sizes(name: str) -> dict[str, float]:
    preset = find_preset(name)
    return (
        {}
        if preset is None
        else {k: float(v) for k, v in preset.values.items() if k in ("params", "active_params")}
    )
