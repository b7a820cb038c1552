"""Layouts that publishers measured as the fastest of several: `python -m benchmarks.measured_layouts [--data FILE]`.

Of each grid of measured rows (one model, batch, cluster and software) with at least three layouts, the fastest goes to
`planner/data/measured_layouts.csv`. Grids in which repeated runs of one layout differ by more than 10 % are left out:
what was fastest there is chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import settle
from benchmarks.rows import write_records
from planner.performance.constants import load_constants
from planner.performance.measured_layouts import DATA_FILE, TOLD_APART, MeasuredLayout
from planner.performance.work import PRECISION_GROUP

LEAST_LAYOUTS = 3
STATED = frozenset({"tensor_parallel", "pipeline_parallel", "micro_batch"})
LEVELS = ("none", "selective", "full")


def fastest_of(cases: Sequence[Case], made: Sequence[list[list[int]]]) -> list[tuple[Case, MeasuredLayout]]:
    """The fastest layout of each grid that is large and steady enough, with a row that measured it."""
    found: list[tuple[Case, MeasuredLayout]] = []
    for layouts in made:
        runs = [np.asarray([cases[row].measured.value for row in rows]) for rows in layouts]
        steady = all(run.max() <= TOLD_APART * run.min() for run in runs)
        case = cases[layouts[int(np.argmax([np.median(run) for run in runs]))][0]]
        dense = case.kind == "transformer" and not case.model.experts
        if steady and dense and len(layouts) >= LEAST_LAYOUTS and case.stated_layout >= STATED:
            found.append((case, _measured(case, len(layouts))))
    return found


def _measured(case: Case, layouts: int) -> MeasuredLayout:
    place, training = case.layout, case.training
    assert place is not None and case.model.hidden and case.model.layers
    return MeasuredLayout(
        case.group, case.split_group, str(case.hardware["accelerator"]), case.accelerators, training.stack,
        PRECISION_GROUP[training.precision], case.model.hidden, case.model.layers, training.sequence_length,
        training.global_batch, int(place["tp"]), int(place["pp"]), int(place["cp"]), place["zero"] >= 3,
        int(place["micro_batch"]), float(place["recompute"]), layouts,
    )  # fmt: skip


def write_table(
    found: Sequence[tuple[Case, MeasuredLayout]], rows: Mapping[str, dict[str, str]], path: Path = DATA_FILE
) -> None:
    """Write the table; `rows` are the measured rows by id, which say where each was read and when it was measured."""
    made = []
    for case, item in found:
        read = rows[case.row_id]
        made.append({
            "publisher": item.publisher, "workload": item.workload, "accelerator": item.accelerator,
            "accelerators": item.accelerators, "software": item.software, "precision": item.precision,
            "width": item.width, "layers": item.layers, "sequence": item.sequence, "batch": item.batch,
            "tensor_parallel": item.tp, "pipeline_parallel": item.pp, "context_parallel": item.cp,
            "zero_stage": int((case.layout or {})["zero"]), "micro_batch": item.micro_batch,
            "recompute": LEVELS[int(item.recompute)], "layouts": item.layouts, "measured": read["date"],
            "read_from": read["url_or_repo_path"],
        })  # fmt: skip
    made.sort(key=lambda row: [str(value).zfill(12) for value in row.values()])
    write_records(path, made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table from the measured rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument("--out", type=Path, default=DATA_FILE, help="the table to write")
    chosen = parser.parse_args(arguments)
    from benchmarks.layout_regret import grids
    from benchmarks.throughput import Scored

    rows = load_rows(chosen.data)
    cases, _ = load_cases(rows, load_devices())
    cases, _ = settle([case for case in cases if case.layout is not None], load_constants())
    none = np.zeros(len(cases))
    found = fastest_of(cases, grids(Scored(cases, none, none, none)))
    write_table(found, {row["row_id"]: row for row in rows}, chosen.out)
    print(f"{len(found)} grids, {len({item.workload for _, item in found})} workloads")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
