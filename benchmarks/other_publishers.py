"""Score published rows of publishers that no constant was fitted to, each from a workload file as a user writes it.

`python -m benchmarks.other_publishers [--vision] [--rows]`. The rows are in `data/other_publishers.csv`, those of
vision models in `data/other_vision.csv`: what was measured, where it was published, and the sections of its workload as
JSON. They are for judging: no constant, prior or width is fitted on them, but for ms-swift's two pairs of step times
that `adapter.dequantise_passes.eager` rests on, which are not in the file.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.accelerators import find_device, load_devices
from benchmarks.error_figures import errors
from benchmarks.post_training import ON, counted_gib, hardware_of
from benchmarks.post_training_rows import Row
from benchmarks.rows import number, read_csv
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.estimation.predict import predict_shapes
from planner.inputs.load import parse_workload
from planner.performance.constants import load_constants
from planner.records import record

FILE = Path(__file__).resolve().parent / "data" / "other_publishers.csv"
VISION = FILE.with_name("other_vision.csv")
# A row that ran has fitted: where a plan would call its memory too risky, riskier layouts count as well.
RISKS = (0.5, 0.99, 1.0 - 1e-9)


@record(frozen=True)
class Scored:
    """A row and its prediction.

    Attributes:
        key, kind: its name and what it shows.
        ran: whether it ran; else it ran out of memory.
        fits: whether the planner offers it.
        step: measured and predicted step time and the upper end of the 80 % interval, s, None where not stated.
        memory: measured and predicted peak as the source counts it, GiB, None where not stated.
    """

    key: str
    kind: str
    ran: bool
    fits: bool
    step: tuple[float, float, float] | None
    memory: tuple[float, float] | None

    @property
    def inside(self) -> bool:
        """Whether the measured step time lies in the interval, which is symmetric in log."""
        assert self.step is not None
        measured, predicted, high = self.step
        return abs(math.log(predicted / measured)) <= math.log(high / predicted)


def score(path: Path = FILE) -> list[Scored]:
    """Predict every row of the file as `planner estimate` does.

    Raises:
        ValueError: a row names an accelerator that is not known, or a workload that cannot be read.
    """
    return [_score(raw) for raw in read_csv(path)]


def _score(raw: dict[str, str]) -> Scored:
    device = find_device(load_devices(), raw["accelerator"])
    if device is None:
        raise ValueError(f"{raw['key']}: unknown accelerator {raw['accelerator']}")
    loaded = parse_workload(json.dumps(_workload(raw)), Path(f"{raw['key']}.yaml"))
    count, each = int(raw["accelerators"]), int(raw["per_node"])
    row = Row(
        raw["key"], raw["source"], loaded, device, count, each, number(raw, "step_s"), number(raw, "memory_gib"),
        raw["convention"], {},
    )  # fmt: skip
    hardware = hardware_of(row)
    network = number(raw, "internode_gbps")
    if network:
        hardware = Table({**{name: hardware[name] for name in hardware}, "internode_gbps": [network]})
    job, constants = resolve_job(loaded.workload, ON.date()), load_constants()
    sizes = [constants, *(constants.replace({"memory.oom_limit": risk}) for risk in RISKS)]
    offered, shape = False, None
    for position, own in enumerate(sizes):
        tried = predict_shapes(job.model, job.training, hardware, [count // each], constants=own).row(0)
        if tried["fits"]:
            offered, shape = position == 0, tried
            break
    step = memory = None
    if shape is not None and row.step_s:
        step = (row.step_s, float(shape["step_time_s"]), float(shape["step_time_high_s"]))
    if shape is not None and row.memory_gib:
        memory = (row.memory_gib, counted_gib(row, job, hardware, shape, constants))
    return Scored(raw["key"], raw["class"], raw["ran_out"] != "true", offered, step, memory)


def _workload(raw: dict[str, str]) -> dict[str, object]:
    """The row's workload: the sections that it states, as JSON, and the day on which it ran."""
    model: dict[str, object] = json.loads(raw["model"])
    if "preset" not in model and "family" not in model:
        model = {"family": "transformer", "architecture": "decoder", "tied_embeddings": False, **model}
    training = {"steps": 1000, "precision": "bf16", **json.loads(raw["training"])}
    return {"version": 1, "name": "row", "model": model, "training": training, "start": raw["start"]}


def report(found: Sequence[Scored]) -> list[str]:
    """One line for all rows and one for each class."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for one in found:
        groups["all"].append(one)
        groups[one.kind].append(one)
    lines = []
    for name, part in groups.items():
        line = f"{name:28} {len(part):4}"
        steps = [one for one in part if one.step]
        if steps:
            made = errors(*_columns([(s.step[1], s.step[0]) for s in steps if s.step]))
            inside = float(np.mean([one.inside for one in steps]))
            line += (
                f"  step n {len(steps):3} median {made['median']:5.1f} MAPE {made['mape']:5.1f} p90 {made['p90']:5.1f}"
                f" ratio {made['bias']:.2f}; in the 80 % interval {inside:4.0%};"
            )
        sized = [one.memory for one in part if one.memory]
        if sized:
            made = errors(*_columns([(predicted, measured) for measured, predicted in sized]))
            line += (
                f"  memory n {len(sized):3} median {made['median']:5.1f} MAPE {made['mape']:5.1f}"
                f" p90 {made['p90']:5.1f} ratio {made['bias']:.2f};"
            )
        ran, out = [one for one in part if one.ran], [one for one in part if not one.ran]
        line += f"  ran and fits {sum(one.fits for one in ran)} of {len(ran)}"
        if out:
            line += f"; ran out and found {sum(not one.fits for one in out)} of {len(out)}"
        lines.append(line)
    return lines


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.asarray(pairs).T
    return first, second


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures by class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vision", action="store_true", help="score the rows of vision models")
    parser.add_argument("--rows", action="store_true", help="also print every row")
    chosen = parser.parse_args(arguments)
    found = score(VISION if chosen.vision else FILE)
    print("\n".join(report(found)))
    if chosen.rows:
        for one in found:
            step = f"{one.step[1]:10.3f} /{one.step[0]:10.3f} {one.inside!s:5}" if one.step else " " * 28
            size = f"{one.memory[1]:7.1f} /{one.memory[0]:7.1f} GiB" if one.memory else ""
            print(f"{one.key:52} {step} {size:22} {'' if one.fits else 'not offered'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
