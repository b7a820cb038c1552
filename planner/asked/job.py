"""From the workload's sections to what the engine works with: model and training specs, totals, sizes, dates."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from planner.inputs.resolve import resolve_model, resolve_training
from planner.performance.inference.chips import may_use_fp16
from planner.performance.kernels import default_attention, default_experts
from planner.performance.memory_options import MemoryOptions
from planner.performance.parts import all_params, exported_params, model_of
from planner.performance.phases import phases_of
from planner.performance.post_training.read import tuning_of
from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec, answer_bytes
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.resolved import Assumed, ResolvedModel, ResolvedTraining
    from planner.inputs.schema import Workload

GIB = 2.0**30
GB = 1e9
# bytes per parameter of an exported model: 16-bit weights
EXPORT_BYTES_PER_PARAM = 2.0


@record(frozen=True)
class Job:
    """The work, resolved. Sizes None are unknown; `location` is `provider/region`, None = with the user.

    Attributes:
        unit: `tokens` or `samples`; `units_per_step` of them are done in one optimizer step.
        checkpoint_gib: size of one checkpoint; 0 until the performance model has sized it.
        interval_hours, restart_hours: from the workload, None = chosen by the planner / assumed.
        stream: data is read from where it lies instead of being copied into the region.
        on: date of exchange rates.
        stop_log_sd: of a run that may stop early, standard deviation of the logarithm of its steps.
    """

    model: ModelSpec
    training: TrainingSpec
    total_steps: float
    unit: str
    units_per_step: float
    data_gb: float | None
    read_gb: float | None
    stream: bool
    stage_to_nodes: bool
    location: str | None
    egress_used_gb: float
    checkpoint_gib: float
    checkpoints_kept: int
    interval_hours: float | None
    restart_hours: float | None
    export_gb: float
    on: date
    assumptions: tuple[Assumed, ...]
    stop_log_sd: float = 0.0

    @property
    def is_inference(self) -> bool:
        """Whether requests are answered and nothing is trained."""
        return self.training.tuning.requests is not None

    @property
    def step_name(self) -> str:
        """What one step is called: `batch` of requests, or `step` of training."""
        return "batch" if self.is_inference else "step"

    @property
    def total_units(self) -> float:
        """Tokens or samples of the whole training."""
        return self.total_steps * self.units_per_step

    @property
    def data_gib(self) -> float | None:
        """Size of the data set in GiB."""
        return None if self.data_gb is None else self.data_gb * GB / GIB


def resolve_job(workload: Workload, on: date) -> Job:
    """Resolve model, training, data and checkpoint sections into a `Job`.

    Args:
        workload: a valid workload with a model (tasks are expanded before).
        on: date for exchange rates.
    """
    assert workload.model is not None
    model = resolve_model(workload.model, workload.training)
    training = resolve_training(workload, model)
    spec = model_of(model)
    data, checkpoint = workload.data, workload.checkpoint
    data_bytes = training.data_bytes
    per_sample = training.bytes_per_sample
    read = None if per_sample is None else training.runs * training.total_samples * per_sample
    training_spec = _training_spec(training, spec, model)
    params = all_params(spec) if checkpoint.merge_adapters else exported_params(spec, training_spec)
    written = params * EXPORT_BYTES_PER_PARAM
    if training_spec.tuning.requests is not None:
        written = training.total_samples * answer_bytes(training_spec)
    exported = written / GB if checkpoint.export else 0.0
    return Job(
        model=spec,
        training=training_spec,
        total_steps=training.total_steps,
        unit=training.unit,
        units_per_step=training.units_per_step,
        data_gb=None if data_bytes is None else data_bytes / GB,
        read_gb=None if read is None else read / GB,
        stream=data.access == "stream",
        stage_to_nodes=data.access == "stage",
        location=data.location if data.location != "onprem" else None,
        egress_used_gb=float(data.egress_used_gb),
        checkpoint_gib=0.0 if checkpoint.size is None else checkpoint.size / GIB,
        checkpoints_kept=checkpoint.keep,
        interval_hours=_hours(checkpoint.interval),
        restart_hours=_hours(checkpoint.restart_time),
        export_gb=exported,
        on=on,
        assumptions=(*model.assumptions, *training.assumptions),
        stop_log_sd=training.stop_log_sd,
    )


def _hours(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds() / 3600.0


def _training_spec(resolved: ResolvedTraining, model: ModelSpec, learns: ResolvedModel) -> TrainingSpec:
    tuning = tuning_of(resolved.post)
    return TrainingSpec(
        global_batch=resolved.global_batch,
        sequence_length=resolved.sequence_length,
        precision=resolved.precision,
        optimizer=resolved.optimizer,
        lora_rank=resolved.lora_rank,
        stack=resolved.stack,
        attention=default_attention(resolved.stack, model, resolved.software_date, tuning.is_tuning)
        if resolved.attention == "auto"
        else resolved.attention,
        expert_kernels=default_experts(resolved.stack, resolved.software_date),
        open_choices=resolved.open_choices,
        channels_last=resolved.channels_last,
        layout=LayoutPin() if resolved.layout is None else LayoutPin(**resolved.layout.model_dump()),
        bytes_per_sample=resolved.bytes_per_sample,
        decode_samples_per_s_per_core=resolved.decode_samples_per_s_per_core,
        memory=MemoryOptions() if resolved.memory is None else MemoryOptions(**resolved.memory.model_dump()),
        tuning=tuning,
        allow_fp16_fallback=may_use_fp16(tuning.requests),
        trains=learns.trains,
        learned_params=learns.learned_params,
        evaluated=resolved.evaluated,
        phases=phases_of(resolved.phases),
    )
