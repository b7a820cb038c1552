"""Weights & Biases: `wandb-summary.json` of a run, or the same as exported by its API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.errors import InputError

# Optimizer steps under the names that trainers log; `_step` counts calls of the logger, not steps.
_STEPS = ("train/global_step", "trainer/global_step", "global_step", "iteration", "train/step", "step")
_RATES = ("train/train_steps_per_second", "train_steps_per_second")
_TIMES = (
    "perf/step_time",
    "train/step_time",
    "step_time",
    "train_step_timing in s",
    "time_metrics/end_to_end(s)",
)
# Start-up, evaluations and saves rarely double the mean of a step.
_MOST_OVERHEAD = 2.0
_NOTE = "the mean of the whole run, with start-up, evaluations and saves: a steady step is shorter"


def read(path: Path, options: ReadOptions) -> Log:
    """Read the last step time that was logged, else the mean of the run."""
    del options
    summary = _summary(path)
    logged = next((value for name in _TIMES if (value := _number(summary, name))), None)
    steps = next((value for name in _STEPS if (value := _number(summary, name))), None)
    trained = _number(summary, "train/train_runtime") or _number(summary, "train_runtime")
    whole = _number(summary, "_runtime") or _number(summary, "_wandb.runtime")
    runtime = trained or whole
    if logged is not None:
        _check(path, logged, runtime / steps if runtime and steps else None)
        return Log("wandb", (logged,), note="the last step time that was logged")
    if runtime and steps:
        return Log("wandb", (runtime / steps,), steps=int(steps), note=_NOTE + _resumed(trained, whole))
    rate = next((value for name in _RATES if (value := _number(summary, name))), None)
    if rate is not None and rate >= 0.05:
        return Log("wandb", (1.0 / rate,), note=_NOTE)
    raise InputError(
        f"{path}: the summary has no step time ({', '.join(_TIMES[:3])}) and no steps ({', '.join(_STEPS[:3])}) beside "
        "its runtime; export the run's history as CSV with a column step_time_s instead"
    )


def _resumed(trained: float | None, whole: float | None) -> str:
    """What to say of a run that lasted far longer than its training: the Trainer times the last session alone."""
    if trained is None or whole is None or whole <= _MOST_OVERHEAD * trained:
        return ""
    return (
        f"; but train_runtime is {trained:,.0f} s of the run's {whole:,.0f} s: if it was resumed, the steps are of "
        "all sessions and the time is of the last one, and a step takes longer"
    )


def _check(path: Path, logged: float, mean: float | None) -> None:
    """Refuse a logged time far below the run's mean: some trainers log that of one forward and backward pass."""
    if mean is not None and logged * _MOST_OVERHEAD < mean:
        raise InputError(
            f"{path}: the last step time that was logged is {logged:.3g} s, the run's mean {mean:.3g} s a step: is the "
            f"former the time of one pass of several? State the right one: --measured '{1 / mean:.3g} steps/s'"
        )


def _summary(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not whole JSON ({error}); is the file cut short?") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: must be the summary of one run, a mapping of names to values")
    return data


def _number(values: dict[str, Any], name: str) -> float | None:
    """A finite figure above 0 under a name, or under its parts."""
    value: Any = values.get(name)
    if value is None and "." in name:
        first, _, rest = name.partition(".")
        inner = values.get(first)
        value = inner.get(rest) if isinstance(inner, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0.0 < value < float("inf") else None
