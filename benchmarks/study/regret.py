"""What plans cost at the prices of later dates, against the owner's cluster at those dates.

On each decision day of a price history every workload takes the cheapest spot or on-demand offer of one provider among
the machine types that can do it in time: instance-hours (the planner's, of today's performance model) x price. It
chooses by the price to expect at the horizon, as plans do, or by the quote. Then the clock moves: it pays what that
offer was quoted at later, the owner pays the list price of that date. GCP's lists are no choice and no baseline here:
their histories are not sound. Interruptions, transfer and storage are left out on both sides, so savings here are of
machine-hours alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from catalogs.tables.table import Floats, Ints
from planner.market.expected_price import price_terms
from tools.price_history import Decision, decisions, read_histories

Record = dict[str, Any]
HORIZONS = (7, 30, 91, 182, 365)
FIRST = {"aws": date(2023, 11, 16), "gcp": date(2023, 5, 1)}
LISTED = ("aws", "azure")  # the histories of GCP's lists hold queued prices and lists without the accelerator
STEP_DAYS = {"aws": 7, "gcp": 28}
MODELS = ("expected", "quote")
SEED, DRAWS = 1, 1000


@dataclass(frozen=True)
class Lists:
    """List prices of a provider through time, by instance type and region."""

    series: dict[tuple[str, str], tuple[Ints, Floats]]

    def at(self, day: float, instance_type: str, region: str = "") -> float:
        """USD per hour on a day: of the region where it is known, else the least of any region; NaN: not listed."""
        if (instance_type, region) in self.series:
            known = _as_of(self.series[instance_type, region], day)
            if np.isfinite(known):
                return known
        every = [_as_of(given, day) for (name, _), given in self.series.items() if name == instance_type]
        finite = [price for price in every if np.isfinite(price)]
        return min(finite) if finite else float("nan")


def _as_of(series: tuple[Ints, Floats], day: float) -> float:
    at = int(np.searchsorted(series[0], day, side="right")) - 1
    return float(series[1][at]) if at >= 0 else float("nan")


def lists_of(rows: pd.DataFrame, provider: str) -> Lists:
    """List prices of a provider from its histories."""
    mine = rows[(rows["provider"] == provider) & (rows["kind"] == "on_demand")].sort_values(
        "day", kind="stable"
    )
    return Lists({
        (str(name), str(region)): (group["day"].to_numpy(), group["usd"].to_numpy())
        for (name, region), group in mine.groupby(["instance_type", "region"])
    })  # fmt: skip


def replay(records: Sequence[Record], folder: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Every choice and what it cost later, a row each; and the workloads that cannot be replayed, by reason.

    Args:
        records: of the study.
        folder: histories `prices_*.csv.gz`.

    Raises:
        FileNotFoundError: the folder holds no histories.
    """
    rows = read_histories(folder)
    lists = {provider: lists_of(rows, provider) for provider in LISTED}
    usable, left_out = _usable(records, lists)
    made: list[dict[str, Any]] = []
    for provider in FIRST:
        days = decisions(rows, None, provider, HORIZONS, first=FIRST[provider], step_days=STEP_DAYS[provider])
        for decision in days:
            made += _of_day(usable, decision, provider, lists)
    return pd.DataFrame(made, columns=_COLUMNS), left_out


_COLUMNS = (
    "id", "provider", "day", "horizon", "model", "option", "promised", "paid", "best", "owner_then", "owner_later",
)  # fmt: skip


def _usable(records: Sequence[Record], lists: dict[str, Lists]) -> tuple[list[Record], dict[str, list[str]]]:
    usable: list[Record] = []
    left_out: dict[str, list[str]] = {}
    for record in records:
        why = _why_not(record, lists)
        if why:
            left_out.setdefault(why, []).append(record["id"])
        else:
            usable.append(record)
    return usable, left_out


def _why_not(record: Record, lists: dict[str, Lists]) -> str:
    if record["published"]["expressible"] == "no":
        return "stand-in: the file cannot express what moves the cost"
    named = record.get("baseline")
    if named is None or named["status"] != "ok":
        return "no comparable baseline"
    if record["kind"] == "fleet":
        return "fleet: its hours by machine type are not in the record"
    known = lists.get(named["provider"])
    if known is None or not any(name == named["instance_type"] for name, _ in known.series):
        return "no sound history of the baseline's list price"
    return ""


def _of_day(
    records: Sequence[Record], decision: Decision, provider: str, lists: dict[str, Lists]
) -> list[dict[str, Any]]:
    terms = price_terms(decision.quotes)
    types = decision.places["instance_type"].to_numpy()
    sound = np.isfinite(terms.level) & decision.scored & terms.offered
    listed = lists.get(provider)
    names = set(types.tolist()) if listed else set()
    listed_now = {name: listed.at(decision.day, name) for name in names if listed}
    made = []
    for number, horizon in enumerate(HORIZONS):
        rows = np.flatnonzero(sound & np.isfinite(decision.later[number]))
        if not len(rows):
            continue
        later_day = decision.day + horizon
        prices = {
            "expected": terms.expect(rows, decision.later_days[number, rows]).mean,
            "quote": terms.quote[rows],
        }
        listed_later = {name: listed.at(later_day, name) for name in listed_now if listed}
        for record in records:
            hours = record["instance_hours"]
            own = np.asarray([hours.get(f"{provider}/{name}", np.nan) for name in types[rows]])
            if not np.isfinite(own).any():
                continue
            owner = _owner(record, lists, decision.day, later_day)
            firm = _firm(hours, provider, listed_now, listed_later)
            later = own * decision.later[number, rows]
            best = min(float(np.nanmin(later)), firm[2])
            for model, price in prices.items():
                choice = _choose(own * price, later, firm)
                told = (record["id"], provider, decision.day, horizon, model, *choice, best, *owner)
                made.append(dict(zip(_COLUMNS, told, strict=True)))
    return made


def _choose(promised: Floats, later: Floats, firm: tuple[float, float, float]) -> tuple[str, float, float]:
    """Option, promised and paid cost of the cheapest choice; a tie goes to on-demand."""
    at = int(np.nanargmin(promised))
    if firm[0] <= promised[at]:
        return "on_demand", firm[0], firm[1]
    return "spot", float(promised[at]), float(later[at])


def _firm(
    hours: dict[str, float], provider: str, now: dict[str, float], later: dict[str, float]
) -> tuple[float, float, float]:
    """The cheapest on-demand cost now, what it costs later, and the cheapest later."""
    names = [name for name in now if f"{provider}/{name}" in hours and np.isfinite(now[name])]
    if not names:
        return np.inf, np.inf, np.inf
    costs = [hours[f"{provider}/{name}"] * now[name] for name in names]
    after = [hours[f"{provider}/{name}"] * later[name] for name in names]
    return min(costs), after[int(np.argmin(costs))], min(after)


def _owner(record: Record, lists: dict[str, Lists], day: int, later_day: int) -> tuple[float, float]:
    named = record["baseline"]
    hours = named["running_hours"] * named["nodes"]
    prices = lists[named["provider"]]
    return (
        hours * prices.at(day, named["instance_type"], named["region"]),
        hours * prices.at(later_day, named["instance_type"], named["region"]),
    )


def summarized(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Figures by provider, horizon and model: surprise, savings promised and kept, what a clairvoyant would pay.

    Medians over choices; the interval of the surprise draws decision days with replacement.
    """
    made = []
    known = table[np.isfinite(table["owner_then"]) & np.isfinite(table["owner_later"])]
    for (provider, horizon, model), group in known.groupby(["provider", "horizon", "model"], sort=True):
        surprise = (group["paid"] / group["promised"] - 1.0).to_numpy()
        then, later = (
            1.0 - group["promised"] / group["owner_then"],
            1.0 - group["paid"] / group["owner_later"],
        )
        low, high = _interval(surprise, group["day"].to_numpy())
        made.append({
            "provider": provider, "horizon": int(horizon), "model": model, "choices": len(group),
            "days": int(group["day"].nunique()), "first": date.fromordinal(int(group["day"].min())).isoformat(),
            "last": date.fromordinal(int(group["day"].max())).isoformat(),
            "surprise_mean": float(surprise.mean()), "low": low, "high": high,
            "surprise_median": float(np.median(surprise)), "surprise_p90": float(np.quantile(surprise, 0.9)),
            "promised": float(then.median()), "kept": float(later.median()), "kept_q25": float(later.quantile(0.25)),
            "losses": int((later < 0).sum()), "over_best": float((group["paid"] / group["best"]).mean()),
        })  # fmt: skip
    return made


def _interval(values: Floats, days: Ints) -> tuple[float, float]:
    """90 % interval of the mean: decision days are drawn with replacement."""
    names, code = np.unique(days, return_inverse=True)
    sums, sizes = np.bincount(code, weights=values), np.bincount(code)
    drawn = np.random.default_rng(SEED).integers(len(names), size=(DRAWS, len(names)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.05, 0.95))
    return float(low), float(high)
