"""What it costs to trust the model's choice of layout: `python -m benchmarks.layout_regret --data FILE`.

A grid is a set of measured rows of one source, framework, model, accelerator, cluster, precision as its publisher names
it and global batch that differ in their layout ("batch free": the global batch and the accumulation may differ too, as
a plan may choose both). Regret is the measured throughput of its best row over that of the row with the best
prediction, less 1. "All that should fit" leaves out rows that the memory model calls too big, as the search does; every
row of a grid did run. "As the search picks" also prefers a layout that was measured as the fastest for a job nearby
(`planner.performance.measured_layouts`): one of another workload, or "of other publishers" only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measured_layouts import fastest_of
from benchmarks.predict import layouts_of
from catalogs.tables.table import Bools, Floats
from planner.performance.constants import load_constants
from planner.performance.measured_layouts import MeasuredLayout, accelerator_codes, nearby, with_measured
from planner.performance.memory_risk import budget_gib, usable_gib

if TYPE_CHECKING:
    from benchmarks.measured import Case
    from benchmarks.throughput import Scored

Pick = Callable[[list[list[int]], Floats], int]
_HARDWARE = (
    "generation",
    "memory_gb_per_s",
    "accelerator_memory_gib",
    "accelerator_count",
    "internode_gbps",
    "rdma",
)
_LAYOUT = ("tp", "pp", "cp", "dp", "zero", "micro_batch", "recompute", "sequence_parallel")


def grids(scored: Scored, *, batch_free: bool = False) -> list[list[list[int]]]:
    """Grids of at least two layouts; a layout is the positions of the rows that measured it."""
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[int]]] = {}
    for position, case in enumerate(scored.cases):
        if case.layout is not None and case.accelerators > 1:
            batch = case.training.global_batch
            layout = (*(case.layout.get(name) for name in _LAYOUT), case.ep, batch)
            key = (*_key(case), 0 if batch_free else batch)
            found.setdefault(key, {}).setdefault(layout, []).append(position)
    return [list(layouts.values()) for layouts in found.values() if len(layouts) > 1]


def _key(case: Case) -> tuple[Any, ...]:
    training = case.training
    return (
        case.source, case.framework, case.model.name, case.model.params, case.accelerators, training.sequence_length,
        case.precision, training.stack, training.attention, training.lora_rank,
        case.measured.metric, *(str(case.hardware.get(name)) for name in _HARDWARE),
    )  # fmt: skip


def fitting(scored: Scored) -> Bools:
    """Rows that the memory model lets the search use."""
    constants = load_constants()
    size = np.asarray([case.hardware["accelerator_memory_gib"] for case in scored.cases], dtype=np.float64)
    rate = np.asarray([case.hardware["memory_gb_per_s"] for case in scored.cases], dtype=np.float64) * 1e9
    likely = constants.replace({"memory.oom_limit": 0.5})  # rows that ran are judged by what is likely
    allowed = budget_gib(usable_gib(size, rate, constants), likely)
    return np.asarray(~(scored.memory_gib > allowed), dtype=np.bool_)


def searched(scored: Scored, made: Sequence[list[list[int]]], others: str) -> Pick:
    """The pick of the search, with measured layouts of other `workload`s or other `publisher`s than the grid's."""
    entries = fastest_of(scored.cases, made)

    def pick(layouts: list[list[int]], hope: Floats) -> int:
        cases = [scored.cases[rows[0]] for rows in layouts]
        first = cases[0]
        own = {"workload": first.split_group, "publisher": first.group}[others]
        known: list[MeasuredLayout] = [item for _, item in entries if getattr(item, others) != own]
        best, cell = np.asarray([np.argmax(hope)]), np.zeros(len(cases), dtype=np.int64)
        clusters = np.full(len(cases), float(first.accelerators))
        code = accelerator_codes().get(str(first.hardware["accelerator"]), 0.0)
        alike = nearby(first.model, first.training, known)
        codes, times = np.full(len(cases), code), 1.0 / np.maximum(hope, 1e-300)
        return int(with_measured(alike, layouts_of(cases), clusters, codes, times, cell, best)[0])

    return pick


def _fastest(_: list[list[int]], hope: Floats) -> int:
    return int(np.argmax(hope))


def regrets(
    scored: Scored,
    usable: Bools,
    which: Sequence[list[list[int]]],
    pick: Pick = _fastest,
) -> dict[str, float]:
    """Regret over grids in %, with the regret of a pick at random beside it; `pick` chooses by predicted speeds."""
    measured, predicted = scored.measured, scored.predicted
    chosen, random, right, empty = [], [], 0, 0
    for layouts in which:
        speed = np.asarray([float(np.median(measured[rows])) for rows in layouts])
        hope = np.asarray([predicted[rows[0]] for rows in layouts])
        open_ = np.asarray([bool(usable[rows[0]]) for rows in layouts])
        if not open_.any():
            empty += 1
            continue
        picked = pick(layouts, np.where(open_, hope, 0.0))
        chosen.append(float(speed.max() / speed[picked] - 1.0) * 100.0)
        random.append(float((speed.max() / speed - 1.0).mean()) * 100.0)
        right += picked == int(np.argmax(speed))
    if not chosen:
        return {"grids": 0, "nothing fits": empty}
    return {
        "grids": len(chosen), "rows": sum(len(layouts) for layouts in which), "mean": float(np.mean(chosen)),
        "p90": float(np.quantile(chosen, 0.9)), "worst": max(chosen), "best picked": right / len(chosen),
        "at random": float(np.mean(random)), "nothing fits": empty,
    }  # fmt: skip


def layout_regret(scored: Scored) -> dict[str, dict[str, float]]:
    """Regret of the picked layouts: of all rows, of those that should fit, of larger grids, and by source."""
    made = grids(scored)
    everything, fits = np.ones(len(scored.cases), dtype=np.bool_), fitting(scored)
    large = [layouts for layouts in made if len(layouts) >= 5]
    report = {
        "all grids": regrets(scored, everything, made),
        "all that should fit": regrets(scored, fits, made),
        "all, as the search picks": regrets(scored, everything, made, searched(scored, made, "workload")),
        "as the search picks": regrets(scored, fits, made, searched(scored, made, "workload")),
        "as the search picks, of other publishers": regrets(
            scored, fits, made, searched(scored, made, "publisher")
        ),
        "grids of 5 layouts and more": regrets(scored, everything, large),
    }
    report |= _by_source(scored, everything, made, "source")
    free = grids(scored, batch_free=True)
    report["batch free: all grids"] = regrets(scored, everything, free)
    vtrain = [layouts for layouts in free if scored.cases[layouts[0][0]].source.startswith("vTrain")]
    report["batch free: vTrain"] = regrets(scored, everything, vtrain)
    return report | _by_source(scored, everything, free, "batch free")


def _by_source(
    scored: Scored, usable: Bools, made: Sequence[list[list[int]]], label: str
) -> dict[str, dict[str, float]]:
    """Regret by source, of those with at least two grids."""
    own: dict[str, list[list[list[int]]]] = {}
    for layouts in made:
        own.setdefault(scored.cases[layouts[0][0]].source, []).append(layouts)
    return {
        f"{label}: {name}": regrets(scored, usable, own[name]) for name in sorted(own) if len(own[name]) > 1
    }


def regret_lines(report: dict[str, dict[str, float]]) -> list[str]:
    """The report as text."""
    lines = [
        f"{'layout regret in %':46} {'grids':>6} {'mean':>7} {'p90':>7} {'worst':>7} {'random':>7} {'best':>6}"
    ]
    for name, value in report.items():
        if value["grids"]:
            lines.append(
                f"{name[:46]:46} {value['grids']:6.0f} {value['mean']:7.2f} {value['p90']:7.2f} {value['worst']:7.1f}"
                f" {value['at random']:7.1f} {value['best picked']:6.0%}"
            )
    unfit = report["all that should fit"]["nothing fits"]
    return [*lines, f"grids where the memory model lets no layout run: {unfit:.0f}"] if unfit else lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    from benchmarks.throughput import score_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of dev.csv")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--leave-source-out", action="store_true", help="refit without each group of sources")
    chosen = parser.parse_args(arguments)
    scored, _ = score_file(chosen.data, chosen.leave_source_out)
    report = layout_regret(scored)
    print("\n".join(regret_lines(report)))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
