"""The work of a workload, resolved apart from the engine: steps, sizes, data, checkpoints and assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.resolve import resolve_model, resolve_training
from planner.inputs.view import with_defaults
from planner.performance.inference.chips import may_use_fp16
from planner.performance.kernels import default_attention, default_experts
from planner.performance.memory_options import MemoryOptions
from planner.performance.parts import all_params, model_of, training_of
from planner.performance.phases import phases_of
from planner.performance.post_training.adapters import learned_params
from planner.performance.post_training.read import tuning_of
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec, answer_bytes
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.inputs.resolved import Assumed, ResolvedModel, ResolvedTraining
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Checkpoint

GIB, GB = 2.0**30, 1e9
WEIGHT_BYTES = 2.0  # of an exported model, per parameter


@record(frozen=True)
class Work:
    """Sizes of one job; None is unknown. `unit` is tokens or samples, of which a step does `units_per_step`."""

    model: ModelSpec
    training: TrainingSpec
    steps: float
    unit: str
    units_per_step: float
    units: float
    data_gb: float | None
    read_gb: float | None
    stream: bool
    location: str | None
    egress_used_gb: float
    checkpoint_gib: float
    kept: int
    interval_hours: float | None
    restart_hours: float
    restart_given: bool
    export_gb: float
    assumed: tuple[Assumed, ...]
    figures: Mapping[str, float]
    stop_log_sd: float = 0.0

    @property
    def data_gib(self) -> float:
        """The data set, 0 where its size is unknown."""
        return (self.data_gb or 0.0) * GB / GIB

    @property
    def per_step(self) -> float:
        """Hours at work for each hour of steps: evaluation, and what runs spend beside their steps."""
        return 1.0 + self.figures["evaluation_share_ratio"] + self.figures["beside_steps_ratio"]

    def hours(self, key: str) -> float:
        """An assumption in seconds, as hours."""
        return self.figures[f"{key}_s"] / 3600.0


def assumption_rows(kind: str = "training") -> list[dict[str, str]]:
    """The assumptions of a kind of workload: its own row of a figure, else that of any kind."""
    table = _assumption_table()
    special = {row["key"] for row in table if row["kind"] == kind}
    return [row for row in table if row["kind"] == kind or (not row["kind"] and row["key"] not in special)]


@cache
def _assumption_table() -> list[dict[str, str]]:
    return bundled_rows("assumptions.csv")


def work_of(workload: Workload) -> Work:
    """Resolve a workload that names model and training."""
    assert workload.model is not None
    model = resolve_model(workload.model, workload.training)
    training = resolve_training(workload, model)
    spec = model_of(model)
    figures = {row["key"]: float(row["value"]) for row in assumption_rows(workload.kind)}
    figures |= {key: float(value) for key, value in workload.assumptions.items()}
    data, saved = workload.data, workload.checkpoint
    per_sample = training.bytes_per_sample
    restart = saved.restart_time
    given = _training(training, spec, model)
    return Work(
        model=spec,
        training=given,
        steps=training.total_steps,
        unit=training.unit,
        units_per_step=training.units_per_step,
        units=training.total_units * training.runs,
        data_gb=None if training.data_bytes is None else training.data_bytes / GB,
        read_gb=None if per_sample is None else training.runs * training.total_samples * per_sample / GB,
        stream=data.access == "stream",
        location=None if data.location == "onprem" else data.location,
        egress_used_gb=float(data.egress_used_gb),
        checkpoint_gib=0.0 if saved.size is None else saved.size / GIB,
        kept=saved.keep,
        interval_hours=None if saved.interval is None else saved.interval.total_seconds() / 3600.0,
        restart_hours=figures["restart_time_s"] / 3600.0
        if restart is None
        else restart.total_seconds() / 3600.0,
        restart_given=restart is not None,
        export_gb=_exported(spec, given, training.total_samples, saved) / GB,
        assumed=(*model.assumptions, *training.assumptions),
        figures=figures,
        stop_log_sd=training.stop_log_sd,
    )


def work_on(work: Work, workload: Workload, hardware: Table) -> Work:
    """The work as a machine does it: in fp16 where the file leaves the precision open and the machine has no bf16."""
    stated = workload.training
    if stated is None or "precision" in stated.model_fields_set or stated.rollouts is not None:
        return work
    if work.training.precision == "fp16" or hardware.number("bf16_tflops")[0] > 0:
        return work
    half = work_of(workload.model_copy(update={"training": with_defaults(stated, {"precision": "fp16"})}))
    return replace(work, training=half.training, assumed=half.assumed)


def _exported(spec: ModelSpec, training: TrainingSpec, samples: int, saved: Checkpoint) -> float:
    """Bytes that leave the cluster: answers, adapters where only they are trained and none are merged, or the model."""
    if not saved.export:
        return 0.0
    if training.tuning.requests is not None:
        return samples * answer_bytes(training)
    if saved.merge_adapters:
        return all_params(spec) * WEIGHT_BYTES
    learned = [
        learned_params(spec, training),
        0.0 if spec.tables is None else spec.tables.rows * spec.tables.width,
    ]
    learned += [learned_params(part.model, training_of(part, training)) for part in spec.parts]
    return sum(learned) * WEIGHT_BYTES


def _training(resolved: ResolvedTraining, model: ModelSpec, learns: ResolvedModel) -> TrainingSpec:
    pinned = LayoutPin() if resolved.layout is None else LayoutPin(**resolved.layout.model_dump())
    memory = MemoryOptions() if resolved.memory is None else MemoryOptions(**resolved.memory.model_dump())
    tuning = tuning_of(resolved.post)
    kernel = resolved.attention
    if kernel == "auto":
        kernel = default_attention(resolved.stack, model, resolved.software_date, tuning.is_tuning)
    return TrainingSpec(
        global_batch=resolved.global_batch,
        sequence_length=resolved.sequence_length,
        precision=resolved.precision,
        optimizer=resolved.optimizer,
        lora_rank=resolved.lora_rank,
        stack=resolved.stack,
        attention=kernel,
        expert_kernels=default_experts(resolved.stack, resolved.software_date),
        open_choices=resolved.open_choices,
        channels_last=resolved.channels_last,
        layout=pinned,
        bytes_per_sample=resolved.bytes_per_sample,
        decode_samples_per_s_per_core=resolved.decode_samples_per_s_per_core,
        memory=memory,
        tuning=tuning,
        allow_fp16_fallback=may_use_fp16(tuning.requests),
        trains=learns.trains,
        learned_params=learns.learned_params,
        evaluated=resolved.evaluated,
        phases=phases_of(resolved.phases),
    )
