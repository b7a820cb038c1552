"""Costs in an estimate: an hour of the cluster, on demand and on spot, and roughly the whole run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.estimation.prices import run_usd
from planner.render.model import Column, Section, Unit, Value, facts, table_section
from planner.render.precision import dollars, known_places, rounded
from planner.render.words import cluster, is_derived, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.estimation.values import Estimate, Interval, Priced

_Facts = list[tuple[str, str, Value, Unit, str]]
_HOW = {"on_demand": "on demand", "owned": "your own", "spot": "spot"}
BASIS = "Prices are quotes for machines only, without storage, transfer and interruptions."
_RESTS_ON = (
    "quotes of the catalog on their dates, the cheapest place within the workload's limits; for machines only, without "
    "storage, transfer and interruptions of spot, which planner optimize counts"
)
PRICE_COLUMNS = (
    "price_option", "price_per_hour_usd", "cluster_per_hour_usd", "price_place", "price_as_of", "price_basis",
    "run_usd", "run_low_usd", "run_high_usd", "spot_cluster_per_hour_usd", "spot_place", "spot_as_of", "spot_basis",
)  # fmt: skip


def price_rows(item: Estimate) -> _Facts:
    """Rows of a screen: the hour, and the whole run."""
    if item.prices is None:
        return []
    steady, spot, cost = item.prices.steady, item.prices.spot, run_usd(item)
    if steady is None and spot is None:
        return [
            (
                "price",
                "cost",
                None,
                "text",
                "no price in the catalog within the workload's places and options",
            )
        ]
    words = [_words(offer) for offer in (steady, spot) if offer is not None]
    rows: _Facts = [("cluster_per_hour_usd", "cost per hour", _hour(steady), "usd_known", "; ".join(words))]
    if cost is not None and steady is not None:
        text = f"{_run(cost)}, {_HOW[steady.option]}, machines only"
        rows.append(("run_usd", "for the run", _known(cost), "usd_known", text))
    return rows


def price_section(item: Estimate) -> list[Section]:
    """The section behind the screen: each offer with its date and source."""
    if item.prices is None:
        return []
    rows: _Facts = []
    for offer in (item.prices.steady, item.prices.spot):
        if offer is not None:
            text = f"{_words(offer)}, {_where(offer)}; source {offer.source}"
            rows.append((f"{offer.option}_per_hour_usd", _HOW[offer.option], _hour(offer), "usd_known", text))
    cost = run_usd(item)
    if cost is not None:
        rows.append(("run_usd", "whole run", _known(cost), "usd_known", _run(cost)))
    if not rows:
        return [Section("prices", "Prices", tuple(row[4] for row in price_rows(item)))]
    return [facts("prices", "Prices", [*rows, ("price_basis", "based on", _RESTS_ON, "text", _RESTS_ON)])]


def costs_table(estimates: Sequence[Estimate]) -> list[Section]:
    """Several clusters: an hour and the whole run of each; nothing where none has a price."""
    rows: list[tuple[Value, ...]] = []
    for item in estimates:
        steady = None if item.prices is None else item.prices.steady
        spot = None if item.prices is None else item.prices.spot
        cost = run_usd(item)
        rows.append((
            (item.nodes, item.machine.instance_type), _hour(steady), None if cost is None else _known(cost),
            "" if cost is None else _span(cost), _region(steady), _hour(spot), _region(spot),
        ))  # fmt: skip
    if all(row[1] is None and row[5] is None for row in rows):
        return []
    columns = (
        Column("cluster", "cluster", "cluster"), Column("cluster_per_hour_usd", "an hour", "usd_known"),
        Column("run_usd", "for the run", "usd_known"), Column("run_interval", "80 %", "text"),
        Column("place", "where", "text"), Column("spot_cluster_per_hour_usd", "spot, an hour", "usd_known"),
        Column("spot_place", "spot where", "text", place="data"),
    )  # fmt: skip
    dates = sorted({
        offer.as_of for item in estimates if item.prices for offer in (item.prices.steady, item.prices.spot) if offer
    })  # fmt: skip
    return [
        table_section(
            "prices", "Cost", columns, rows, [f"prices of {' to '.join({*dates[:1], *dates[-1:]})}"]
        )
    ]


def cheapest_row(running: Sequence[Estimate]) -> _Facts:
    """The cluster whose whole run costs least at steady prices."""
    costs = [(cost.value, at, cost) for at, item in enumerate(running) if (cost := run_usd(item)) is not None]
    if not costs:
        return []
    _, at, cost = min(costs)
    text = f"{cluster(running[at].nodes, running[at].machine.instance_type)}: {_run(cost)}, machines only"
    return [("cheapest", "cheapest", text, "text", text)]


def price_values(item: Estimate) -> dict[str, Any]:
    """Values for JSON; null where no prices were requested."""
    if item.prices is None:
        return {"prices": None}
    cost = run_usd(item)
    return {
        "prices": {
            "steady": _offer_values(item.prices.steady),
            "spot": _offer_values(item.prices.spot),
            "run_usd": cost and round(cost.value, 2),
            "run_low_usd": cost and round(cost.low, 2),
            "run_high_usd": cost and round(cost.high, 2),
        }
    }


def _offer_values(offer: Priced | None) -> dict[str, Any] | None:
    if offer is None:
        return None
    values = asdict(offer)
    values["nodes_paid"] = values.pop("nodes")
    return values | {"cluster_usd_per_hour": round(offer.cluster_usd_per_hour, 6)}


def flat_prices(item: Estimate) -> dict[str, Any]:
    """The same for a row."""
    steady = None if item.prices is None else item.prices.steady
    spot = None if item.prices is None else item.prices.spot
    cost = run_usd(item)
    cells: tuple[Any, ...] = (None,) * 6
    if steady is not None:
        hour = round(steady.cluster_usd_per_hour, 6)
        cells = (steady.option, steady.usd_per_hour, hour, _where(steady), steady.as_of, steady.basis)
    run = (
        (None,) * 3 if cost is None else tuple(round(value, 2) for value in (cost.value, cost.low, cost.high))
    )
    spot_cells: tuple[Any, ...] = (None,) * 4
    if spot is not None:
        spot_cells = (round(spot.cluster_usd_per_hour, 6), _where(spot), spot.as_of, spot.basis)
    return dict(zip(PRICE_COLUMNS, (*cells, *run, *spot_cells), strict=True))


def _words(offer: Priced) -> str:
    """Return `$220.20 on demand in aws/us-east-2 (list price of 2026-07)`."""
    about = "about " if is_derived(offer.basis) else ""
    hourly_usd = offer.cluster_usd_per_hour
    amount = dollars(hourly_usd, known_places(hourly_usd, 0.0))
    return f"{about}{amount} {_HOW[offer.option]} in {_region(offer)} ({offer.basis} price of {offer.as_of})"


def _where(offer: Priced | None) -> str:
    return "" if offer is None else place(offer.provider, offer.region, offer.zone)


def _region(offer: Priced | None) -> str:
    return "" if offer is None else place(offer.provider, offer.region, "")


def _hour(offer: Priced | None) -> Value:
    if offer is None:
        return None
    return rounded(offer.cluster_usd_per_hour, known_places(offer.cluster_usd_per_hour, 0.0))


def _half(cost: Interval) -> float:
    return (cost.high - cost.low) / 2.0


def _known(cost: Interval) -> Value:
    return rounded(cost.value, known_places(cost.value, _half(cost)))


def _span(cost: Interval) -> str:
    places = known_places(cost.value, _half(cost))
    return f"{dollars(cost.low, places)} to {dollars(cost.high, places)}"


def _run(cost: Interval) -> str:
    return f"about {dollars(cost.value, known_places(cost.value, _half(cost)))} (80 %: {_span(cost)})"
