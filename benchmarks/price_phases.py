"""Is how far AWS spot prices move in a month known beforehand? Coverage by block of dates, each left out in turn.

`python -m benchmarks.price_phases --data DIR`

DIR holds `prices_*.csv.gz` (see `tools.price_history`). On each decision day of the fit (`tools.fit_prices`), offers
are covered where the price 30 days later lies within a factor around the quote, either way. The width is one of all
days, or grows with a power of how far prices moved in the week before. Its scale, and the power where it is fitted,
come from the two other blocks, at a coverage of 81 %. Levels and places are not told apart: this is about phases of
the market alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from catalogs.tables.table import Floats, Ints
from tools.fit_prices import SOURCES, floor_left, samples
from tools.price_history import decisions, read_histories

HORIZON, BEFORE = 30, 7
COVERED = 0.81
_LEAST_PLACES = 30
_SCALES: Floats = np.exp(np.linspace(-4.0, 3.0, 1401))


def moves(rows: pd.DataFrame) -> tuple[list[int], list[Floats], Floats]:
    """Decision days, how far each offer moved in the month after, and the root mean square of the week before."""
    source, settled = SOURCES["aws"], floor_left(rows)
    made = decisions(rows, None, "aws", (HORIZON,), first=source.first, step_days=source.step_days)
    given = samples(made, replace(source, horizons=(HORIZON,)), settled)
    quoted = rows[(rows["provider"] == "aws") & (rows["kind"] == "spot_quoted")].assign(
        x=lambda t: np.log(t["usd"])
    )
    prices = quoted.pivot_table(index="day", columns=["instance_type", "region", "zone"], values="x")
    prices = prices.sort_index().ffill(limit=HORIZON)
    floor_gone = pd.Series(prices.columns.get_level_values(0)).map(settled).fillna(np.inf).to_numpy()
    days, after, before = [], [], []
    for sample in given:
        first, last = prices[prices.index <= sample.day - BEFORE], prices[prices.index <= sample.day]
        if not len(first):
            continue
        change = (last.iloc[-1] - first.iloc[-1]).to_numpy()
        change = change[np.isfinite(change) & (floor_gone <= first.index[-1])]
        if len(change) > _LEAST_PLACES:
            days.append(sample.day)
            after.append(np.abs(np.log(sample.actual / sample.terms.quote[sample.rows])))
            before.append(float(np.sqrt((change**2).mean())))
    return days, after, np.asarray(before)


def left_out(after: Sequence[Floats], before: Floats, power: float | None) -> list[tuple[float, float]]:
    """Coverage of each third of the days by what the others ask for, and the power; None: fitted to the others."""
    every = np.arange(len(after))
    found = []
    for block in np.array_split(every, 3):
        rest = np.setdiff1d(every, block)
        grown = _slope(after, before, rest) if power is None else power
        shape = before**grown
        seen = [_covered(after, shape * scale, rest) for scale in _SCALES]
        scale = _SCALES[int(np.abs(np.asarray(seen) - COVERED).argmin())]
        found.append((_covered(after, shape * scale, block), grown))
    return found


def _covered(after: Sequence[Floats], width: Floats, days: Ints) -> float:
    return float(np.mean([(after[day] <= width[day]).mean() for day in days]))


def _slope(after: Sequence[Floats], before: Floats, days: Ints) -> float:
    spread = [float(np.log(np.sqrt((after[day] ** 2).mean()))) for day in days]
    return float(np.polyfit(np.log(before[days]), spread, 1)[0])


def main() -> int:
    """Print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    try:
        rows = read_histories(parser.parse_args().data, daily=True)
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    days, after, before = moves(rows)
    spreads = np.asarray([float(np.sqrt((own**2).mean())) for own in after])
    for day, own, past, spread in zip(days, after, before.tolist(), spreads.tolist(), strict=True):
        print(
            f"{date.fromordinal(day)}: {len(own)} offers, {BEFORE} days before {past:.3f}, {HORIZON} after {spread:.3f}"
        )
    alike = float(np.corrcoef(np.log(before), np.log(spreads))[0, 1])
    print(f"correlation of their logarithms over {len(days)} decision days {alike:.2f}")
    for name, power in (("one width", 0.0), ("as the week before", 1.0), ("to a fitted power", None)):
        found = left_out(after, before, power)
        parts = ", ".join(f"{covered:.0%} (power {grown:.2f})" for covered, grown in found)
        print(f"{name}: blocks left out are covered by {parts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
