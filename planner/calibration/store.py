"""Calibrations on disk: one small JSON file per measured point, in the user's data directory.

JSON, not YAML, although people may read it: `planner optimize` looks here on every run and must not import a YAML
parser for it. A file keeps the evidence (what was run, where, and the step time measured), so that another version of
the performance model compares it with its own prediction.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from planner.calibration.checked import check_record, checked_hardware
from planner.errors import InputError
from planner.files import write_atomically
from planner.files.limited import read_limited
from planner.performance.parts import model_from
from planner.performance.post_training.read import tuning_from
from planner.performance.post_training.spec import Tuning
from planner.performance.spec import ModelFamily, ModelSpec, Phase, TrainingSpec
from planner.performance.work import stack_work
from planner.records import record
from planner.version import __version__

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).resolve().parent.parent / "data" / "schemas" / "calibration.v1.json"
MAX_BYTES = 1 << 18
MOST_STEP_S = 1e9
MOST_ERROR = 10.0  # of a logarithm
MOST_NODES = 16_384


@record(frozen=True)
class Calibration:
    """One measured point.

    Attributes:
        model, training: what was run; `training.layout` holds the parts of the layout that are known.
        hardware: the machine's row of the hardware table, by column; None unknown.
        cluster: provider, instance type, accelerator and nodes.
        step_time_s: measured.
        error: standard deviation of its logarithm, run-to-run spread included.
        evidence: what the measurement rests on, for people: kind and name of the log, steps used and dropped, spread.
        created_at: moment in UTC.
        path: the file, None before it is saved.
    """

    model: ModelSpec
    training: TrainingSpec
    hardware: dict[str, Any]
    cluster: dict[str, Any]
    step_time_s: float
    error: float
    evidence: dict[str, Any]
    created_at: str
    path: Path | None = None


def directory() -> Path:
    """Where calibrations live: `calibrations` beside the refreshed catalog, in the user's data directory."""
    from catalogs.store.read import history_directory

    return history_directory().parent / "calibrations"


def file_name(calibration: Calibration) -> str:
    """Name of the file: readable, and the same for the same point, so that a new measurement replaces the old one."""
    point = json.dumps(
        [_known(asdict(calibration.model)), _plain_training(calibration.training), calibration.cluster]
    )
    words = (
        calibration.model.name, f"{calibration.cluster['nodes']}x{calibration.cluster['instance_type']}",
        calibration.training.precision, calibration.training.stack,
    )  # fmt: skip
    slug = re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower()).strip("-.")
    return f"{slug[:80]}-{hashlib.sha256(point.encode()).hexdigest()[:8]}.json"


def to_text(calibration: Calibration, predicted_s: float, spread: float) -> str:
    """Return the file's text.

    Args:
        calibration: the measured point.
        predicted_s: step time that the model predicts there, uncalibrated.
        spread: half-width of that prediction's 80 % interval in the logarithm.
    """
    ratio = calibration.step_time_s / predicted_s
    values = {
        "schema_version": SCHEMA_VERSION,
        "planner_version": __version__,
        "created_at": calibration.created_at,
        "cluster": calibration.cluster,
        "model": _known(asdict(calibration.model)),
        "training": _plain_training(calibration.training),
        "measured": {
            "step_time_s": calibration.step_time_s, "error_log": round(calibration.error, 5), **calibration.evidence,
        },
        "predicted": {
            "step_time_s": predicted_s, "step_time_low_s": predicted_s * math.exp(-spread),
            "step_time_high_s": predicted_s * math.exp(spread),
        },
        "measured_over_predicted_ratio": ratio,
        "hardware": calibration.hardware,
    }  # fmt: skip
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def _plain_training(training: TrainingSpec) -> dict[str, Any]:
    """The training's values; those of post-training only where there is any."""
    values = _known(asdict(training))
    if training.tuning == Tuning():
        del values["tuning"]
    return values


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """Drop what is unknown or absent; enums become their text."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            out[name] = _known(value)
        elif value is not None:
            out[name] = value.value if isinstance(value, ModelFamily) else value
    return out


def save(calibration: Calibration, text: str, out: Path | None = None) -> tuple[Path, bool]:
    """Write a calibration atomically; return its path and whether it replaced one.

    Args:
        calibration: names the file.
        text: see `to_text`.
        out: where to write instead of the user's data directory.

    Raises:
        InputError: the place cannot be written.
    """
    path = out or directory() / file_name(calibration)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be created: {error.strerror}; set PLANNER_DATA_DIR or --out"
        ) from None
    existed = path.exists()
    write_atomically(path, text)
    return path, existed


def load(path: Path) -> Calibration:
    """Read one calibration.

    Raises:
        InputError: not a whole calibration of this schema; says what to do.
    """
    try:
        values = json.loads(read_limited(path, MAX_BYTES))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); delete it or run `planner calibrate` again") from None
    try:
        return _parse(values, path)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise InputError(
            f"{path}: no calibration of schema {SCHEMA_VERSION} ({reason}); delete it or run `planner calibrate` again"
        ) from None


def _parse(values: dict[str, Any], path: Path) -> Calibration:
    if values["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {values['schema_version']!r}")
    measured = values["measured"]
    step, error = float(measured["step_time_s"]), float(measured["error_log"])
    if not (0.0 < step <= MOST_STEP_S and 0.0 < error <= MOST_ERROR):
        raise ValueError(
            f"measured.step_time_s must be above 0 and at most {MOST_STEP_S:g} s, error_log at most {MOST_ERROR:g}"
        )
    if not 1 <= int(values["cluster"]["nodes"]) <= MOST_NODES:
        raise ValueError(f"cluster.nodes must be 1 to {MOST_NODES}")
    model, training = model_from(dict(values["model"])), _training(dict(values["training"]))
    check_record(model, "model")
    check_record(training, "training")
    if training.global_batch < 1 or training.sequence_length < 1:
        raise ValueError("training.global_batch and training.sequence_length must be at least 1")
    stack_work([(model, training)])  # names a size that the family needs and the file lacks
    return Calibration(
        model=model, training=training, hardware=checked_hardware(values["hardware"]),
        cluster=dict(values["cluster"]), step_time_s=step, error=error,
        evidence={key: item for key, item in measured.items() if key not in ("step_time_s", "error_log")},
        created_at=str(values["created_at"]), path=path,
    )  # fmt: skip


def _training(values: dict[str, Any]) -> TrainingSpec:
    """Rebuild the training; parts that are records of their own (layout, memory) are recognised by their defaults."""
    parts: dict[str, Any] = {
        field.name: type(field.default) for field in fields(TrainingSpec) if is_dataclass(field.default)
    }
    parts["tuning"] = lambda **item: tuning_from(item)
    stated: dict[str, Any] = {
        name: parts[name](**item) if name in parts else tuple(item) if isinstance(item, list) else item
        for name, item in values.items()
    }
    return TrainingSpec(**{**stated, "phases": tuple(Phase(**phase) for phase in stated.get("phases", ()))})


def load_all(folder: Path | None = None) -> tuple[list[Calibration], list[str]]:
    """Read all calibrations; a file that cannot be read is reported in the second list, never a reason to stop."""
    calibrations: list[Calibration] = []
    problems: list[str] = []
    try:
        paths = sorted(path for path in (folder or directory()).iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"calibrations are not read: {error.strerror}"]
    for path in paths:
        try:
            calibrations.append(load(path))
        except InputError as error:
            problems.append(f"calibration left out: {error}")
    return calibrations, problems
