"""The widths of engines that shared rows fit: how far a publisher that was never seen lies from the prediction.

Who asks has measured nothing yet, so a publisher is a random effect. A width has two parts, half-widths in log that
hold 80 %: what the rows of an engine scatter around their own fit, and what publishers differ by in the mean. The
second is estimated over all engines together, from publishers that were left out of the fit; each publisher of an
engine counts alike. Where publishers that the fit never saw measured an engine, its width is no less than what holds
80 % of all its rows, or of them with publishers weighed alike (`benchmarks.fit_servers.width`).

Run it after `benchmarks.fit_inference --write`, which leaves the scatter alone in engines.csv. Widths of the engines
that `benchmarks.fit_servers` fits are its own: they come from publishers left out already.

    python -m benchmarks.engine_widths --data measured.csv [--write]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.fit_inference import SOURCE, Question, left_out
from benchmarks.fit_servers import FITTED, LEAST, Published, width
from benchmarks.inference_rows import load_cases
from benchmarks.other_inference import FILE, LATER, Asked, read
from benchmarks.rows import read_csv, write_csv
from catalogs.tables.table import Floats, Ints
from planner.performance.constants import DIRECTORY
from planner.records import record

Key = tuple[str, int]
# Others must have measured so many rows of an engine for it to be known without a publisher; and a publisher so many
# of it to say what publishers differ by.
KNOWN, TOLD = 10, 5


@record(frozen=True)
class Gaps:
    """Log errors of rows of an engine, each with its publisher; shape `(n,)` both."""

    publisher: npt.NDArray[np.str_]
    off: Floats


@record(frozen=True)
class Effect:
    """Mean log error of a publisher's rows of an engine, which was fitted without the publisher."""

    publisher: str
    engine: Key
    rows: int
    off: float


def effects(key: Key, gaps: Gaps) -> list[Effect]:
    """Those of every publisher with enough rows."""
    found = []
    for name in sorted(set(gaps.publisher.tolist())):
        off = gaps.off[gaps.publisher == name]
        if len(off) >= TOLD:
            found.append(Effect(name, key, len(off), float(off.mean())))
    return found


def between(found: Sequence[Effect]) -> float:
    """Half-width in log that holds the mean errors of 80 % of the publishers."""
    return float(np.quantile([abs(one.off) for one in found], 0.8))


def spread(own: Gaps, away: Gaps, publishers: float) -> float:
    """Half-width of an engine.

    Args:
        own: rows that the engine was fitted on, in the fit.
        away: rows of publishers that the fit never saw.
        publishers: `between`.
    """
    new = float(np.hypot(max(float(np.quantile(np.abs(own.off), 0.8)), LEAST), publishers))
    if not len(away.off):
        return new
    return max(
        new, width(np.concatenate([own.off, away.off]), np.concatenate([own.publisher, away.publisher]))
    )


class Shared:
    """The shared rows, fitted."""

    def __init__(self, data: Path) -> None:
        cases, rows, _ = load_cases(data)
        self.question = Question(cases, rows)
        self.source = np.asarray([row.source for row in rows])
        self.usable = np.flatnonzero(self.question.possible)
        self.values = self.question.fit(self.usable)
        self.off = self.question.predict(self.values, np.arange(len(rows))) - self.question.rate

    def rows_of(self, key: Key) -> Ints:
        """Positions of the usable rows of an engine."""
        if key not in self.question.engines:
            return np.asarray([], np.int64)
        return self.usable[self.question.engine[self.usable] == self.question.engines.index(key)]

    def gaps(self, key: Key) -> Gaps:
        """Errors of an engine's rows in the fit."""
        at = self.rows_of(key)
        return Gaps(self.source[at], self.off[at])

    def left_out(self) -> list[Effect]:
        """Effects of sources of engines that others measured too, each predicted without the source."""
        told: dict[str, dict[Key, Ints]] = defaultdict(dict)
        for key in self.question.engines:
            at = self.rows_of(key)
            for name in set(self.source[at].tolist()):
                mine = at[self.source[at] == name]
                if len(mine) >= TOLD and len(at) - len(mine) >= KNOWN:
                    told[name][key] = mine
        found = []
        for name, engines in sorted(told.items()):
            fitted = self.question.fit(self.usable[self.source[self.usable] != name])
            for key, mine in engines.items():
                off = self.question.predict(fitted, mine) - self.question.rate[mine]
                found += effects(key, Gaps(self.source[mine], off))
        return found


def published(key: Key, asked: Sequence[Asked]) -> Gaps:
    """Errors of published rows of an engine that count in its width, with the publisher left out where it is fitted."""
    rows = Published(key, asked)
    off = np.asarray([row.predict() for row in rows.rows])
    off = np.log(off) - rows.rate
    if key in FITTED:
        off[rows.fitted] = rows.left_out() - rows.rate[rows.fitted]
    at = rows.counts(np.arange(len(off)))
    return Gaps(rows.publisher[at], off[at])


def unseen(gaps: Gaps, sources: Sequence[str]) -> Gaps:
    """Without publishers that the shared rows have too, under another page."""
    known = {source.split("/")[0] for source in sources}
    at = np.asarray([name not in known for name in gaps.publisher.tolist()], np.bool_)
    return Gaps(gaps.publisher[at], gaps.off[at])


def write(spreads: dict[Key, float], path: Path) -> None:
    """Rewrite the widths of these engines, and nothing else of the table."""
    rows = read_csv(path)
    for row in rows:
        key = (row["engine"], int(row["year"]))
        row["spread"] = f"{spreads[key]:.3g}" if key in spreads else row["spread"]
    write_csv(path, [list(rows[0]), *(list(row.values()) for row in rows)])


def main() -> int:
    """Print what publishers differ by, every width and whom it holds; write on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV of the shared rows")
    parser.add_argument("--write", action="store_true", help="rewrite planner/data/engines.csv")
    chosen = parser.parse_args()
    path = DIRECTORY.parent / "engines.csv"
    shared, asked = Shared(chosen.data), [row for file in (FILE, LATER) for row in read(file)]
    table = [((row["engine"], int(row["year"])), row["source"] == SOURCE) for row in read_csv(path)]
    own = [key for key, here in table if here and len(shared.rows_of(key))]
    away = {key: published(key, asked) for key in (*own, *FITTED)}
    found = shared.left_out()
    for key, gaps in away.items():
        found += effects(key, gaps if key in FITTED else unseen(gaps, shared.source.tolist()))
    for one in found:
        print(f"{one.publisher[:44]:44} {' '.join(map(str, one.engine)):24} n {one.rows:4}  {one.off:+.2f}")
    publishers = between(found)
    print(f"80 % of {len(found)} publishers of an engine within {publishers:.2f}")
    spreads = {key: spread(shared.gaps(key), away[key], publishers) for key in own}
    apart = left_out(shared.question) - shared.question.rate
    for key, wide in spreads.items():
        at = shared.rows_of(key)
        line = f"{' '.join(map(str, key)):24} {wide:.2f}; groups left out {np.mean(np.abs(apart[at]) <= wide):4.0%}"
        for name in sorted(set(away[key].publisher.tolist())):
            # neither the publisher's own rows nor its effect count in the width that is to hold it
            others = [one for one in found if one.publisher != name]
            rest = Gaps(*(part[away[key].publisher != name] for part in (away[key].publisher, away[key].off)))
            without = spread(shared.gaps(key), rest, between(others))
            off = away[key].off[away[key].publisher == name]
            line += f"; {name} {np.mean(np.abs(off) <= without):4.0%} of {len(off)} within {without:.2f}"
        print(line)
    every = np.concatenate([shared.rows_of(key) for key in own])
    wide = np.concatenate([np.full(len(shared.rows_of(key)), spreads[key]) for key in own])
    print(f"all shared rows, groups left out: {np.mean(np.abs(apart[every]) <= wide):.1%} inside")
    if chosen.write:
        write(spreads, path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
