"""Fit the constants of expected spot prices: `python -m tools.fit_prices --data DIR [--out FILE] [--cross-validate]`.

`--provider aws` fits that one alone.

DIR holds histories (`tools.price_history`); the daily files are read too. Per provider, in this order and twice over:

1. decay of a place's distance from its type's level: so that the chosen minimum costs on average what it was expected
   to, at each horizon (squared bias), with the squared error of all offers as a light tie-break;
2. spread of places: so that p10-p90 holds 81 % at each horizon.

On AWS all spreads are then widened by what few dates ask for (`tools.fit_windows`), and the decay is fitted once more.

The spread of types' and markets' levels is measured first, on means over the places of a type. Where prices stand still
until they move, the share that does is fitted first, to the share of prices that are still the quote; of those that
moved the spread of places and how much wider than markets types spread are measured (half-widths of 80 %), and the
spread of levels with its growth is fitted to the coverage.

Phases weigh equally: every decision counts once as it went and once with the market's move (mean over types of the
change of their median) turned round, so a history that mostly falls does not teach that prices fall. AWS is fitted on
decisions from 28 days after the floor of a type left 30 % of list (2023-11-16 at the latest): no pair crosses that.
`--cross-validate` leaves out a block of dates and a third of the places at a time and scores what was left out.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from catalogs.tables.table import Bools, Floats, Ints
from planner.market.expected_price import (
    Constants,
    PriceTerms,
    moved_and_kept,
    price_terms,
    spot_constants,
)
from planner.normal import Z80
from tools.fit_windows import factor_for, windows
from tools.price_history import Decision, decisions, read_histories

COVERED = 0.81
FOLDS = 3
OUT = Path("planner/data/prices/spot.csv")
_FLOOR_LEFT = date(2023, 9, 14)
_FLOOR_GONE = date(2023, 11, 16)
_SETTLED_DAYS = 28
_TIE_BREAK = 0.02
_MIN_PLACES = 4


@dataclass(frozen=True)
class Source:
    """What is fitted for a provider: decision days, types, horizons, whether its distances fade entirely.

    `by_windows`: spreads are widened by what few dates ask for; for a history of months.
    """

    first: date
    step_days: int
    horizons: tuple[int, ...]
    match: str
    least_power: float
    stands_still: bool = False
    by_windows: bool = False


# least_power: slopes of later on present distances within types fall from .994 at 7 d to .76 at 91 d on AWS, a power
# of 1.1 to 1.4; on GCP from .95 at 30 d to .56 at a year. Azure has ten dates in three clusters: not fitted.
SOURCES = {
    "aws": Source(date(2023, 9, 20), 7, (7, 14, 30, 45, 60, 75, 91, 500), "", 1.1, by_windows=True),
    "gcp": Source(date(2023, 7, 1), 14, (30, 60, 91, 120, 182, 270, 365, 500), r"(a2|a3|g2)-", 0.7, True),
}


@dataclass(frozen=True)
class Sample:
    """Offers of one decision day and horizon, and what they cost later as it went (`actual`) and reflected."""

    terms: PriceTerms
    rows: Ints
    days: Floats
    actual: Floats
    move: float
    type_of: Ints
    fold: Ints
    horizon: int
    day: int

    @property
    def still(self) -> Bools:
        """Which places still cost what they were quoted at."""
        return np.asarray(np.abs(np.log(self.actual / self.terms.quote[self.rows])) < 1e-3)


def samples(made: Sequence[Decision], source: Source, settled: pd.Series | None) -> list[Sample]:
    """Return the samples of decision days; types whose floor had not settled by then are left out."""
    out = []
    for decision in made:
        terms = price_terms(decision.quotes)
        types = decision.places["instance_type"]
        names = (f"{kind}|{region}" for kind, region in zip(types, decision.places["region"], strict=True))
        fold = np.asarray([zlib.crc32(name.encode()) % FOLDS for name in names], dtype=np.int64)
        ready = np.ones(len(types), dtype=np.bool_)
        if settled is not None:
            ready = (
                types.map(settled).fillna(_FLOOR_GONE.toordinal()).to_numpy() + _SETTLED_DAYS <= decision.day
            )
        for number, horizon in enumerate(source.horizons):
            later = decision.later[number]
            rows = np.flatnonzero(
                ready & decision.scored & terms.offered & np.isfinite(later) & np.isfinite(terms.x)
            )
            if not len(rows):
                continue
            change = pd.Series(np.log(later[rows] / terms.quote[rows])).groupby(decision.quotes.type[rows])
            out.append(
                Sample(
                    terms, rows, decision.later_days[number, rows], later[rows], float(change.median().mean()),
                    decision.quotes.type[rows], fold[rows], horizon, decision.day,
                )
            )  # fmt: skip
    return out


def floor_left(rows: pd.DataFrame) -> pd.Series:
    """Day on which a quote of each AWS type first was below 29.5 % of list after the change, at most its end."""
    aws = rows[(rows["provider"] == "aws") & (rows["day"] >= _FLOOR_LEFT.toordinal())]
    listed = rows[(rows["provider"] == "aws") & (rows["kind"] == "on_demand")]
    list_price = listed.sort_values("day").groupby(["instance_type", "region"])["usd"].first()
    keys = pd.MultiIndex.from_frame(aws[["instance_type", "region"]])
    ratio = aws["usd"].to_numpy() / list_price.reindex(keys).to_numpy()
    first = aws[(ratio < 0.295) & (aws["kind"] == "spot_quoted")].groupby("instance_type")["day"].min()
    return pd.Series(first.clip(upper=_FLOOR_GONE.toordinal()))


@dataclass(frozen=True)
class Outcome:
    """Chosen bias, squared log error of all, coverage: by horizon, both phases."""

    bias: Floats
    error: Floats
    covered: Floats


def outcome(given: Sequence[Sample], model: Constants, horizons: Sequence[int]) -> Outcome:
    """Score constants on samples; every decision day weighs the same within a horizon."""
    tables: dict[int, list[tuple[float, float, float]]] = {horizon: [] for horizon in horizons}
    for sample in given:
        terms = replace(sample.terms, models=(model,))
        expected = terms.expect(sample.rows, sample.days)
        both = [sample.actual, sample.actual * np.exp(-2.0 * sample.move)]
        if model.on_demand_base:
            both[1] = np.clip(both[1], terms.base[sample.rows] * model.floor_ratio, terms.base[sample.rows])
        chosen = _chosen(expected.mean, sample.type_of)
        errors = [float(np.mean(np.log(actual / expected.mean) ** 2)) for actual in both]
        inside = [
            float(np.mean((expected.p10 * 0.999 <= actual) & (actual <= expected.p90 * 1.001)))
            for actual in both
        ]
        bias = (
            [float(np.mean(actual[chosen] / expected.mean[chosen])) - 1.0 for actual in both]
            if len(chosen)
            else [np.nan]
        )
        tables[sample.horizon].append((float(np.mean(bias)), float(np.mean(errors)), float(np.mean(inside))))
    means = [np.nanmean(np.asarray(rows), axis=0) if rows else np.full(3, np.nan) for rows in tables.values()]
    bias, error, covered = np.asarray(means).T
    return Outcome(bias, error, covered)


def _chosen(mean: Floats, types: Ints) -> Ints:
    """Position of the least expected price of each type with enough places."""
    order = np.lexsort((mean, types))
    _, start, count = np.unique(types[order], return_index=True, return_counts=True)
    return np.asarray(order[start[count >= _MIN_PLACES]])


def fit(given: Sequence[Sample], start: Constants, source: Source) -> Constants:
    """Fit one provider's constants."""
    if source.stands_still:
        model = _fit_standing(given, start, source)
    else:
        model = _with(start, _levels(given))
        for _ in range(2):
            model = _fit_decay(given, model, source)
            model = _minimise(model, ("place_sd",), lambda m: _cover_loss(given, m, source))
        if source.by_windows:
            model = _widened(given, model, source)
    return _with(model, {name: float(f"{getattr(model, name):.3g}") for name in _FITTED})


def _widened(given: Sequence[Sample], model: Constants, source: Source) -> Constants:
    """Spreads that hold enough at the shortest horizon for how few windows of dates there are, and their decay."""
    shortest = source.horizons[0]
    own = [sample for sample in given if sample.horizon == shortest]

    def spread(factor: float) -> Constants:
        return _with(
            model, {name: factor * getattr(model, name) for name in ("place_sd", "type_sd", "market_sd")}
        )

    def covered(factor: float) -> float:
        return float(outcome(own, spread(factor), (shortest,)).covered[0])

    factor = factor_for(covered, COVERED, windows([sample.day for sample in own], shortest))
    return model if factor == 1.0 else _fit_decay(given, spread(factor), source)


def _fit_decay(given: Sequence[Sample], model: Constants, source: Source) -> Constants:
    return _minimise(model, ("decay_days", "decay_power"), lambda m: _bias_loss(given, m, source))


def _fit_standing(given: Sequence[Sample], start: Constants, source: Source) -> Constants:
    """Fit a provider whose prices stand still until they move."""
    table = pd.DataFrame(
        [(s.horizon, float(s.days.mean()), float(s.still.mean())) for s in given],
        columns=["horizon", "days", "still"],
    )
    days, still = table.groupby("horizon")[["days", "still"]].mean().to_numpy().T
    names = ("still_days", "still_power")
    begun = _with(start, {"still_days": 120.0, "still_power": 0.75})
    model = _minimise(
        begun,
        names,
        lambda m: float(np.mean((np.exp(-((days / m.still_days) ** m.still_power)) - still) ** 2)),
    )
    for _ in range(2):
        model = _fit_decay(given, model, source)
        place_sd, ratio = _spreads_of_moved(given, model)
        model = _with(model, {"place_sd": place_sd})
        loss = partial(_tied_loss, given, source, ratio)
        model = _tied(ratio, _minimise(model, ("type_sd", "level_power"), loss))
    return model


def _tied(ratio: float, model: Constants) -> Constants:
    """The market's spread in proportion to that of types."""
    return _with(model, {"market_sd": ratio * model.type_sd})


def _tied_loss(given: Sequence[Sample], source: Source, ratio: float, model: Constants) -> float:
    return _cover_loss(given, _tied(ratio, model), source)


def _spreads_of_moved(given: Sequence[Sample], model: Constants) -> tuple[float, float]:
    """Of prices that moved: sd of places, and the market's spread over that of types; medians over the horizons."""
    rows: list[pd.DataFrame] = []
    means: list[tuple[int, float, float]] = []
    for sample in given:
        terms = replace(sample.terms, models=(model,))
        law, count = terms.law(sample.rows, sample.days), len(sample.rows)
        of = {name: np.full(count, getattr(model, name)) for name in ("rest", *_FITTED)}
        kept = moved_and_kept(of, sample.days)[1]
        own = pd.DataFrame({
            "off": np.log(sample.actual / terms.base[sample.rows]) - law.middle, "type": sample.type_of,
            "horizon": sample.horizon, "scale": np.sqrt(1.0 - kept**2),
        })[~sample.still]  # fmt: skip
        own = own[own.groupby("type")["off"].transform("size") >= _MIN_PLACES]
        if len(own):
            of_type = own.groupby("type")["off"].mean()
            rows.append(own.assign(place=(own["off"] - own["type"].map(of_type)) / own["scale"]))
            means += [(sample.horizon, value - of_type.mean(), of_type.mean()) for value in of_type]
    levels = pd.DataFrame(means, columns=["horizon", "type", "market"]).groupby("horizon")
    place = pd.concat(rows).groupby("horizon")["place"].agg(_robust_sd).median()
    ratio = (levels["market"].agg(_robust_sd) / levels["type"].agg(_robust_sd)).median()
    return float(place), float(ratio)


def _robust_sd(values: pd.Series) -> float:
    """Standard deviation of the normal distribution with this 80 % interval."""
    return float(values.quantile(0.9) - values.quantile(0.1)) / (2.0 * Z80)


def _with(model: Constants, changed: dict[str, Any]) -> Constants:
    return replace(model, **changed)


_FITTED = (
    "decay_days", "decay_power", "place_sd", "type_sd", "market_sd", "level_power", "still_days", "still_power",
)  # fmt: skip


def _minimise(model: Constants, names: tuple[str, ...], loss: Callable[[Constants], float]) -> Constants:
    """Least `loss` over the logarithms of some constants."""

    def at(logs: Floats) -> Constants:
        return _with(model, dict(zip(names, np.exp(logs).tolist(), strict=True)))

    first = np.log([getattr(model, name) for name in names])
    found = minimize(
        lambda logs: loss(at(logs)),
        first,
        method="Nelder-Mead",
        options={"xatol": 0.01, "fatol": 1e-6, "maxiter": 60},
    )
    return at(found.x)


def _bias_loss(given: Sequence[Sample], model: Constants, source: Source) -> float:
    seen = outcome(given, model, source.horizons)
    weight = 1.0 / np.sqrt(np.asarray(source.horizons) / source.horizons[0])
    far = max(model.decay_power - 1.5, 0.0) + max(source.least_power - model.decay_power, 0.0)
    return float(np.nansum(weight * (seen.bias**2 + _TIE_BREAK * seen.error)) + far)


def _cover_loss(given: Sequence[Sample], model: Constants, source: Source) -> float:
    return float(np.nanmean((outcome(given, model, source.horizons).covered - COVERED) ** 2))


def _levels(given: Sequence[Sample]) -> dict[str, float]:
    """Spread of type and market levels per day**power, from changes of types' means over the horizon."""
    rows = []
    for sample in given:
        change = pd.Series(np.log(sample.actual / sample.terms.quote[sample.rows])).groupby(sample.type_of)
        mean = change.mean()[change.size() >= _MIN_PLACES]
        rows += [(sample.horizon, sample.day, value - sample.move, sample.move) for value in mean]
    table = pd.DataFrame(rows, columns=["horizon", "day", "own", "market"])
    own = table.groupby("horizon")["own"].agg(_robust_sd)
    days = table.drop_duplicates(["horizon", "day"]).groupby("horizon")["market"]
    market = days.agg(lambda v: float(np.sqrt(np.mean(np.square(v)))))
    both = np.hypot(own.to_numpy(), market.to_numpy())
    weight = np.sqrt(days.size())
    logs = np.log(own.index.to_numpy(dtype=float))
    power = float(np.polyfit(logs, np.log(both), 1, w=weight)[0])
    scale = {
        name: float(np.exp(np.average(np.log(np.maximum(v.to_numpy(), 1e-4)) - power * logs, weights=weight)))
        for name, v in (("type_sd", own), ("market_sd", market))
    }
    return {"level_power": power, **scale}


def keep(given: Sequence[Sample], mask: Callable[[Sample], Bools]) -> list[Sample]:
    """Return the samples with only the offers that `mask` keeps."""
    out = []
    for s in given:
        at = np.flatnonzero(mask(s))
        if len(at):
            cut = {name: getattr(s, name)[at] for name in ("rows", "days", "actual", "type_of", "fold")}
            out.append(replace(s, **cut))
    return out


def _in_fold(fold: int, *, inside: bool = True) -> Callable[[Sample], Bools]:
    return lambda sample: (sample.fold == fold) == inside


def cross_validate(given: Sequence[Sample], start: Constants, source: Source) -> Outcome:
    """Score what a fit has not seen: three blocks of dates, crossed with a third of the (type, region) pairs."""
    days = sorted({s.day for s in given})
    blocks = np.array_split(np.asarray(days), min(3, len(days)))
    seen: list[Outcome] = []
    for block in blocks:
        inside = set(block.tolist())
        for fold in range(FOLDS):
            left = keep([s for s in given if s.day in inside], _in_fold(fold))
            rest = keep([s for s in given if s.day not in inside], _in_fold(fold, inside=False))
            if left and rest:
                seen.append(outcome(left, fit(rest, start, source), source.horizons))
    return Outcome(*(np.nanmean([getattr(o, f) for o in seen], axis=0) for f in ("bias", "error", "covered")))


def main() -> int:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, help=f"write the constants here, such as {OUT}")
    parser.add_argument("--cross-validate", action="store_true")
    parser.add_argument("--provider", choices=sorted(SOURCES), action="append", help="fit these alone")
    given = parser.parse_args()
    try:
        rows = read_histories(given.data, daily=True)
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    models = dict(spot_constants())
    settled = floor_left(rows)
    for provider in given.provider or SOURCES:
        source = SOURCES[provider]
        made = decisions(
            rows,
            None,
            provider,
            source.horizons,
            first=source.first,
            step_days=source.step_days,
            match=source.match,
        )
        own = samples(made, source, settled if provider == "aws" else None)
        models[provider] = fit(own, models[provider], source)
        _show(provider, "fitted", source, outcome(own, models[provider], source.horizons))
        print(f"  {models[provider]}")
        if given.cross_validate:
            _show(provider, "left out", source, cross_validate(own, models[provider], source))
    if given.out:
        _write(given.out, models)
    return 0


def _show(provider: str, what: str, source: Source, seen: Outcome) -> None:
    for horizon, bias, error, covered in zip(
        source.horizons, seen.bias, seen.error, seen.covered, strict=True
    ):
        print(
            f"{provider} {what} {horizon:4} d: chosen {bias:+.1%}, log error {error**0.5:.3f}, "
            f"p10-p90 holds {covered:.0%}"
        )


def _write(path: Path, models: dict[str, Constants]) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        old = list(csv.DictReader(file))
    fields = list(old[0])
    for row in old:
        if row["provider"] in SOURCES:
            row.update({name: f"{getattr(models[row['provider']], name):g}" for name in _FITTED})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(old)


if __name__ == "__main__":
    sys.exit(main())
