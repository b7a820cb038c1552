"""Judge the memory model on measured rows: error of stated peaks, out-of-memory recall and false alarms.

Every row that ran fitted into its accelerators, so each one whose layout is stated in full is evidence on false alarms.
A row is named out of memory when its probability exceeds `memory.oom_alarm`; plans are more cautious
(`memory.oom_limit`), which is scored as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.error_figures import errors
from benchmarks.measured import THROUGHPUT, Case, load_cases
from benchmarks.predict import layouts_of
from catalogs.tables.table import Bools, Floats
from planner.performance.constants import Constants
from planner.performance.layouts import Layouts
from planner.performance.memory import FULL, PARTS, levels_gib, needed_parts
from planner.performance.memory_risk import oom_probability, usable_gib
from planner.performance.memory_work import Footprint, stack_footprints

OOM = "oom"


@dataclass(frozen=True)
class MemoryRows:
    """Cases with a known layout, those that ran first, and why others are left out."""

    cases: list[Case]
    left_out: Counter[str]

    def flags(self, test: Any) -> Bools:
        """`test(case)` of every case, shape `(n_cases,)`."""
        return np.asarray([bool(test(case)) for case in self.cases])

    @property
    def stated_gib(self) -> Floats:
        """Measured peak per accelerator, NaN where not stated."""
        return np.asarray([case.measured.memory_gib for case in self.cases])


@dataclass(frozen=True)
class Need:
    """Predicted GiB per case: on the device, as the row's source counts, available, and at full recompute."""

    device: Floats
    counted: Floats
    available: Floats
    full_recompute: Floats


def load_memory_rows(rows: list[dict[str, str]]) -> MemoryRows:
    """All rows whose layout and batch are known, whatever they measure."""
    cases, skipped = load_cases(rows, load_devices(), THROUGHPUT | {OOM})
    left_out: Counter[str] = Counter(skipped)
    kept = []
    for case in cases:
        settled = _settled(case)
        if isinstance(settled, str):
            left_out[("out of memory: " if case.measured.metric == OOM else "") + settled] += 1
        else:
            kept.append(settled)
    kept.sort(key=lambda case: case.measured.metric == OOM)
    return MemoryRows(kept, left_out)


def _settled(case: Case) -> Case | str:
    layout = case.layout
    if layout is None:
        return "layout not stated"
    if case.memory.batch_stated:
        return case
    if case.memory.stages_of_batch and layout["pp"] > 1:
        micro = max(1.0, case.training.global_batch / (layout["dp"] * layout["pp"]))
        return replace(case, layout={**layout, "micro_batch": micro})
    return "micro-batch not stated"


@dataclass(frozen=True)
class Block:
    """Cases of one kind and stack, ready for prediction with any constants."""

    positions: list[int]
    job: Footprint
    layout: Layouts
    stack: str


def prepare(cases: Sequence[Case]) -> list[Block]:
    """Group cases for `predict_memory`."""
    keys: dict[tuple[bool, str], list[int]] = {}
    for position, case in enumerate(cases):
        keys.setdefault((case.kind == "transformer", case.training.stack), []).append(position)
    blocks = []
    for (_, stack), positions in keys.items():
        chosen = [cases[p] for p in positions]
        job = stack_footprints([(case.model, case.training) for case in chosen])
        blocks.append(Block(positions, job, layouts_of(chosen), stack))
    return blocks


def predict_memory(cases: Sequence[Case], c: Constants, blocks: Sequence[Block] | None = None) -> Need:
    """Predicted memory of cases from their inputs, each of shape `(n_cases,)`; `blocks` saves preparing them."""
    out = {name: np.full(len(cases), np.nan) for name in ("device", "counted", "full")}
    how = np.asarray([case.memory.convention for case in cases])
    for block in prepare(cases) if blocks is None else blocks:
        parts = needed_parts(block.job, block.layout, c)
        total = np.sum([parts[name] for name in PARTS], axis=0)
        framework = total - parts["runtime_gib"]
        waste = 1.0 + c.of_stack("memory.fragmentation_ratio", block.stack)
        own = how[block.positions]
        counted = np.select([own == "allocated", own == "reserved"], [framework / waste, framework], total)
        out["device"][block.positions], out["counted"][block.positions] = total, counted
        out["full"][block.positions] = levels_gib(block.job, block.layout, [FULL], c)[0]
    nominal = np.asarray([case.hardware["accelerator_memory_gib"] for case in cases])
    rate = np.asarray([case.hardware["memory_gb_per_s"] for case in cases]) * 1e9
    return Need(out["device"], out["counted"], usable_gib(nominal, rate, c), out["full"])


def memory_score(rows: list[dict[str, str]], c: Constants, leave_source_out: bool = False) -> dict[str, Any]:
    """All memory figures of a file of measured rows, if wanted with constants fitted on the other publishers' rows."""
    chosen = load_memory_rows(rows)
    if not chosen.cases:
        return {"n": 0, "left out": dict(chosen.left_out)}
    if leave_source_out:
        from benchmarks.memory_fit import leave_publishers_out

        return summarise(chosen, leave_publishers_out(chosen, c), c)
    return summarise(chosen, predict_memory(chosen.cases, c), c)


def summarise(rows: MemoryRows, need: Need, c: Constants) -> dict[str, Any]:
    """Errors of stated peaks, out-of-memory recall, false alarms, with counts."""
    stated = rows.stated_gib
    known = np.isfinite(stated) & (stated > 0)
    groups = np.asarray([case.source.split(" (")[0] for case in rows.cases])
    oom = rows.flags(lambda case: case.measured.metric == OOM)
    whole = rows.flags(lambda case: case.memory.recompute_stated)
    risk = oom_probability(need.device, need.available, c)
    alarm = risk > c["memory.oom_alarm"]
    # Without a stated level the run recomputed as much as it had to.
    least = oom_probability(need.full_recompute, need.available, c) > c["memory.oom_alarm"]
    ran = ~oom
    return {
        **errors(need.counted[known], stated[known]),
        "sources": {
            name: errors(need.counted[known & (groups == name)], stated[known & (groups == name)])
            for name in sorted(set(groups[known]))
        },
        "out of memory": {"n": int(oom.sum()), "recall": _share(alarm[oom]), "mean probability": _share(risk[oom]),
                          "recall at the limit of plans": _share((risk > c["memory.oom_limit"])[oom])},
        "false alarms": {
            "all rows that ran": {"n": int((ran & whole).sum()), "ratio": _share(alarm[ran & whole])},
            "with a stated peak": {"n": int((ran & known).sum()), "ratio": _share(alarm[ran & known])},
            "recompute not stated": {"n": int((ran & ~whole).sum()), "ratio": _share(least[ran & ~whole])},
            "mean probability": _share(risk[ran & whole]),
            "at the limit of plans": _share((risk > c["memory.oom_limit"])[ran & whole]),
        },
        "false alarms by source": {
            name: {"n": int((ran & whole & (groups == name)).sum()),
                   "alarms": int((alarm & ran & whole & (groups == name)).sum())}
            for name in sorted(set(groups[alarm & ran & whole]))
        },
        "left out": dict(rows.left_out),
    }  # fmt: skip


def _share(values: Floats | Bools) -> float | None:
    return float(np.mean(values)) if len(values) else None


def lines(score: dict[str, Any]) -> list[str]:
    """The figures as lines of a report."""
    if not score.get("n"):
        return ["memory per accelerator: no row states it"]

    def line(name: str, part: dict[str, float]) -> str:
        return (f"{name[:46]:46} {part['n']:6.0f} {part['mape']:7.1f} {part['median']:7.1f} {part['p90']:7.1f}"
                f" {part['bias']:6.2f}")  # fmt: skip

    def rate(part: dict[str, Any], name: str) -> str:
        return "none" if part[name] is None else f"{part[name]:.1%} of {part['n']}"

    alarms = score["false alarms"]
    return [
        line("memory per accelerator", score),
        *(line("  " + name, part) for name, part in score["sources"].items()),
        f"out of memory recalled: {rate(score['out of memory'], 'recall')}",
        f"false out of memory: {rate(alarms['all rows that ran'], 'ratio')} that ran; "
        f"with a stated peak {rate(alarms['with a stated peak'], 'ratio')}; "
        f"recompute not stated {rate(alarms['recompute not stated'], 'ratio')}",
    ]


def main() -> int:
    """Print the figures of one file."""
    import argparse
    import json
    from pathlib import Path

    from benchmarks.rows import read_csv
    from planner.performance.constants import load_constants

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of dev.csv")
    chosen = parser.parse_args()
    score = memory_score(read_csv(chosen.data), load_constants())
    print("\n".join(lines(score)))
    print(json.dumps({k: score[k] for k in ("false alarms by source", "left out")}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
