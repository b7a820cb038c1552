"""Histories of spot prices as decision days: what was quoted on a day, and what the same place cost later.

A folder of histories holds `prices_*.csv.gz` with the columns provider, instance_type, region, zone, kind
(spot_quoted, spot_advisor_derived, on_demand), usd_per_hour and observed_at. Rows of a second folder (`known`) are
context: levels may be read from them, but no later price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from catalogs.tables.table import Bools, Floats, Ints
from planner.market.expected_price import FRESH_DAYS, Quotes

OFFERED_DAYS = 14  # an older quote is no offer on a decision day
_KEY = ["instance_type", "region", "zone"]


@dataclass(frozen=True)
class Decision:
    """One decision day of one provider.

    Attributes:
        day: ordinal of the date.
        quotes: the newest quote of each place, up to 60 days old.
        places: instance type, region and zone of each quote.
        scored: whether the quote is fresh enough to be an offer.
        later: price at about each horizon, NaN where unknown, shape `(n_horizons, n)`.
        later_days: how many days after the quote that was, of the same shape.
    """

    day: int
    quotes: Quotes
    places: pd.DataFrame
    scored: Bools
    later: Floats
    later_days: Floats


def read_histories(folder: Path, *, daily: bool = False) -> pd.DataFrame:
    """Read all histories of a folder.

    Args:
        folder: where `prices_*.csv.gz` lie.
        daily: with the files of daily prices, which repeat some weekly ones (those are dropped).

    Raises:
        FileNotFoundError: there are none.
    """
    paths = [p for p in sorted(folder.glob("prices_*.csv.gz")) if daily or "daily" not in p.name]
    if not paths:
        raise FileNotFoundError(f"no prices_*.csv.gz in {folder}: name a folder of price histories")
    rows = pd.concat([pd.read_csv(path, keep_default_na=False) for path in paths], ignore_index=True)
    rows["usd"] = rows["usd_per_hour"].astype(float)
    rows["day"] = [date.fromisoformat(text).toordinal() for text in rows["observed_at"]]
    return rows.drop_duplicates(["provider", *_KEY, "kind", "day"])


def decisions(
    rows: pd.DataFrame,
    known: pd.DataFrame | None,
    provider: str,
    horizons: Sequence[int],
    *,
    first: date,
    last: date = date.max,
    step_days: int = 28,
    kind: str = "spot_quoted",
    match: str = "",
    seen_until: int | None = None,
) -> list[Decision]:
    """Return the decision days of a provider.

    Args:
        rows: histories whose later prices count.
        known: more rows, for levels only.
        provider: provider id.
        horizons: days; a later price counts within 12 % of one (at least three days).
        first: no earlier decision.
        last: no later decision.
        step_days: least distance of decision days.
        kind: kind of the quotes that are decided between; later prices are always quotes.
        match: regular expression that instance types begin with.
        seen_until: ordinal; later prices after it do not count.
    """
    target, context = _of(rows, provider, match), None if known is None else _of(known, provider, match)
    both = target if context is None else pd.concat([target, context], ignore_index=True)
    spot = both[both["kind"] != "on_demand"]
    picked: list[int] = []
    for day in sorted(set(spot["day"].tolist())):
        if first.toordinal() <= day <= last.toordinal() and (not picked or day - picked[-1] >= step_days):
            picked.append(day)
    quoted = _series(both[both["kind"] == kind], _KEY)
    paid = target[target["kind"] == "spot_quoted"]
    if kind == "spot_advisor_derived":  # of a whole region: what its zones cost on average
        paid = paid.groupby(["instance_type", "region", "day"], as_index=False)["usd"].mean().assign(zone="")
    later = _series(paid, _KEY)
    listed = _series(both[both["kind"] == "on_demand"], ["instance_type", "region"])
    made = [_decide(day, provider, kind, horizons, quoted, later, listed, seen_until) for day in picked]
    return [decision for decision in made if len(decision.places)]


Series = dict[tuple[str, ...], tuple[Ints, Floats]]


def _of(rows: pd.DataFrame, provider: str, match: str) -> pd.DataFrame:
    mine = rows[rows["provider"] == provider]
    return mine[mine["instance_type"].str.match(match)] if match else mine


def _series(rows: pd.DataFrame, keys: list[str]) -> Series:
    ordered = rows.sort_values("day", kind="stable")
    return {
        tuple(map(str, key)): (group["day"].to_numpy(), group["usd"].to_numpy())
        for key, group in ordered.groupby(keys, sort=True)
    }


def _decide(
    day: int, provider: str, kind: str, horizons: Sequence[int], quoted: Series, later: Series, listed: Series,
    seen_until: int | None,
) -> Decision:  # fmt: skip
    keys, when, usd, on_demand, after, after_days = [], [], [], [], [], []
    for key, (days, prices) in quoted.items():
        at = int(np.searchsorted(days, day, side="right")) - 1
        if at < 0 or day - days[at] > FRESH_DAYS:
            continue
        keys.append(key)
        when.append(int(days[at]))
        usd.append(float(prices[at]))
        on_demand.append(_as_of(listed.get(key[:2]), day))
        found = [_near(later.get(key), day, k, seen_until) for k in horizons]
        after.append([price for _, price in found])
        after_days.append([seen - days[at] for seen, _ in found])
    types = sorted({key[0] for key in keys})
    code = {name: number for number, name in enumerate(types)}
    ages = day - np.asarray(when, dtype=np.float64)
    quotes = Quotes(
        usd_per_hour=np.asarray(usd, dtype=np.float64),
        on_demand_usd_per_hour=np.asarray(on_demand, dtype=np.float64),
        provider=np.zeros(len(keys), dtype=np.int64),
        type=np.asarray([code[key[0]] for key in keys], dtype=np.int64),
        age_days=ages,
        derived=np.full(len(keys), kind == "spot_advisor_derived"),
        providers=(provider,),
    )
    shape = (len(keys), len(horizons))
    return Decision(
        day=day,
        quotes=quotes,
        places=pd.DataFrame(keys, columns=_KEY),
        scored=ages <= OFFERED_DAYS,
        later=np.asarray(after, dtype=np.float64).reshape(shape).T,
        later_days=np.asarray(after_days, dtype=np.float64).reshape(shape).T,
    )


def _as_of(series: tuple[Ints, Floats] | None, day: int) -> float:
    if series is None:
        return np.nan
    at = int(np.searchsorted(series[0], day, side="right")) - 1
    return float(series[1][at]) if at >= 0 else np.nan


def _near(
    series: tuple[Ints, Floats] | None, day: int, horizon: int, seen_until: int | None
) -> tuple[float, float]:
    """Day and price nearest to `day + horizon`, NaN where there is none within the tolerance."""
    if series is None:
        return np.nan, np.nan
    days, prices = series
    tolerance = max(3, int(0.12 * horizon))
    low = int(np.searchsorted(days, max(day + 1, day + horizon - tolerance)))
    high = int(np.searchsorted(days, day + horizon + tolerance, side="right"))
    if high <= low:
        return np.nan, np.nan
    at = low + int(np.argmin(np.abs(days[low:high] - day - horizon)))
    if seen_until is not None and days[at] > seen_until:
        return np.nan, np.nan
    return float(days[at]), float(prices[at])
