"""Judge the performance model on measured rows: `python -m benchmarks.throughput [--data FILE] [--leave-source-out]`.

Every row is predicted from its inputs only; `metric`, `value` and `notes` are read by the scoring alone. Rows that
cannot be predicted are counted by reason. With `--leave-source-out` each group of sources (rows of one publisher, see
`data/source_rules.csv`) is predicted with constants fitted on all other groups; with `--group-folds K` each fold of
workload groups (one model on one accelerator family) with constants fitted on the other folds. `--residuals` adds where
the error is. `--at-most 12.5 20` holds the medians to a limit; no test leaves publishers out, which takes minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.error_figures import errors
from benchmarks.layout_regret import layout_regret, regret_lines
from benchmarks.measured import Case, load_cases
from benchmarks.memory_score import lines as memory_lines
from benchmarks.memory_score import memory_score
from benchmarks.one_measurement import after_one_measurement
from benchmarks.one_measurement import render as one_measurement_lines
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, predict, settle, throughput
from benchmarks.residuals import residual_lines
from benchmarks.rows import read_csv
from benchmarks.workloads import predict_workloads
from catalogs.tables.table import Bools, Floats
from planner.performance.constants import load_constants

ONE_NODE = "vTrain ground truth single"
PAIR_GAP = 1.15
WIDTHS = ("thin.", "interval.", "measured.")
SEVERAL_NODES = "vTrain ground truth multi"
MAIN_PARTS = (
    "transformers", "transformers without vTrain one-node", "vTrain one-node", "vTrain multi-node", "CNN/ViT",
)  # fmt: skip


@dataclass(frozen=True)
class Scored:
    """Cases with predictions beside them, arrays of shape `(n_cases,)`; `users`: those of the users' path."""

    cases: list[Case]
    predicted: Floats
    memory_gib: Floats
    spread: Floats
    users: Scored | None = None

    @property
    def measured(self) -> Floats:
        """Measured throughput in each row's own metric."""
        return np.asarray([case.measured.value for case in self.cases])


def score_file(
    data: Path | None, leave_source_out: bool = False, group_folds: int = 0
) -> tuple[Scored, Counter[str]]:
    """Predict all usable rows of a file; the counter tells what was left out and why.

    Args:
        data: CSV with the columns of dev.csv, None for the bundled points.
        leave_source_out: predict each publisher's rows with constants fitted on the others.
        group_folds: predict each of so many folds of workload groups with constants fitted on the others; 0 for none.
    """
    constants = load_constants()
    cases, skipped = load_cases(load_rows(data), load_devices())
    if leave_source_out or group_folds:
        from benchmarks.fit_performance import load_priors
        from benchmarks.held_out import fits_without, fold_labels, source_labels

        cases, dropped = settle(cases, load_priors(constants))
        labels = source_labels(cases) if leave_source_out else fold_labels(cases, group_folds)
        fits = list(fits_without(cases, labels, constants))
    else:
        cases, dropped = settle(cases, constants)
        fits = [(list(range(len(cases))), constants)]
    skipped.update(dropped)
    rest = predict(build_groups(cases), len(cases), constants)
    # Interval widths belong to the bundled constants: a fit without some rows learns none.
    widths = {name: value for name, value in constants.values.items() if name.startswith(WIDTHS)}
    value, users, users_spread = (np.full(len(cases), np.nan) for _ in range(3))
    for out, fitted in fits:
        held = [cases[p] for p in out]
        value[out] = throughput(build_groups(held), len(held), fitted)
        asked, _ = predict_workloads(held, True, fitted.replace(widths))
        users[out], users_spread[out] = asked["value"], asked["spread"]
    known = np.isfinite(value) & (value > 0)
    skipped.update({"no prediction": int((~known).sum())} if not known.all() else {})
    at = np.flatnonzero(known)
    kept = [cases[p] for p in at]
    own = np.flatnonzero(known & np.isfinite(users))
    by_users = Scored([cases[p] for p in own], users[own], rest["memory_gib"][own], users_spread[own])
    return Scored(kept, value[at], rest["memory_gib"][at], rest["spread"][at], by_users), skipped


def summarise(scored: Scored) -> dict[str, Any]:
    """All figures of the report."""
    measured, predicted = scored.measured, scored.predicted
    masks = main_masks(scored)
    transformer, one_node = masks["transformers"], masks["vTrain one-node"]
    groups = np.asarray([case.group for case in scored.cases])

    def part(mask: Bools) -> dict[str, float]:
        return errors(predicted[mask], measured[mask])

    by_source = {}
    for name in sorted(set(groups)):
        for label, family in (("transformers", transformer), ("CNN/ViT", ~transformer)):
            if (mask := (groups == name) & family).any():
                by_source[f"{name}: {label}"] = part(mask)
    parts = {
        "transformers": transformer,
        "without vTrain one-node": transformer & ~one_node,
        "CNN/ViT": ~transformer,
    }
    medians = [v["median"] for k, v in by_source.items() if k.endswith("transformers")]
    return {
        **{name: part(mask) for name, mask in masks.items()},
        "sources": by_source,
        "users' path": _users(scored.users) if scored.users else {},
        "median of source medians (transformers)": float(np.median(medians)) if medians else None,
        "interval": {name: interval_score(scored, mask) for name, mask in parts.items() if mask.any()},
        "GPU order": pair_order(scored),
        "layout regret": layout_regret(scored),
        "one measurement": after_one_measurement(scored),
    }


def _users(scored: Scored) -> dict[str, Any]:
    """Errors and interval of the users' path, by the main parts and of transformers by publisher."""
    masks = main_masks(scored)
    transformer = masks["transformers"]
    groups = np.asarray([case.group for case in scored.cases])
    masks |= {f"  {name}": transformer & (groups == name) for name in sorted(set(groups[transformer]))}
    measured = scored.measured
    return {
        name: {**errors(scored.predicted[mask], measured[mask]), **interval_score(scored, mask)}
        for name, mask in masks.items()
        if mask.any()
    }


def main_masks(scored: Scored) -> dict[str, Bools]:
    """The main parts of the report, as masks of the cases."""
    transformer = np.asarray([case.kind == "transformer" for case in scored.cases], dtype=np.bool_)
    one_node = np.asarray([case.source.startswith(ONE_NODE) for case in scored.cases], dtype=np.bool_)
    several = np.asarray([case.source.startswith(SEVERAL_NODES) for case in scored.cases], dtype=np.bool_)
    return dict(
        zip(MAIN_PARTS, (transformer, transformer & ~one_node, one_node, several, ~transformer), strict=True)
    )


def interval_score(scored: Scored, mask: Bools) -> dict[str, float]:
    """Share of rows inside their 80 % interval, and its sharpness: the mean half-width as a factor, and the median."""
    gap = np.abs(np.log(scored.predicted[mask] / scored.measured[mask]))
    width = scored.spread[mask]
    return {
        "coverage": float((gap <= width).mean()),
        "mean_factor": float(np.exp(width).mean()),
        "median_factor": float(np.exp(np.median(width))),
    }


def pair_order(scored: Scored) -> dict[str, float]:
    """How two accelerator types on one workload compare.

    Returns:
        How often the faster one is named right where they differ by over 15 %, and the error of the ratio in percent.
    """
    same: dict[tuple[Any, ...], list[int]] = {}
    for position, case in enumerate(scored.cases):
        layout = case.layout or {}
        key = (case.source, case.model.name, case.training.sequence_length, case.training.precision,
               case.accelerators, layout.get("tp"), layout.get("pp"), case.measured.metric)  # fmt: skip
        same.setdefault(key, []).append(position)
    right = total = 0
    gaps: list[float] = []
    for positions in same.values():
        for n, first in enumerate(positions):
            for second in positions[n + 1 :]:
                if _device(scored.cases[first]) == _device(scored.cases[second]):
                    continue
                true = scored.measured[first] / scored.measured[second]
                gaps.append(abs(scored.predicted[first] / scored.predicted[second] / true - 1.0) * 100.0)
                if max(true, 1.0 / true) < PAIR_GAP:
                    continue
                total += 1
                right += bool((true > 1.0) == (scored.predicted[first] > scored.predicted[second]))
    return {
        "pairs": total, "right": right / total if total else float("nan"),
        "ratio_median": float(np.median(gaps)) if gaps else float("nan"),
        "ratio_p90": float(np.quantile(gaps, 0.9)) if gaps else float("nan"),
    }  # fmt: skip


def _device(case: Case) -> tuple[Any, ...]:
    return tuple(
        str(case.hardware[name]) for name in ("generation", "memory_gb_per_s", "accelerator_memory_gib")
    )


def peers(scored: Scored, path: Path) -> dict[str, Any]:
    """Other tools' errors and ours on the rows that they can do."""
    ours = {case.row_id: (p, case) for p, case in enumerate(scored.cases)}
    out: dict[str, Any] = {}
    rows = read_csv(path)
    for tool in sorted({row["tool"] for row in rows}):
        pairs = [(float(row["pred"]), ours[row["row_id"]][0]) for row in rows
                 if row["tool"] == tool and row["row_id"] in ours and row["pred"]]  # fmt: skip
        theirs, at = np.asarray([a for a, _ in pairs]), np.asarray([b for _, b in pairs], dtype=np.int64)
        measured = scored.measured[at]
        out[tool] = {"theirs": errors(theirs, measured), "ours": errors(scored.predicted[at], measured)}
    return out


def render(report: dict[str, Any], skipped: Counter[str]) -> str:
    """The report as text."""
    lines = [f"{'rows':46} {'n':>6} {'MAPE':>7} {'median':>7} {'p90':>7} {'bias':>6}"]
    lines += [_line(name, report[name]) for name in MAIN_PARTS]
    lines += [_line(f"users' path: {name}", value) for name, value in report["users' path"].items()]
    lines += [
        f"80 % interval, users' path, {name}: covers {value['coverage']:.1%},"
        f" half-width x {value['mean_factor']:.2f} mean"
        for name, value in report["users' path"].items()
    ]
    lines += [_line("  " + name, value) for name, value in report["sources"].items()]
    lines += memory_lines(report["memory"])
    for tool, both in report.get("peers", {}).items():
        lines += [
            _line(f"{tool} on its rows", both["theirs"]),
            _line(f"  ours on {tool}'s rows", both["ours"]),
        ]
    median = report["median of source medians (transformers)"]
    lines.append(f"median of source medians (transformers): {'-' if median is None else f'{median:.1f} %'}")
    lines += [
        f"80 % interval, {name}: covers {v['coverage']:.1%}, half-width x {v['mean_factor']:.2f} mean,"
        f" x {v['median_factor']:.2f} median"
        for name, v in report["interval"].items()
    ]
    order = report["GPU order"]
    if order["pairs"]:
        lines.append(
            f"GPU order right: {order['right']:.1%} of {order['pairs']} pairs that differ by over 15 %"
        )
        lines.append(
            f"error of the ratio of two GPUs: median {order['ratio_median']:.1f} %, p90 {order['ratio_p90']:.1f} %"
        )
    else:
        lines.append("GPU order right: no two GPU types on one workload that differ by over 15 %")
    lines += one_measurement_lines(report["one measurement"])
    lines += regret_lines(report["layout regret"])
    lines.append(f"rows left out: {sum(skipped.values())}")
    lines += [f"  {count:5d}  {reason}" for reason, count in skipped.most_common()]
    return "\n".join(lines)


def _line(name: str, value: dict[str, float]) -> str:
    if not value.get("n"):
        return f"{name:46} {0:6d}"
    return (
        f"{name[:46]:46} {value['n']:6.0f} {value['mape']:7.1f} {value['median']:7.1f} {value['p90']:7.1f}"
        f" {value['bias']:6.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument(
        "--leave-source-out", action="store_true", help="refit without each group of sources in turn"
    )
    parser.add_argument(
        "--group-folds", type=int, default=0, metavar="K", help="refit without each fold in turn"
    )
    parser.add_argument(
        "--residuals", action="store_true", help="also print the error by source, GPU, layout and size"
    )
    parser.add_argument(
        "--at-most", type=float, nargs=2, metavar=("TRANSFORMERS", "VISION"),
        help="exit code 1 where a median error in %% is above these",
    )  # fmt: skip
    parser.add_argument("--peers", type=Path, help="CSV of other tools' predictions (row_id, tool, pred)")
    chosen = parser.parse_args(arguments)
    try:
        rows = load_rows(chosen.data)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        parser.error(f"--data {chosen.data} cannot be read as CSV: {error}")
    scored, skipped = score_file(chosen.data, chosen.leave_source_out, chosen.group_folds)
    report = summarise(scored)
    report["memory"] = memory_score(rows, load_constants(), chosen.leave_source_out)
    if chosen.peers:
        report["peers"] = peers(scored, chosen.peers)
    print(render(report, skipped))
    if chosen.residuals:
        print("\n".join(residual_lines(scored)))
    if chosen.json:
        report["left out"] = dict(skipped)
        report["rows"] = {
            case.row_id: float(p) for case, p in zip(scored.cases, scored.predicted, strict=True)
        }
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if chosen.at_most is None else int(_above(report, *chosen.at_most))


def _above(report: dict[str, Any], transformers: float, vision: float) -> bool:
    """Whether a median error of the report, in %, is above its limit; what has no rows has no error."""
    limits = {"transformers": transformers, "CNN/ViT": vision}
    return any(report[name]["n"] and not report[name]["median"] <= most for name, most in limits.items())


if __name__ == "__main__":
    raise SystemExit(main())
