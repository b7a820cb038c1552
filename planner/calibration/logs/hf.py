"""Speed of a run of the Hugging Face Trainer: trainer_state.json, all_results.json, or what it printed at the end."""

from __future__ import annotations

import ast
import json
import re
import warnings
from pathlib import Path
from typing import Any

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.errors import InputError

_PRINTED = re.compile(r"\{[^{}]*['\"]train_runtime['\"][^{}]*\}")
_NOTE = "the Trainer tells the mean of the whole run, with start-up, evaluations and saves: a steady step is shorter"


def read(path: Path, options: ReadOptions) -> Log:
    """Read runtime and steps of the summary that the Trainer writes when training ends."""
    del options
    text = read_text(path)
    summary, steps = _summary(text, path)
    runtime, rate = _number(summary, "train_runtime"), _number(summary, "train_steps_per_second")
    count = _number(summary, "step") or steps
    if runtime and count:
        return Log("hf", (runtime / count,), steps=int(count), note=_NOTE)
    if rate:
        # the Trainer rounds to three decimals, so that slow steps need the runtime instead
        if rate < 0.05:
            raise InputError(
                f"{path}: train_steps_per_second {rate:g} is rounded too coarsely; give trainer_state.json, which has "
                "the number of steps too"
            )
        return Log("hf", (1.0 / rate,), steps=int(runtime * rate) if runtime else 1, note=_NOTE)
    samples = _number(summary, "train_samples_per_second")
    if samples:
        return Log("hf", (samples,), "samples", note=_NOTE)
    raise InputError(f"{path}: the summary has no train_runtime or train_steps_per_second above 0")


def _summary(text: str, path: Path) -> tuple[dict[str, Any], float | None]:
    """The last summary of the text, and the number of steps that stands outside it."""
    if text.lstrip().startswith("{"):
        try:
            state = json.loads(text)
        except (ValueError, RecursionError) as error:
            place = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            if not _PRINTED.search(text):
                raise InputError(f"{path}{place}: not whole JSON ({error}); is the file cut short?") from None
        else:
            history = state.get("log_history")
            entries = history if isinstance(history, list) else [state]
            summaries = [entry for entry in entries if isinstance(entry, dict) and "train_runtime" in entry]
            if not summaries:
                raise InputError(
                    f"{path}: no train_runtime in it: the state of a run that has not ended; let it run to max_steps"
                )
            return summaries[-1], _number(state, "global_step")
    printed = _PRINTED.findall(text)
    if not printed:
        raise InputError(f"{path}: no summary with train_runtime; the Trainer prints it when training ends")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", SyntaxWarning
            )  # Python warns of odd figures, which are refused below
            summary = ast.literal_eval(printed[-1])
    except (ValueError, SyntaxError):
        raise InputError(f"{path}: the summary cannot be read: {printed[-1][:80]!r}") from None
    return summary, None


def _number(values: dict[str, Any], name: str) -> float | None:
    """A figure above 0; the Trainer prints some as text."""
    try:
        value = float(values.get(name, 0.0))
    except (TypeError, ValueError):
        return None
    return value if 0.0 < value < float("inf") else None
