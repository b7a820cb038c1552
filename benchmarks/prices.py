"""Is the expected price of a spot offer what is paid later? Scores on price histories, by horizon and provider.

`python -m benchmarks.prices --data DIR [--known DIR] [--provider aws] [--from DATE] [--step 28]`

DIR holds `prices_*.csv.gz` (see `tools.price_history`). On each decision day every offer of every type is predicted at
each horizon and compared with what its place really cost; then the least expected price of each type with four places
or more is chosen. A phase is rising where the level of the provider's types rose from the decision to the horizon, else
falling; figures of both are averaged. Intervals: 90 %, bootstrap over decision days. Without histories: says so.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from planner.market.expected_price import Constants, price_terms
from tools.price_history import Decision, decisions, read_histories

HORIZONS = (7, 30, 91, 182, 365, 500)
LEAST_PLACES = 4
FIRST = {"aws": "2023-11-16", "gcp": "2023-05-01", "azure": "2022-10-01"}
MATCH = {"aws": "", "gcp": r"(a2|a3|g2)-", "azure": ""}
MODELS = ("expected", "quote", "median")


@dataclass(frozen=True)
class Scored:
    """Predictions of one provider: all offers and the chosen ones, a row each."""

    offers: pd.DataFrame
    chosen: pd.DataFrame


def score(made: Sequence[Decision], constants: dict[str, Constants] | None = None) -> Scored:
    """Predict every scored offer at every horizon and choose per type and model."""
    offers, chosen = [], []
    for decision in made:
        terms = price_terms(decision.quotes, constants)
        usable = np.isfinite(terms.level) & decision.scored
        for number, horizon in enumerate(HORIZONS):
            rows = np.flatnonzero(usable & np.isfinite(decision.later[number]))
            if not len(rows):
                continue
            expected = terms.expect(rows, decision.later_days[number, rows])
            table = pd.DataFrame({
                "day": decision.day, "horizon": horizon, "type": decision.quotes.type[rows],
                "actual": decision.later[number, rows], "expected": expected.mean,
                "quote": terms.quote[rows], "median": terms.base[rows] * np.exp(terms.level[rows]),
                "p10": expected.p10, "p90": expected.p90,
                "rise": np.log(decision.later[number, rows] / terms.quote[rows]),
            })  # fmt: skip
            # the market's move: every type counts once
            table["rising"] = table.groupby("type")["rise"].median().mean() > 0
            offers.append(table)
            chosen += _choices(table)
    columns = ["day", "horizon", "rising", "model", "surprise", "error", "over_best"]
    return Scored(pd.concat(offers) if offers else pd.DataFrame(), pd.DataFrame(chosen, columns=columns))


def _choices(table: pd.DataFrame) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for _, group in table.groupby("type"):
        if len(group) < LEAST_PLACES:
            continue
        for model in MODELS:
            pick = group.iloc[int(group[model].argmin())]
            ratio = float(pick["actual"] / pick[model])
            rows.append((
                pick["day"], pick["horizon"], pick["rising"], model, ratio - 1.0, abs(1.0 / ratio - 1.0),
                float(pick["actual"]) / float(group["actual"].min()),
            ))  # fmt: skip
    return rows


def by_phase(table: pd.DataFrame, value: str) -> tuple[float, float, float]:
    """Mean of a column when rising, when falling, and of both (of the one there is)."""
    means = [table.loc[table["rising"] == rising, value].mean() for rising in (True, False)]
    known = [mean for mean in means if not np.isnan(mean)]
    return means[0], means[1], float(np.mean(known)) if known else np.nan


def interval(table: pd.DataFrame, value: str, draws: int = 1000, seed: int = 1) -> tuple[float, float]:
    """90 % interval of the mean of both phases: decision days are drawn with replacement within each phase."""
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    phases = 0
    for _, group in table.groupby("rising"):
        days = group.groupby("day")[value].agg(["sum", "size"]).to_numpy()
        drawn = rng.integers(len(days), size=(draws, len(days)))
        total += days[drawn, 0].sum(axis=1) / days[drawn, 1].sum(axis=1)
        phases += 1
    low, high = np.quantile(total / phases, (0.05, 0.95))
    return float(low), float(high)


def show(provider: str, scored: Scored) -> None:
    """Print one line per horizon and model."""
    for horizon, offers in scored.offers.groupby("horizon"):
        inside = (offers["p10"] * 0.999 <= offers["actual"]) & (offers["actual"] <= offers["p90"] * 1.001)
        held = offers.assign(inside=inside)
        cover, (least, most) = by_phase(held, "inside"), interval(held, "inside")
        width = by_phase(offers.assign(width=offers["p90"] / offers["p10"] - 1.0), "width")[2]
        days = offers.groupby("rising")["day"].nunique().to_dict()
        print(
            f"\n{provider} {horizon} d: {len(offers):,} offers, {days.get(True, 0)} rising and {days.get(False, 0)} "
            f"falling days; p10-p90 holds {_ratio(cover[0])} rising, {_ratio(cover[1])} falling, "
            f"{_ratio(cover[2])} [{_ratio(least)}, {_ratio(most)}] of both, p90 is {width:.0%} over p10"
        )
        chosen = scored.chosen[scored.chosen["horizon"] == horizon]
        for model in MODELS:
            every = offers.assign(error=(offers[model] / offers["actual"] - 1.0).abs())
            line = f"  {model:9} error of all {by_phase(every, 'error')[2]:6.1%}"
            mine = chosen[chosen["model"] == model]
            if len(mine):
                rising, falling, both = by_phase(mine, "surprise")
                low, high = interval(mine, "surprise")
                line += (
                    f" | chosen {len(mine):4}: surprise {_signed(both)} [{low:+.1%}, {high:+.1%}]"
                    f" (rising {_signed(rising)}, falling {_signed(falling)}; plain {mine['surprise'].mean():+.1%}),"
                    f" error {by_phase(mine, 'error')[2]:.1%}, paid/best {by_phase(mine, 'over_best')[2]:.2f}"
                )
            print(line)


def _ratio(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0%}"


def _signed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.1%}"


def main() -> int:
    """Print the scores; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of histories whose later prices count"
    )
    parser.add_argument("--known", type=Path, help="folder of more histories, for levels only")
    parser.add_argument("--provider", choices=sorted(FIRST), action="append")
    parser.add_argument("--from", dest="first", type=date.fromisoformat, help="no decision before this date")
    parser.add_argument("--step", type=int, default=28, help="days between decisions")
    parser.add_argument("--kind", default="spot_quoted", help="kind of the quotes to choose between")
    parser.add_argument("--match", type=re.compile, help="regular expression on instance types")
    given = parser.parse_args()
    try:
        rows = read_histories(given.data)
        known = read_histories(given.known) if given.known else None
    except FileNotFoundError as error:
        print(f"skipped: {error}")
        return 0
    for provider in given.provider or sorted(FIRST):
        first = given.first or date.fromisoformat(FIRST[provider])
        match = MATCH[provider] if given.match is None else given.match.pattern
        made = decisions(
            rows, known, provider, HORIZONS, first=first, step_days=given.step, kind=given.kind, match=match
        )
        show(provider, score(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
