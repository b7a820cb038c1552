"""Score published rows of inference that no constant was fitted to, each from a workload file as a user writes it.

`python -m benchmarks.other_inference [--later | --all] [--rows]`. The rows are in `data/other_inference.csv`, and those
found after its lessons were drawn in `data/later_inference.csv`: output tokens/s of the whole system, where they were
published, and the workload's model and section `inference` as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accelerators import find_device, load_devices
from benchmarks.error_figures import errors
from benchmarks.post_training import ON, hardware_of
from benchmarks.post_training_rows import Row
from benchmarks.rows import read_csv
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.estimation.predict import predict_shapes
from planner.inputs.load import parse_workload
from planner.performance.constants import Constants, load_constants
from planner.performance.inference.chips import serving_columns
from planner.performance.post_training.spec import Engine, Requests
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.records import record

FILE = Path(__file__).resolve().parent / "data" / "other_inference.csv"
LATER = FILE.with_name("later_inference.csv")
_REQUESTS = 100_000


@record(frozen=True)
class Rate:
    """A row and its prediction, output tokens/s of the system; `predicted` and `high` are NaN where it is not offered.

    Attributes:
        key, kind: its name and the group that the report shows.
        measured: as published; `predicted`: by the planner; `high`: upper end of the 80 % interval.
    """

    key: str
    kind: str
    measured: float
    predicted: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the measured rate lies in the interval, which is symmetric in log."""
        return abs(math.log(self.predicted / self.measured)) <= math.log(self.high / self.predicted)


@dataclass(frozen=True, eq=False)
class Asked:
    """A published row as a user asks for it.

    Attributes:
        key, kind, publisher: its name, the group that the report shows, and who published it.
        unfit: why no constant may be fitted on it; empty for most.
        model, engine: what answers.
        measured: output tokens/s of the system.
    """

    key: str
    kind: str
    publisher: str
    unfit: str
    model: ModelSpec
    engine: Engine
    measured: float
    _training: TrainingSpec
    _hardware: Table

    @property
    def requests(self) -> Requests:
        """What is asked."""
        asked = self._training.tuning.requests
        assert asked is not None
        return asked

    @property
    def peak(self) -> float:
        """FLOP/s of all accelerators in the precision of the engine's arithmetic."""
        column = serving_columns(self._hardware, self._training.tuning, load_constants())["serve_peak"]
        return float(column[0] * self._hardware.number("accelerator_count")[0])

    @property
    def unpacks(self) -> bool:
        """Whether the accelerator has no arithmetic in the format of the weights (MXFP4)."""
        column = serving_columns(self._hardware, self._training.tuning, load_constants())["serve_unpack"]
        return bool(column[0] != 1.0)

    @property
    def memory_rate(self) -> float:
        """Bytes/s of one accelerator's memory."""
        return float(self._hardware.number("memory_gb_per_s")[0]) * 1e9

    def predict(self, constants: Constants | None = None) -> float:
        """Output tokens/s by the planner, NaN where it is not offered."""
        return self.rate(constants).predicted

    def rate(self, constants: Constants | None = None) -> Rate:
        """The row with its prediction and interval."""
        shape = predict_shapes(self.model, self._training, self._hardware, [1], constants=constants).row(0)
        if not shape["fits"]:
            return Rate(self.key, self.kind, self.measured, math.nan, math.nan)
        assert self.requests.answers is not None
        answers = float(self._training.global_batch) * self.requests.answers.mean
        return Rate(
            self.key,
            self.kind,
            self.measured,
            answers / shape["step_time_s"],
            answers / shape["step_time_low_s"],
        )


def score(path: Path = FILE, constants: Constants | None = None) -> list[Rate]:
    """Predict every row of the file as `planner estimate` does.

    Args:
        path: the rows.
        constants: the model's constants, the bundled ones by default.

    Raises:
        ValueError: a row names an accelerator that is not known, or a workload that cannot be read.
    """
    known = constants or load_constants()
    return [row.rate(known) for row in read(path)]


def read(path: Path = FILE) -> list[Asked]:
    """The rows of a file, each with its workload read; errors as those of `score`."""
    devices = load_devices()
    return [asked_row(raw, devices) for raw in read_csv(path)]


def asked_row(raw: dict[str, str], devices: Mapping[str, dict[str, Any]]) -> Asked:
    """A row of the tables as a user asks for it; errors as those of `score`."""
    device = find_device(devices, raw["accelerator"])
    if device is None:
        raise ValueError(f"{raw['key']}: unknown accelerator {raw['accelerator']}")
    section = {"requests": _REQUESTS, **json.loads(raw["inference"])}
    workload = {
        "version": 1, "name": "row", "kind": "inference", "model": {"preset": raw["preset"]}, "inference": section,
    }  # fmt: skip
    loaded = parse_workload(json.dumps(workload), Path(f"{raw['key']}.yaml"))
    count = int(raw["accelerators"])
    row = Row(raw["key"], raw["source"], loaded, device, count, count, None, None, "", {})
    job = resolve_job(loaded.workload, ON.date())
    requests = job.training.tuning.requests
    assert requests is not None
    publisher = raw["source"].split("@")[0].split(" ")[0].split("/")[0]
    return Asked(
        raw["key"], raw["class"], publisher, raw.get("unfit", ""), job.model, requests.engine,
        float(raw["output_tokens_per_s"]), job.training, hardware_of(row),
    )  # fmt: skip


def report(found: Sequence[Rate]) -> list[str]:
    """One line for all rows and one for each class."""
    groups: dict[str, list[Rate]] = defaultdict(list)
    for one in found:
        groups["all"].append(one)
        groups[one.kind].append(one)
    lines = []
    for name, part in groups.items():
        offered = [one for one in part if math.isfinite(one.predicted)]
        line = f"{name:42} {len(part):4}"
        if offered:
            made = errors(
                np.asarray([one.predicted for one in offered]), np.asarray([one.measured for one in offered])
            )
            inside = float(np.mean([one.inside for one in offered]))
            line += (
                f"  median {made['median']:5.1f} MAPE {made['mape']:5.1f} p90 {made['p90']:5.1f}"
                f" ratio {made['bias']:.2f}; in the 80 % interval {inside:4.0%}"
            )
        if len(offered) < len(part):
            line += f"; {len(part) - len(offered)} not offered"
        lines.append(line)
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures by class."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--later", action="store_true", help="the rows that were found later")
    which.add_argument("--all", action="store_true", help="both files")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    chosen = parser.parse_args(arguments)
    files = (FILE, LATER) if chosen.all else (LATER if chosen.later else FILE,)
    found = [one for path in files for one in score(path)]
    print("\n".join(report(found)))
    if chosen.rows:
        for one in found:
            ratio = one.predicted / one.measured
            print(f"{one.key:52} {one.predicted:10.1f} /{one.measured:10.1f}  {ratio:5.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
