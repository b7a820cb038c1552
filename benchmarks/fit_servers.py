"""Fit the rows of engines.csv that no shared row measures, vLLM since 0.6, on published rates of its servers.

Each publisher is left out in turn. The rates are those of `benchmarks.other_inference`, each predicted from a
workload: dense models in vLLM's default mode, on AMD's chips with the factors that the shared rows gave them.
Publishers weigh alike, a soft-L1 loss holds single rows back, and a ridge pulls towards TensorRT-LLM's figures of
2025. Mixtures of experts and SGLang are not fitted: they show whether the figures hold elsewhere, and count in the
width of the intervals, as do the publishers that were left out.

    python -m benchmarks.fit_servers [--write]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from benchmarks.error_figures import errors
from benchmarks.other_inference import FILE, LATER, Asked, read
from benchmarks.rows import read_csv, write_records
from catalogs.tables.table import Floats, Ints
from planner.performance.constants import DIRECTORY
from planner.performance.inference.beyond import prompt_ratio
from planner.performance.inference.chips import SETTLED
from planner.performance.inference.engines import EngineRow, find_engine, load_engines

Indices = Ints
FITTED = (("vllm_v0", 2025), ("vllm", 2025), ("vllm", 2026))
# Engines that take the figures of a fitted one, as their own rows are few, but not its longest prompts.
LIKE = {("sglang", 2025): ("vllm", 2025), ("sglang", 2026): ("vllm", 2026)}
COLUMNS = ("compute", "bandwidth", "step_s", "sequence_s")
# Shares of peak and bandwidth, seconds of a step and of a sequence in it, and how hard they pull (in log).
START, PULL = (0.567, 0.783, 2e-3, 1e-5), (1.5, 2.0, 1.0, 0.5)
SCATTER = 0.25
# The least half-width in log.
LEAST = 0.1
SOURCE = "python -m benchmarks.fit_servers"


class Published:
    """The published rows of one engine and year; `fitted`: positions of those that are fitted."""

    def __init__(self, key: tuple[str, int], rows: Sequence[Asked]) -> None:
        self.key = key
        mine = [row for row in rows if _figures(row) == key]
        self.rows = [row for row in mine if math.isfinite(row.predict())]
        self.rate = np.log([row.measured for row in self.rows])
        self.publisher = np.asarray([row.publisher for row in self.rows])
        self.fitted = np.flatnonzero([_may_be_fitted(row) for row in self.rows])

    def counts(self, at: Indices) -> Indices:
        """Those of rows `at` that count in the width: weights in MXFP4 have one of their own in older releases."""
        own = self.key[1] < SETTLED
        return np.asarray(
            [i for i in at.tolist() if not (own and self.rows[i].engine.precision == "mxfp4")], np.int64
        )

    def most_prompts(self) -> dict[tuple[str, int], float]:
        """Prompt tokens for a token of an answer, the most of the rows that are fitted and of engines `LIKE` theirs."""
        most: dict[tuple[str, int], float] = {}
        for at, row in enumerate(self.rows):
            found = find_engine(row.engine.name, row.engine.year)
            key = (found.name, found.year)
            if at in self.fitted or key in LIKE:
                most[key] = max(most.get(key, 0.0), prompt_ratio(row.requests))
        return most

    def predict(self, values: Floats, at: Indices) -> Floats:
        """Log of the rate of rows `at`."""
        with patch(
            "planner.performance.inference.engines.load_engines",
            return_value=_with_figures(self.key, np.exp(values)),
        ):
            return np.log([self.rows[index].predict() for index in at.tolist()])

    def fit(self, at: Indices) -> Floats:
        """Logs of the figures that fit rows `at`."""
        start, pull = np.log(START), np.asarray(PULL)
        count = np.asarray([(self.publisher[at] == name).sum() for name in self.publisher[at]])
        weight = np.sqrt(1.0 / count / np.mean(1.0 / count))

        def gaps(values: Floats) -> Floats:
            near = weight * (self.predict(values, at) - self.rate[at]) / SCATTER
            return np.concatenate([near, pull * (values - start)])

        return np.asarray(least_squares(gaps, start, loss="soft_l1", max_nfev=8, diff_step=0.03).x)

    def left_out(self) -> Floats:
        """Log of the rate of every fitted row, predicted with its publisher left out."""
        out, names = np.zeros(len(self.fitted)), self.publisher[self.fitted]
        for name in sorted(set(names.tolist())):
            out[names == name] = self.predict(
                self.fit(self.fitted[names != name]), self.fitted[names == name]
            )
        return out


def _figures(row: Asked) -> tuple[str, int]:
    """The engine and year whose figures a row shows."""
    found = find_engine(row.engine.name, row.engine.year)
    key = (found.name, found.year)
    return LIKE.get(key, key)


def _may_be_fitted(row: Asked) -> bool:
    own = (row.engine.name, find_engine(row.engine.name, row.engine.year).year) in FITTED
    return own and not row.unfit and not row.model.experts


def _with_figures(key: tuple[str, int], values: Floats) -> tuple[EngineRow, ...]:
    """The table with these figures of an engine and of those that take them."""
    new = dict(zip(COLUMNS, values.tolist(), strict=True))
    return tuple(
        replace(row, **new) if LIKE.get((row.name, row.year), (row.name, row.year)) == key else row
        for row in load_engines()
    )


def width(gaps: Floats, publishers: npt.NDArray[np.str_]) -> float:
    """Size that holds 80 % of the gaps, by rows or with publishers weighed alike, whichever is more; at least 0.1."""
    size, order = np.abs(gaps), np.argsort(np.abs(gaps))
    weight = np.asarray([1.0 / (publishers == name).sum() for name in publishers])
    alike = float(size[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.8)])
    return max(alike, float(np.quantile(size, 0.8)), LEAST)


def write(
    figures: Mapping[tuple[str, int], tuple[Floats, float, int]], most: Mapping[tuple[str, int], float], path: Path
) -> None:  # fmt: skip
    """Rewrite the fitted rows of engines.csv and those that take their figures; `most`: `Published.most_prompts`."""
    table = read_csv(path)
    for row in table:
        key = (row["engine"], int(row["year"]))
        if LIKE.get(key, key) in figures:
            values, spread, rows = figures[LIKE.get(key, key)]
            own = key in figures
            source = SOURCE if own else f"as {' '.join(map(str, LIKE[key]))}: few rows of its own"
            told = [f"{value:.3g}" for value in values.tolist()]
            names = ("compute_ratio", "bandwidth_ratio", "step_s", "sequence_s")
            row |= dict(zip(names, told, strict=True))
            row |= {"spread": f"{spread:.3g}", "rows": str(rows if own else 0), "source": source}
            row["most_prompt"] = f"{most[key]:.3g}"
    write_records(path, table)


def _show(name: str, made: Floats, measured: Floats) -> None:
    if not len(made):
        return
    found = errors(np.exp(made), np.exp(measured))
    print(f"{name:58} n {found['n']:4.0f}  median {found['median']:5.1f} MAPE {found['mape']:5.1f}"
          f" p90 {found['p90']:5.1f} ratio {found['bias']:.2f}", flush=True)  # fmt: skip


def _each(rows: Published, at: Indices, made: Floats, name: Callable[[Asked], str]) -> None:
    names = np.asarray([name(rows.rows[index]) for index in at.tolist()])
    for one in sorted(set(names.tolist())):
        _show("    " + one, made[names == one], rows.rate[at[names == one]])


def main() -> int:
    """Fit, print the errors, write on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite planner/data/engines.csv")
    chosen = parser.parse_args()
    asked = [row for path in (FILE, LATER) for row in read(path)]
    figures: dict[tuple[str, int], tuple[Floats, float, int]] = {}
    most: dict[tuple[str, int], float] = {}
    for key in FITTED:
        rows = Published(key, asked)
        mine, others = rows.fitted, np.setdiff1d(np.arange(len(rows.rows)), rows.fitted)
        values = rows.fit(mine)
        print(
            f"{key[0]} {key[1]}:",
            ", ".join(f"{n} {v:.3g}" for n, v in zip(COLUMNS, np.exp(values), strict=True)),
        )
        away, elsewhere = rows.left_out(), rows.predict(values, others)
        for name, at, made in (
            ("fitted", mine, rows.predict(values, mine)),
            ("publisher left out", mine, away),
            ("not fitted", others, elsewhere),
        ):
            _show("  " + name, made, rows.rate[at])
            _each(rows, at, made, lambda row: row.publisher if name != "not fitted" else row.kind)  # noqa: B023
        gaps = np.zeros(len(rows.rows))
        gaps[mine], gaps[others] = away - rows.rate[mine], elsewhere - rows.rate[others]
        counted = rows.counts(np.arange(len(gaps)))
        spread = width(gaps[counted], rows.publisher[counted])
        print(f"  80 % within {spread:.2f}")
        figures[key] = (np.exp(values), spread, len(mine))
        most |= rows.most_prompts()
    if chosen.write:
        write(figures, most, DIRECTORY.parent / "engines.csv")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
