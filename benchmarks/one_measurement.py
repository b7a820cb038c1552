"""What one measurement of the user is worth: `python -m benchmarks.one_measurement --data FILE [--fit]`.

Rows of one source table with the same model, accelerator (generation and memory), precision and software stack are one
user's runs. Every row of a group in turn is taken as the user's only measurement and all others of the group are
predicted after calibration with it; a row's error is the mean over those choices, a group's error the mean over its
rows. `nearest` measures once too, but where the user would: at the point most alike to the one to predict.

`--fit` finds the figures of the correlation (planner/data/calibration.csv) and prints the error on sources that were
not in their fit; `--leave-source-out` takes the residuals of the model fitted without each source (slow).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.rows import read_csv, write_records
from catalogs.tables.table import Bools, Floats, Ints
from planner.calibration.kernel import DATA_FILE, Points, correlation, load_prior, spread_ratio
from planner.normal import Z80

if TYPE_CHECKING:
    from benchmarks.measured import Case
    from benchmarks.throughput import Scored

FITTED = (
    "between_points", "decay.accelerators", "decay.units_per_accelerator", "decay.sequence", "decay.memory_rate",
    "decay.other_precision", "decay.other_model",
)  # fmt: skip
MAX_PAIRS = 200
FOLDS = 5


def points_of(cases: Sequence[Case]) -> Points:
    """Where the rows were measured."""
    rows = [
        (
            case.accelerators,
            case.training.global_batch * case.training.sequence_length / case.accelerators,
            case.training.sequence_length,
            float(case.hardware["memory_gb_per_s"]),
        )
        for case in cases
    ]
    numbers = np.asarray(rows, dtype=np.float64).reshape(-1, 4)
    return Points(
        *(numbers[:, k] for k in range(4)),
        np.asarray([f"{case.model.name}|{case.training.lora_rank}" for case in cases], dtype=object),
        np.asarray([case.training.precision for case in cases], dtype=object),
    )


def groups_of(cases: Sequence[Case]) -> dict[tuple[str, ...], list[int]]:
    """Rows of one user: source table, model, accelerator, precision and stack; only groups of two and more."""
    found: dict[tuple[str, ...], list[int]] = {}
    for position, case in enumerate(cases):
        memory = f"{case.hardware['accelerator_memory_gib']:g}"
        key = (
            case.source,
            case.model.name,
            case.generation,
            memory,
            case.training.precision,
            case.training.stack,
        )
        found.setdefault(key, []).append(position)
    return {key: rows for key, rows in found.items() if len(rows) > 1}


def _take(points: Points, rows: Sequence[int]) -> Points:
    at = np.asarray(rows, dtype=np.int64)
    return Points(*(getattr(points, name)[at] for name in Points.__dataclass_fields__))


def after_one_measurement(scored: Scored, prior: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Errors of the rows of each group before and after calibration with one other row of it.

    Args:
        scored: predictions beside measurements.
        prior: figures of the correlation, the bundled ones by default.

    Returns:
        `before`, `after`, `plain multiplier` and `nearest`, each with n (groups), mape, median and p90 over groups in
        percent, `after by row` over rows, and `interval coverage` of the narrowed 80 % interval.
    """
    prior = dict(prior or load_prior())
    points = points_of(scored.cases)
    residual = np.log(scored.predicted / scored.measured)
    sigma = scored.spread / Z80
    groups = groups_of(scored.cases)
    figures: dict[str, list[float]] = {
        name: [] for name in ("before", "plain multiplier", "after", "nearest")
    }
    by_row: list[float] = []
    inside: list[float] = []
    for rows in groups.values():
        own, gap = _take(points, rows), residual[rows]
        same = _same_layout([scored.cases[row] for row in rows])
        weight, alike, spread = _pairs(own, gap, sigma[rows], same, prior)
        left = gap[None, :] - weight * gap[:, None]
        off = ~np.eye(len(rows), dtype=np.bool_)
        error = np.where(off, _ape(left), 0.0).sum(axis=0) / (len(rows) - 1)
        plain = np.where(off, _ape(gap[None, :] - gap[:, None]), 0.0).sum(axis=0) / (len(rows) - 1)
        best = np.argmax(np.where(off, alike, -1.0), axis=0)
        figures["before"].append(float(_ape(gap).mean()))
        figures["after"].append(float(error.mean()))
        figures["plain multiplier"].append(float(plain.mean()))
        figures["nearest"].append(float(_ape(left[best, np.arange(len(rows))]).mean()))
        by_row += error.tolist()
        inside.append(float((np.abs(left) <= scored.spread[rows][None, :] * spread)[off].mean()))
    out: dict[str, Any] = {name: _summary(values) for name, values in figures.items()}
    out["after by row"] = _summary(by_row)
    out["interval coverage"] = float(np.mean(inside)) if inside else None
    return out


def _pairs(
    own: Points, gap: Floats, sigma: Floats, same_layout: Bools, prior: Mapping[str, float]
) -> tuple[Floats, Floats, Floats]:
    """Weight of measurement i for row j, their correlation, and what is left of the spread; shape `(n, n)` each.

    As in `planner.calibration.correction`, a measurement that surprises more than the model's spread is believed.
    """
    alike = correlation(own, own, prior)
    believed = np.maximum(sigma, np.abs(gap))[:, None]
    weight = alike / (1.0 + (prior["run_to_run"] / believed) ** 2)
    repeated = (alike >= 1.0) & same_layout
    left = spread_ratio(1.0 - weight * alike, alike, repeated, prior)
    return weight, alike, np.minimum(left * believed / sigma[:, None], 1.0)


def _same_layout(cases: Sequence[Case]) -> Bools:
    """Which rows of a group ran with equal layouts, shape `(n, n)`."""
    codes: dict[str, int] = {}
    number = np.asarray([codes.setdefault(f"{case.layout} {case.ep}", len(codes)) for case in cases])
    return np.asarray(number[:, None] == number[None, :], dtype=np.bool_)


def _ape(log_error: Floats) -> Floats:
    """Absolute percentage error of predicted over measured."""
    return np.abs(np.exp(log_error) - 1.0) * 100.0


def _summary(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"n": 0}
    found = np.asarray(values)
    return {
        "n": len(found), "mape": float(found.mean()), "median": float(np.median(found)),
        "p90": float(np.quantile(found, 0.9)),
    }  # fmt: skip


@dataclass(frozen=True)
class Pairs:
    """Ordered pairs of rows of one source on one accelerator generation; each target cell has the weight 1."""

    first: Ints
    second: Ints
    weight: Floats


def make_pairs(cases: Sequence[Case]) -> Pairs:
    """Pairs to learn from; at most `MAX_PAIRS` per target cell, evenly spaced, so that grids do not drown the rest."""
    users: dict[tuple[str, ...], list[int]] = {}
    for position, case in enumerate(cases):
        key = (case.source, case.training.stack, case.generation, case.kind)
        users.setdefault(key, []).append(position)
    first: list[int] = []
    second: list[int] = []
    weight: list[float] = []
    for rows in users.values():
        cells: dict[tuple[bool, bool, str, str], list[tuple[int, int]]] = {}
        for i in rows:
            for j in rows:
                if i != j:
                    a, b = cases[i], cases[j]
                    alike = (a.model.name == b.model.name, a.training.precision == b.training.precision)
                    cells.setdefault((*alike, b.model.name, b.training.precision), []).append((i, j))
        for pairs in cells.values():
            chosen = pairs[:: -(-len(pairs) // MAX_PAIRS)]
            first += [i for i, _ in chosen]
            second += [j for _, j in chosen]
            weight += [1.0 / len(chosen)] * len(chosen)
    return Pairs(np.asarray(first), np.asarray(second), np.asarray(weight))


def fit_prior(scored: Scored, pairs: Pairs, start: Mapping[str, float]) -> dict[str, float]:
    """Figures that predict one row best from another of the same source: least absolute log error, weakly held."""
    points = points_of(scored.cases)
    residual = np.log(scored.predicted / scored.measured)
    measured, target = _take(points, pairs.first.tolist()), _take(points, pairs.second.tolist())
    log_gap = np.stack(
        [
            np.abs(np.log2(getattr(measured, name)) - np.log2(getattr(target, name)))
            for name in ("accelerators", "units", "sequence", "memory_rate")
        ]
        + [
            (measured.precision != target.precision).astype(float),
            (measured.model != target.model).astype(float),
        ]
    )
    centre = np.log([start[name] for name in FITTED])

    def loss(x: Floats) -> float:
        figures = np.exp(x)
        trust = np.exp(-figures[1:] @ log_gap) / (1.0 + figures[0])
        error = np.abs(residual[pairs.second] - trust * residual[pairs.first])
        held = 1e-4 * float(((x - centre) ** 2).sum())
        return float(error @ pairs.weight / pairs.weight.sum()) + held

    found = minimize(loss, centre, method="L-BFGS-B", options={"maxiter": 60})
    return {**start, **dict(zip(FITTED, np.exp(found.x).tolist(), strict=True))}


def fit_spread_scale(scored: Scored, prior: Mapping[str, float]) -> float:
    """Widening of the calibrated interval with which it covers 80 % of the rows, every group counting once."""
    points, residual = points_of(scored.cases), np.log(scored.predicted / scored.measured)
    ratio: list[float] = []
    share: list[float] = []
    for rows in groups_of(scored.cases).values():
        own, gap, spread = _take(points, rows), residual[rows], scored.spread[rows]
        same = _same_layout([scored.cases[row] for row in rows])
        weight, alike, left = _pairs(own, gap, spread / Z80, same, {**prior, "spread_scale": 1.0})
        other = ~((alike >= 1.0) & same)
        found = (np.abs(gap[None, :] - weight * gap[:, None]) / (spread[None, :] * left))[other]
        ratio += found.tolist()
        share += [1.0 / max(len(found), 1)] * len(found)
    order = np.argsort(ratio)
    reached = np.cumsum(np.asarray(share)[order]) / sum(share)
    return float(np.asarray(ratio)[order][np.searchsorted(reached, 0.8)])


def across_sources(scored: Scored, start: Mapping[str, float]) -> dict[str, Any]:
    """`after_one_measurement` of each source with figures fitted on other sources."""
    names = sorted({case.group for case in scored.cases})
    parts: list[dict[str, Any]] = []
    for fold in range(FOLDS):
        out = set(names[fold::FOLDS])
        rest = _select(scored, lambda case, out=out: case.group not in out)
        held = _select(scored, lambda case, out=out: case.group in out)
        parts.append(after_one_measurement(held, fit_prior(rest, make_pairs(rest.cases), start)))
    n = sum(part["after"]["n"] for part in parts)
    return {"n": n, "mape": sum(part["after"]["n"] * part["after"].get("mape", 0.0) for part in parts) / n}


def _select(scored: Scored, keep: Callable[[Case], bool]) -> Scored:
    from dataclasses import replace

    at = np.asarray([position for position, case in enumerate(scored.cases) if keep(case)], dtype=np.int64)
    return replace(
        scored, cases=[scored.cases[p] for p in at], predicted=scored.predicted[at],
        memory_gib=scored.memory_gib[at], spread=scored.spread[at],
    )  # fmt: skip


def write_prior(prior: Mapping[str, float], path: Path = DATA_FILE) -> None:
    """Rewrite the fitted figures in place."""
    rows = read_csv(path)
    for row in rows:
        if row["name"] in (*FITTED, "spread_scale"):
            value = min(max(prior[row["name"]], float(row["lower"])), float(row["upper"]))
            row["value"] = f"{value:.3g}"
    write_records(path, rows)


def render(figures: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text."""
    lines = []
    for name in ("before", "plain multiplier", "after", "nearest", "after by row"):
        found = figures[name]
        if found["n"]:
            what = "rows" if name == "after by row" else "groups"
            lines.append(
                f"one measurement, {name:18} {found['n']:6} {what:6} MAPE {found['mape']:6.1f}"
                f"  median {found['median']:6.1f}  p90 {found['p90']:6.1f}"
            )
    if figures["interval coverage"] is not None:
        lines.append(f"one measurement, 80 % interval covers {figures['interval coverage']:.0%}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, or fit the figures of the correlation."""
    from benchmarks.throughput import score_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of dev.csv")
    parser.add_argument("--leave-source-out", action="store_true", help="residuals with each source left out")
    parser.add_argument("--fit", action="store_true", help="fit and rewrite planner/data/calibration.csv")
    chosen = parser.parse_args(arguments)
    scored, _ = score_file(chosen.data, chosen.leave_source_out)
    if chosen.fit:
        prior = fit_prior(scored, make_pairs(scored.cases), load_prior())
        prior["spread_scale"] = fit_spread_scale(scored, prior)
        held = across_sources(scored, load_prior())
        write_prior(prior)
        load_prior.cache_clear()
        print(f"figures fitted on other sources: {held['n']} groups, MAPE {held['mape']:.1f}")
    print("\n".join(render(after_one_measurement(scored))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
