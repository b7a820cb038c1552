"""Fit the memory constants: `python -m benchmarks.memory_fit [--data FILE] [--out FILE]`.

Stated peaks pull both ways; a row that only ran says no more than that its need was below what the accelerator has, and
a row that ran out of memory the reverse. Constants whose provenance starts with `peaks` move within their bounds, held
by their priors (`data/memory_priors.csv`: physical counts, never an earlier fit). No constant belongs to a row or to a
source. The spread of the residuals is taken with whole sources left out.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.memory_score import (
    OOM,
    MemoryRows,
    Need,
    load_memory_rows,
    predict_memory,
    prepare,
    summarise,
)
from benchmarks.points import load_rows
from benchmarks.rows import read_csv, write_records
from benchmarks.scatter import scatter_svg
from catalogs.tables.table import Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants

FILE = DIRECTORY / "memory.csv"
PRIORS = Path(__file__).resolve().parent / "data" / "memory_priors.csv"
MARK = "peaks"
# Scale of the robust loss, weight of one-sided evidence, and how many rows a prior is worth.
LOSS_SCALE = 0.1
ONE_SIDED = 0.5
PRIOR_ROWS = 2.0


def publisher(source: str) -> str:
    """Sources of one publisher are left out together."""
    return source.split(" ")[0].split("/")[0]


def fit_memory(rows: MemoryRows, keep: Sequence[bool], start: Constants, file: Path = FILE) -> Constants:
    """Constants fitted to the rows marked in `keep`."""
    free = [row for row in read_csv(file) if row["provenance"].startswith(MARK)]
    names = [row["name"] for row in free]
    priors = {row["name"]: float(row["prior"]) for row in read_csv(PRIORS)}
    low = np.log([max(float(row["lower"]), 1e-3) for row in free])
    high = np.log([float(row["upper"]) for row in free])
    centre = np.clip(np.log([max(priors[name], 1e-3) for name in names]), low + 1e-6, high - 1e-6)
    width = (high - low) / 4.0
    chosen = MemoryRows(
        [case for case, wanted in zip(rows.cases, keep, strict=True) if wanted], rows.left_out
    )
    weights, blocks = np.sqrt(_weights(chosen)), prepare(chosen.cases)

    def residuals(x: Floats) -> Floats:
        trial = start.replace(dict(zip(names, np.exp(x).tolist(), strict=True)))
        gap = _gaps(chosen, predict_memory(chosen.cases, trial, blocks)) / LOSS_SCALE
        soft = np.sign(gap) * np.sqrt(2.0 * (np.sqrt(1.0 + gap * gap) - 1.0))
        return np.concatenate([weights * soft, math.sqrt(PRIOR_ROWS) * (x - centre) / width])

    found = least_squares(residuals, centre, bounds=(low, high), diff_step=1e-3, max_nfev=30, xtol=1e-4)
    return start.replace(dict(zip(names, np.exp(found.x).tolist(), strict=True)))


def _gaps(rows: MemoryRows, need: Need) -> Floats:
    """Log ratio of stated peaks; of other rows only what contradicts that they ran, or ran out of memory."""
    stated = rows.stated_gib
    known = np.isfinite(stated) & (stated > 0)
    oom = rows.flags(lambda case: case.measured.metric == OOM)
    whole = rows.flags(lambda case: case.memory.recompute_stated)
    over = np.log(np.where(whole, need.device, need.full_recompute) / need.available)
    one_sided = ONE_SIDED * np.where(oom, np.minimum(over, 0.0), np.maximum(over, 0.0))
    result: Floats = np.where(known, np.log(need.counted / np.where(known, stated, 1.0)), one_sided)
    return result


def _weights(rows: MemoryRows) -> Floats:
    """Weights that keep large sources and long tables of one model from drowning the rest."""
    keys = [(publisher(case.source), math.isfinite(case.measured.memory_gib)) for case in rows.cases]
    models = [(*key, case.split_group) for key, case in zip(keys, rows.cases, strict=True)]
    by_key, by_model = Counter(keys), Counter(models)
    raw = np.asarray([by_key[k] ** -0.25 * by_model[m] ** -0.25 for k, m in zip(keys, models, strict=True)])
    # Neighbours in one table tell little more than one of them.
    return np.asarray(raw, dtype=np.float64)


def leave_publishers_out(rows: MemoryRows, start: Constants) -> Need:
    """Every row predicted with constants fitted on the other publishers' rows."""
    size = len(rows.cases)
    parts = {name: np.full(size, np.nan) for name in ("device", "counted", "available", "full_recompute")}
    names = np.asarray([publisher(case.source) for case in rows.cases])
    informative = rows.flags(
        lambda case: math.isfinite(case.measured.memory_gib) or case.measured.metric == OOM
    )
    every = fit_memory(rows, [True] * size, start)
    for name in sorted(set(names)):
        out = names == name
        # A publisher that states no peak has one-sided evidence only; leaving it out moves little but is done as well.
        fitted = (
            fit_memory(rows, (~out).tolist(), start) if (informative & out).any() or out.sum() > 50 else every
        )
        need = predict_memory([case for case, left in zip(rows.cases, out, strict=True) if left], fitted)
        for field in parts:
            parts[field][out] = getattr(need, field)
    return Need(**parts)


def spread_of(rows: MemoryRows, need: Need) -> float:
    """Scale of a logistic distribution of log(measured / predicted), from its median absolute deviation."""
    stated = rows.stated_gib
    known = np.isfinite(stated) & (stated > 0)
    gap = np.abs(np.log(need.counted[known] / stated[known]))
    return float(np.median(gap) / math.log(3.0))


def plot(rows: MemoryRows, need: Need) -> str:
    """Stated peaks against predictions by source, as SVG."""
    stated = rows.stated_gib
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for position, case in enumerate(rows.cases):
        if math.isfinite(stated[position]):
            predicted, measured = groups.setdefault(case.source.split(" (")[0], ([], []))
            predicted.append(float(need.counted[position]))
            measured.append(float(stated[position]))
    return scatter_svg(groups, "Peak memory per accelerator, publisher left out", "GiB")


def write_constants(constants: Constants, file: Path, measured: dict[str, float]) -> None:
    """Rewrite fitted values and the spread in place."""
    rows = read_csv(file)
    for row in rows:
        if row["provenance"].startswith(MARK):
            row["value"] = f"{constants[row['name']]:.4g}"
        if row["name"] in measured:
            row["value"] = f"{measured[row['name']]:.4g}"
    write_records(file, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and write, then print the figures in the fit and with publishers left out."""
    from benchmarks.memory_score import lines

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument(
        "--plot", type=Path, help="write measured against predicted, publishers left out, as SVG"
    )
    chosen = parser.parse_args(arguments)
    start = load_constants()
    rows = load_memory_rows(load_rows(chosen.data))
    left_out = leave_publishers_out(rows, start)
    spread = {"memory.spread": spread_of(rows, left_out)}
    fitted = fit_memory(rows, [True] * len(rows.cases), start).replace(spread)
    write_constants(fitted, chosen.out, spread)
    if chosen.plot:
        chosen.plot.write_text(plot(rows, left_out), encoding="utf-8")
    for name, need in (("in the fit", predict_memory(rows.cases, fitted)), ("publisher left out", left_out)):
        print(name)
        print("\n".join(lines(summarise(rows, need, fitted))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
