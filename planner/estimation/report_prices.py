"""What an estimate says of money: the cluster's hour, on demand and on spot, and about what the whole run costs."""

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
BASIS = "Prices are quotes of machines alone: no storage, transfer, interruptions."
_RESTS_ON = (
    "quotes of the catalog on their dates, the cheapest place within the workload's limits; of machines alone: no "
    "storage, no transfer, no interruptions of spot, which planner optimize counts"
)
PRICE_COLUMNS = (
    "price_option", "price_per_hour_usd", "cluster_per_hour_usd", "price_place", "price_as_of", "price_basis",
    "run_usd", "run_low_usd", "run_high_usd", "spot_cluster_per_hour_usd", "spot_place", "spot_as_of", "spot_basis",
)  # fmt: skip


def price_rows(item: Estimate) -> _Facts:
    """Rows of a screen: the hour, and the whole run."""
    if item.prices is None:
        return []
    steady, spot, whole = item.prices.steady, item.prices.spot, run_usd(item)
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
    if whole is not None and steady is not None:
        text = f"{_run(whole)}, {_HOW[steady.option]}, machines alone"
        rows.append(("run_usd", "to the end", _known(whole), "usd_known", text))
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
    whole = run_usd(item)
    if whole is not None:
        rows.append(("run_usd", "whole run", _known(whole), "usd_known", _run(whole)))
    if not rows:
        return [Section("prices", "Prices", tuple(row[4] for row in price_rows(item)))]
    return [facts("prices", "Prices", [*rows, ("price_basis", "rest on", _RESTS_ON, "text", _RESTS_ON)])]


def costs_table(estimates: Sequence[Estimate]) -> list[Section]:
    """Several clusters: an hour and the whole run of each; nothing where none has a price."""
    rows: list[tuple[Value, ...]] = []
    for item in estimates:
        steady = None if item.prices is None else item.prices.steady
        spot = None if item.prices is None else item.prices.spot
        whole = run_usd(item)
        rows.append((
            (item.nodes, item.machine.instance_type), _hour(steady), None if whole is None else _known(whole),
            "" if whole is None else _span(whole), _region(steady), _hour(spot), _region(spot),
        ))  # fmt: skip
    if all(row[1] is None and row[5] is None for row in rows):
        return []
    columns = (
        Column("cluster", "cluster", "cluster"), Column("cluster_per_hour_usd", "an hour", "usd_known"),
        Column("run_usd", "to the end", "usd_known"), Column("run_interval", "80 %", "text"),
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
    costs = [
        (whole.value, at, whole) for at, item in enumerate(running) if (whole := run_usd(item)) is not None
    ]
    if not costs:
        return []
    _, at, whole = min(costs)
    text = f"{cluster(running[at].nodes, running[at].machine.instance_type)}: {_run(whole)}, machines alone"
    return [("cheapest", "cheapest", text, "text", text)]


def price_values(item: Estimate) -> dict[str, Any]:
    """The machine form; null where nobody asked for prices."""
    if item.prices is None:
        return {"prices": None}
    whole = run_usd(item)
    return {
        "prices": {
            "steady": _offer_values(item.prices.steady),
            "spot": _offer_values(item.prices.spot),
            "run_usd": whole and round(whole.value, 2),
            "run_low_usd": whole and round(whole.low, 2),
            "run_high_usd": whole and round(whole.high, 2),
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
    whole = run_usd(item)
    cells: tuple[Any, ...] = (None,) * 6
    if steady is not None:
        hour = round(steady.cluster_usd_per_hour, 6)
        cells = (steady.option, steady.usd_per_hour, hour, _where(steady), steady.as_of, steady.basis)
    run = (
        (None,) * 3
        if whole is None
        else tuple(round(value, 2) for value in (whole.value, whole.low, whole.high))
    )
    taken: tuple[Any, ...] = (None,) * 4
    if spot is not None:
        taken = (round(spot.cluster_usd_per_hour, 6), _where(spot), spot.as_of, spot.basis)
    return dict(zip(PRICE_COLUMNS, (*cells, *run, *taken), strict=True))


def _words(offer: Priced) -> str:
    """Return `$220.2 on demand in aws/us-east-2 (list price of 2026-07)`."""
    about = "about " if is_derived(offer.basis) else ""
    paid = offer.cluster_usd_per_hour
    amount = dollars(paid, known_places(paid, 0.0))
    return f"{about}{amount} {_HOW[offer.option]} in {_region(offer)} ({offer.basis} price of {offer.as_of})"


def _where(offer: Priced | None) -> str:
    return "" if offer is None else place(offer.provider, offer.region, offer.zone)


def _region(offer: Priced | None) -> str:
    return "" if offer is None else place(offer.provider, offer.region, "")


def _hour(offer: Priced | None) -> Value:
    if offer is None:
        return None
    return rounded(offer.cluster_usd_per_hour, known_places(offer.cluster_usd_per_hour, 0.0))


def _half(whole: Interval) -> float:
    return (whole.high - whole.low) / 2.0


def _known(whole: Interval) -> Value:
    return rounded(whole.value, known_places(whole.value, _half(whole)))


def _span(whole: Interval) -> str:
    places = known_places(whole.value, _half(whole))
    return f"{dollars(whole.low, places)} to {dollars(whole.high, places)}"


def _run(whole: Interval) -> str:
    return f"about {dollars(whole.value, known_places(whole.value, _half(whole)))} (80 %: {_span(whole)})"
