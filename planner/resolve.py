"""From the workload's sections to what the engine works with: model and training specs, totals, sizes, dates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec
from planner.plan import Assumption
from planner.workload.resolve import resolve_model, resolve_training

if TYPE_CHECKING:
    from planner.workload.resolve import ResolvedModel, ResolvedTraining
    from planner.workload.schema import Workload

GIB = 2.0**30
GB = 1e9
# bytes per parameter of an exported model: 16-bit weights
EXPORT_BYTES_PER_PARAM = 2.0


@dataclass(frozen=True)
class Job:
    """The work, resolved. Sizes None are unknown; `location` is `provider/region`, None = with the user.

    Attributes:
        unit: `tokens` or `samples`; `units_per_step` of them are done in one optimizer step.
        checkpoint_gib: size of one checkpoint; 0 until the performance model has sized it.
        interval_hours, restart_hours: from the workload, None = chosen by the planner / assumed.
        stream: data is read from where it lies instead of being copied into the region.
        on: date of exchange rates.
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
    assumptions: tuple[Assumption, ...]

    @property
    def total_units(self) -> float:
        """Tokens or samples in all."""
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
    model, training = resolve_model(workload), resolve_training(workload)
    spec = _model_spec(model)
    tokens = spec.family is ModelFamily.TRANSFORMER
    data, checkpoint = workload.data, workload.checkpoint
    data_bytes = training.data_bytes
    read = None if training.bytes_per_sample is None else training.total_samples * training.bytes_per_sample
    trained = spec.params if workload.training is None or workload.training.method == "full" else 0.0
    return Job(
        model=spec,
        training=_training_spec(workload, training),
        total_steps=training.total_steps,
        unit="tokens" if tokens else "samples",
        units_per_step=training.global_batch * (training.sequence_length if tokens else 1),
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
        export_gb=trained * EXPORT_BYTES_PER_PARAM / GB if checkpoint.export else 0.0,
        on=on,
        assumptions=tuple(Assumption(*item) for item in (*model.assumptions, *training.assumptions)),
    )


def _hours(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds() / 3600.0


def _model_spec(model: ResolvedModel) -> ModelSpec:
    names = {field.name for field in fields(ModelSpec)}
    values = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return ModelSpec(**{**values, "family": ModelFamily(model.family)})


def _training_spec(workload: Workload, resolved: ResolvedTraining) -> TrainingSpec:
    training = workload.training
    assert training is not None
    pins = LayoutPin() if training.layout == "auto" else LayoutPin(**training.layout.model_dump())
    return TrainingSpec(
        global_batch=int(resolved.global_batch),
        sequence_length=int(resolved.sequence_length or 1),
        precision=training.precision,
        optimizer=training.optimizer,
        lora_rank=training.lora_rank if training.method == "lora" else None,
        stack=training.stack,
        layout=pins,
        bytes_per_sample=resolved.bytes_per_sample,
        decode_samples_per_s_per_core=workload.data.decode_samples_per_s_per_core,
    )


def start_of(workload: Workload, now: datetime) -> datetime:
    """Return when the job starts: `start`, or now, not before `earliest_start`; naive times are UTC."""
    start = now if workload.start is None else as_moment(workload.start)
    if workload.earliest_start is not None:
        start = max(start, as_moment(workload.earliest_start))
    return start


def deadline_of(workload: Workload, start: datetime) -> datetime | None:
    """Return the deadline as a moment: start + duration, or the end of the day named."""
    deadline = workload.constraints.deadline
    if deadline is None:
        return None
    if isinstance(deadline, timedelta):
        return start + deadline
    if isinstance(deadline, datetime):
        return as_moment(deadline)
    return as_moment(deadline) + timedelta(days=1)


def as_moment(value: date | datetime) -> datetime:
    """Return a date (its first moment) or datetime as a UTC datetime."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return datetime.combine(value, time(), tzinfo=UTC)
