"""Runs whose batch, sequence length or resolution changes: the sum of their phases' times, the largest of their needs.

One cluster runs all phases, each with its own layout. The table has the mean step of the run; its layout and limit are
those of the phase that takes most of the time there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from catalogs.tables.table import Table
from planner.performance.parts import flops_per_sample
from planner.performance.spec import COMPONENTS, ModelSpec, Phase, TrainingSpec

# Times add up by their share of the steps; needs are the largest of any phase.
_MEAN = ("step_time_s", "step_time_low_s", "step_time_high_s", *COMPONENTS)
_LARGEST = ("memory_needed_gib", "oom_probability", "host_memory_needed_gib", "checkpoint_gib")


def phases_of(resolved: Sequence[Any]) -> tuple[Phase, ...]:
    """The phases of a resolved training, read by attribute."""
    return tuple(
        Phase(phase.step_share, phase.global_batch, phase.sequence_length, phase.flops_ratio)
        for phase in resolved
    )


def flops_per_step(model: ModelSpec, training: TrainingSpec) -> float:
    """FLOPs of an optimizer step through all networks, on average over the phases of the run."""
    if not training.phases:
        return flops_per_sample(model, training) * training.global_batch
    each = zip(training.phases, phase_jobs(model, training), strict=True)
    return sum(phase.step_share * flops_per_step(*job) for phase, job in each)


def phase_jobs(model: ModelSpec, training: TrainingSpec) -> list[tuple[ModelSpec, TrainingSpec]]:
    """The model and training of each phase."""
    return [(_scaled(model, phase.flops_ratio), _training(training, phase)) for phase in training.phases]


def _training(training: TrainingSpec, phase: Phase) -> TrainingSpec:
    return replace(
        training, global_batch=phase.global_batch, sequence_length=phase.sequence_length, phases=()
    )


def _scaled(model: ModelSpec, ratio: float) -> ModelSpec:
    """The model at another resolution: FLOPs and activations per sample change with the area."""
    if ratio == 1.0 or model.forward_flops_per_sample is None:
        return model
    activations = model.activations_per_sample
    size = model.image_size
    return replace(
        model,
        image_size=None if size is None else round(size * ratio**0.5),
        forward_flops_per_sample=model.forward_flops_per_sample * ratio,
        activations_per_sample=None if activations is None else activations * ratio,
    )


def join_phases(training: TrainingSpec, tables: Sequence[Table]) -> Table:
    """The table of the whole run from those of its phases, row by row; a row fits where every phase does."""
    shares = np.asarray([phase.step_share for phase in training.phases])[:, None]
    times = shares * np.stack([table["step_time_s"] for table in tables])
    fits = np.stack([np.asarray(table["fits"], dtype=np.bool_) for table in tables])
    # What does not fit is decided by the first phase that does not; of those that fit by the longest.
    decisive = np.where(fits.all(axis=0), np.argmax(np.nan_to_num(times), axis=0), np.argmin(fits, axis=0))
    rows = tables[0].n_rows
    joined = Table.concat(list(tables)).take(decisive * rows + np.arange(rows))
    columns = {
        name: np.where(
            fits.all(axis=0), (shares * np.stack([table[name] for table in tables])).sum(axis=0), np.nan
        )
        for name in _MEAN
    }
    columns |= {name: np.stack([table[name] for table in tables]).max(axis=0) for name in _LARGEST}
    batch = sum(phase.step_share * phase.global_batch for phase in training.phases)
    columns["samples_per_s"] = batch / columns["step_time_s"]
    columns["mfu"] = (times * np.stack([table["mfu"] for table in tables])).sum(axis=0) / times.sum(axis=0)
    return joined.with_columns(**columns, phase=decisive)


def told_phase(
    model: ModelSpec, training: TrainingSpec, row: Mapping[str, Any]
) -> tuple[ModelSpec, TrainingSpec]:
    """The model and training that a row's layout and limit are of: those of its phase, where the run has several."""
    return phase_jobs(model, training)[int(row["phase"])] if training.phases else (model, training)
