"""The user's measurements in force for one job: which apply, and the step times they correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats, Ints, Table
from planner.calibration.kernel import Common, Points, load_prior, posterior, spread_ratio
from planner.normal import Z80
from planner.performance.constants import load_constants
from planner.performance.search import estimate_shapes
from planner.performance.search_job import build_job
from planner.performance.spec import COMPONENTS
from planner.records import record

if TYPE_CHECKING:
    from planner.calibration.store import Calibration
    from planner.performance.spec import ModelSpec, TrainingSpec

# A residual this many standard deviations out is more likely a wrong input than a slow run.
SUSPECT_DEVIATIONS = 3.0
# What was measured did fit, whatever the memory model says; a need 1.4 times the memory (this probability of running
# out) is another workload than the one that ran.
RAN = 0.99


@record(frozen=True)
class Predicted:
    """What the model predicts at a measured point, uncalibrated.

    Attributes:
        step_time_s: prediction; `spread` is the half-width of its 80 % interval in the logarithm.
        mfu: model FLOPs utilisation at that prediction.
        reason: why there is none; empty where there is one.
        given: half-width of the part of that interval which FLOPs given by hand cause; 0 where they are known.
    """

    step_time_s: float
    spread: float
    mfu: float
    reason: str
    layout: tuple[Any, ...]
    given: float = 0.0


def predict(calibration: Calibration) -> Predicted:
    """Predict a measured point with the model as it is now; the layout's unknown parts are searched."""
    return predict_all([calibration])[0]


def predict_all(calibrations: Sequence[Calibration]) -> list[Predicted]:
    """Predict measured points; one search serves all sizes of one job on one machine."""
    jobs: dict[Any, list[int]] = {}
    for position, item in enumerate(calibrations):
        jobs.setdefault((item.model, item.training, tuple(item.hardware.items())), []).append(position)
    predicted: dict[int, Predicted] = {}
    for positions in jobs.values():
        sizes = {int(calibrations[position].cluster["nodes"]) for position in positions}
        at_sizes = _at_sizes(calibrations[positions[0]], sorted(sizes))
        predicted |= {
            position: at_sizes[int(calibrations[position].cluster["nodes"])] for position in positions
        }
    return [predicted[position] for position in range(len(calibrations))]


def _at_sizes(item: Calibration, sizes: Sequence[int]) -> dict[int, Predicted]:
    """Predict one job on one machine by number of nodes: the layout that a plan would choose.

    Where the memory model leaves none, that of a run which is known to have fitted.
    """
    usual = load_constants()
    out: dict[int, Predicted] = {}
    ran = replace(item.training, memory=replace(item.training.memory, confidence=None))
    for training, constants in ((item.training, usual), (ran, usual.replace({"memory.oom_limit": RAN}))):
        left = [size for size in sizes if size not in out or out[size].reason]
        if left:
            table = hardware_table(item.hardware)
            shapes = estimate_shapes(item.model, training, table, left, constants=constants)
            given = 0.0
            if training.tuning.requests is None:  # what answers requests has no FLOPs given by hand
                given = float(build_job(item.model, training, table, constants).given[0])
            out |= {size: _predicted(shapes.row(row), given) for row, size in enumerate(left)}
    return out


def _predicted(row: dict[str, Any], given: float) -> Predicted:
    step = float(row["step_time_s"])
    spread = float("nan") if row["reason"] else float(np.log(row["step_time_high_s"] / step))
    return Predicted(step, spread, float(row["mfu"]), str(row["reason"]), _layout(row), given)


def _layout(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells layouts of one cluster apart."""
    return tuple(row[name] for name in ("tp", "pp", "cp", "ep", "zero_stage", "micro_batch", "recompute"))


def doubt(step_time_s: float, predicted: Predicted) -> str:
    """Say why a measured step time is hard to believe; empty where it is plausible."""
    ratio = step_time_s / predicted.step_time_s
    check = (
        "check that model, global batch, sequence length, layout, precision and stack are those of the run"
    )
    if predicted.mfu > ratio:
        return f"a step of {step_time_s:.4g} s is {predicted.mfu / ratio:.2f} times the accelerators' peak; {check}"
    if abs(float(np.log(ratio))) > SUSPECT_DEVIATIONS * predicted.spread / Z80:
        return (
            f"measured / predicted step time is {ratio:.2f}, far outside the prediction's interval; {check}"
        )
    return ""


def hardware_row(hardware: Table, row: int) -> dict[str, Any]:
    """One row of a hardware table as plain values; unknown numbers become None."""
    values = {}
    for name, value in hardware.row(row).items():
        plain = value.item() if hasattr(value, "item") else value
        values[name] = None if isinstance(plain, float) and not np.isfinite(plain) else plain
    return values


def hardware_table(values: dict[str, Any]) -> Table:
    """The inverse of `hardware_row`."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, str | bool):
            columns[name] = np.asarray([value], dtype=object if isinstance(value, str) else np.bool_)
        else:
            columns[name] = np.asarray([np.nan if value is None else float(value)])
    return Table(columns)


def model_key(model: ModelSpec, training: TrainingSpec) -> str:
    """Text that is equal for models of the same sizes, trained the same way; names do not count."""
    sizes = (
        model.family.value, f"{model.params:.4g}", model.layers, model.hidden, model.heads, model.kv_heads, model.ffn,
        model.vocab, model.experts, model.forward_flops_per_sample, training.lora_rank,
        *([training.trains] if training.trains != "all" else []), *model.parts,
    )  # fmt: skip
    return "|".join(str(size) for size in sizes)


@record(frozen=True)
class _Generation:
    """Measurements on one accelerator generation, arrays of shape `(n,)`.

    `sigma` is the model's own standard deviation, or the measurements' where they surprise more: then they, not the
    model, are believed. `widening` is the one over the other. `given` is the part of it that FLOPs given by hand cause.
    """

    points: Points
    log_ratio: Floats
    error: Floats
    given: Floats
    sigma: float
    widening: float
    layouts: frozenset[tuple[Any, ...]]
    used: tuple[Calibration, ...]


@record(frozen=True, eq=False)
class Correction:
    """Corrects the step times of one job on the generations that were measured.

    Attributes:
        generations: measurements by accelerator generation.
        model, precision: of the job.
        global_units: tokens or samples per optimizer step; `sequence` tokens per sample.
        warnings: measurements that could not be used, and corrections that were clipped.
    """

    generations: dict[str, _Generation]
    model: str
    precision: str
    global_units: float
    sequence: float
    warnings: tuple[str, ...]

    def apply(self, shapes: Table, hardware: Table) -> Table:
        """Return `shapes` with step times, intervals, speeds and parts corrected.

        A step never becomes faster than the roofline: the correction stops at an MFU of 1.

        Args:
            shapes: output of `estimate_shapes`; its `hardware_row` points into `hardware`.
            hardware: machines.
        """
        at = shapes["hardware_row"].astype(np.int64)
        generation = np.asarray(hardware["generation"], dtype=object)[at]
        factor, narrow = np.ones(len(at)), np.ones(len(at))
        told = np.isin(generation.astype(str), [*self.generations]) | (self.given > 0)
        rows = np.flatnonzero(told & np.isfinite(shapes["step_time_s"]))
        if len(rows) and self.generations:
            factor[rows], narrow[rows] = self._factors(shapes, hardware, rows, at[rows], generation[rows])
        return _corrected(shapes, np.maximum(factor, np.nan_to_num(shapes["mfu"], nan=0.0)), narrow)

    @property
    def given(self) -> float:
        """Standard deviation of the error of this job's FLOPs, if a measurement of this model tells of it; else 0."""
        known = [
            item.given[item.points.model == self.model].max(initial=0.0) for item in self.generations.values()
        ]
        return max(known, default=0.0)

    def _factors(
        self, shapes: Table, hardware: Table, rows: Ints, machine: Ints,
        generation: npt.NDArray[np.object_],
    ) -> tuple[Floats, Floats]:  # fmt: skip
        count = np.maximum(np.floor(hardware.number("accelerator_count")[machine] + 1e-9), 1.0)
        accelerators = shapes["nodes"][rows].astype(np.float64) * count
        rate = np.nan_to_num(hardware.number("memory_gb_per_s")[machine], nan=0.0)
        text = (np.full(len(rows), word, dtype=object) for word in (self.model, self.precision))
        targets = Points(
            accelerators, self.global_units / accelerators, np.full(len(rows), self.sequence), rate, *text
        )
        prior = load_prior()
        sigma = np.log(shapes["step_time_high_s"][rows] / shapes["step_time_s"][rows]) / Z80
        wider = np.ones(len(rows))
        for name, measured in self.generations.items():
            sigma[generation == name], wider[generation == name] = measured.sigma, measured.widening
        known = _joined(self.generations)
        common = Common(self.given, known.points.model == self.model, known.generation, generation, sigma)
        estimate = posterior(known.points, known.log_ratio, known.error, known.sigma, targets, prior, common)
        repeated = estimate.trust >= 1.0
        for at in np.flatnonzero(repeated).tolist():
            repeated[at] = _layout(shapes.row(int(rows[at]))) in self.generations[generation[at]].layouts
        narrow = wider * spread_ratio(estimate.left, estimate.trust, repeated, prior)
        return np.exp(estimate.log_ratio), np.minimum(narrow, 1.0)

    def describe(self, generation: str) -> str:
        """Say in one sentence which measurements correct this generation; empty without any."""
        corrected = self.generations.get(generation)
        if corrected is None:
            return self._elsewhere() if self.given > 0 else ""
        same = [
            item
            for item, model in zip(corrected.used, corrected.points.model.tolist(), strict=True)
            if model == self.model
        ]
        ratios = np.exp(corrected.log_ratio)
        spread = f"{ratios.min():.2f}" if len(ratios) == 1 else f"{ratios.min():.2f} to {ratios.max():.2f}"
        which_models = "of this model" if len(same) == len(corrected.used) else f"({len(same)} of this model)"
        if not same:
            which_models = "of another model, which says little about this one"
        plural = "measurement" if len(corrected.used) == 1 else "measurements"
        return f"{len(corrected.used)} {plural} {which_models} on {generation}: measured / predicted step time {spread}"

    def _elsewhere(self) -> str:
        """What measurements on other generations say: how far the FLOPs that were given are off."""
        names = " and ".join(sorted(self.generations))
        return f"measured on {names} only: that tells how far the FLOPs given are off, not this generation's speed"


@record(frozen=True)
class _Joined:
    """The measurements on all generations, arrays of shape `(n,)`."""

    points: Points
    generation: npt.NDArray[np.object_]
    log_ratio: Floats
    error: Floats
    sigma: Floats


def _joined(generations: Mapping[str, _Generation]) -> _Joined:
    found = list(generations.values())
    counts = [len(item.log_ratio) for item in found]
    columns = Points.__dataclass_fields__
    points = Points(
        **{name: np.concatenate([getattr(item.points, name) for item in found]) for name in columns}
    )
    return _Joined(
        points,
        np.repeat(np.asarray([*generations], dtype=object), counts),
        np.concatenate([item.log_ratio for item in found]),
        np.concatenate([item.error for item in found]),
        np.repeat([item.sigma for item in found], counts),
    )


def _corrected(shapes: Table, factor: Floats, narrow: Floats) -> Table:
    """Scale times by `factor` and the interval's width in the logarithm by `narrow`."""
    step = shapes["step_time_s"]
    ideal = step * shapes["mfu"]
    corrected = step * factor
    half = np.log(shapes["step_time_high_s"] / step) * narrow
    columns: dict[str, Any] = {
        "step_time_s": corrected,
        "step_time_low_s": np.minimum(np.maximum(corrected * np.exp(-half), ideal), corrected),
        "step_time_high_s": corrected * np.exp(half),
        "samples_per_s": shapes["samples_per_s"] / factor,
        "mfu": shapes["mfu"] / factor,
    }
    columns |= {name: shapes[name] * factor for name in COMPONENTS if name in shapes}
    return shapes.with_columns(**columns)


def build_correction(
    model: ModelSpec,
    training: TrainingSpec,
    calibrations: Sequence[Calibration],
    problems: Sequence[str] = (),
) -> Correction | None:
    """Choose the measurements that say something about a job; None where there is none and nothing to warn of.

    Measurements count when family of model and software stack are the job's; other models and precisions count little
    (see `kernel`).

    Args:
        model: sizes of the job's model.
        training: how it is trained.
        calibrations: all that are known.
        problems: files that could not be read.
    """
    by_generation: dict[str, list[tuple[Calibration, Predicted]]] = {}
    warnings = list(problems)
    alike = [
        item
        for item in calibrations
        if item.model.family == model.family and item.training.stack == training.stack
    ]
    for item, prediction in zip(alike, predict_all(alike), strict=True):
        name = f"calibration {item.path.name}" if item.path else "measured"
        if prediction.reason:
            warnings.append(
                f"{name} left out: the model cannot predict what was measured ({prediction.reason})"
            )
            continue
        doubtful = doubt(item.step_time_s, prediction)
        warnings += [f"{name}: {doubtful}"] if doubtful else []
        by_generation.setdefault(str(item.hardware["generation"]), []).append((item, prediction))
    if not by_generation and not warnings:
        return None
    generations = {name: _generation(prediction) for name, prediction in by_generation.items()}
    sequence = float(training.sequence_length)
    return Correction(
        generations, model_key(model, training), training.precision, training.global_batch * sequence, sequence,
        tuple(warnings),
    )  # fmt: skip


def _generation(predictions: Sequence[tuple[Calibration, Predicted]]) -> _Generation:
    rows = []
    for item, _ in predictions:
        count = max(1.0, float(np.floor(item.hardware["accelerator_count"] + 1e-9)))
        devices = count * int(item.cluster["nodes"])
        length = float(item.training.sequence_length)
        per_device = item.training.global_batch * length / devices
        rows.append((devices, per_device, length, float(item.hardware["memory_gb_per_s"] or 0.0)))
    accelerators, units, sequence, rate = np.asarray(rows, dtype=np.float64).T
    points = Points(
        accelerators,
        units,
        sequence,
        rate,
        np.asarray([model_key(item.model, item.training) for item, _ in predictions], dtype=object),
        np.asarray([item.training.precision for item, _ in predictions], dtype=object),
    )
    log_ratio = np.log([item.step_time_s / predicted.step_time_s for item, predicted in predictions])
    prior = float(np.mean([predicted.spread for _, predicted in predictions])) / Z80
    sigma = max(prior, float(np.sqrt(np.mean(log_ratio**2))))
    return _Generation(
        points, log_ratio, np.asarray([item.error for item, _ in predictions], dtype=np.float64),
        np.asarray([predicted.given for _, predicted in predictions]) / Z80, sigma, sigma / prior,
        frozenset(predicted.layout for _, predicted in predictions), tuple(item for item, _ in predictions),
    )  # fmt: skip
