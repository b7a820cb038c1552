"""The price of a machine over time and the list of snapshots, as answers; a sparkline for the eye."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render.model import Answer, Chart, Column, Value, table_section, versioned

if TYPE_CHECKING:
    from catalogs.inspection.price_history import PriceHistory, PricePoint
    from catalogs.store.snapshots import Snapshot

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDEST = 60
_COLUMNS = (
    "day",
    "as_of",
    "price_per_hour",
    "currency",
    "usd_per_hour",
    "place",
    "n_offers",
    "basis",
    "refused_by",
    "source",
    "snapshot",
)


def sparkline(values: Sequence[float | None]) -> str:
    """Draw values as a row of bars, one per value; a gap where there is none.

    The lowest bar is the lowest value, the highest the highest; equal values stand in the middle. A long
    series keeps its newest `60` values. Where a stream cannot show bars, `in_encoding` draws them in ASCII.
    """
    shown = list(values)[-_WIDEST:]
    drawn = [value for value in shown if value is not None]
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    middle, top = len(_BLOCKS) // 2, len(_BLOCKS) - 1
    marks = [
        " "
        if value is None
        else _BLOCKS[middle if high == low else round((value - low) / (high - low) * top)]
        for value in shown
    ]
    return "".join(marks)


def history_answer(history: PriceHistory) -> Answer:
    """Prices over time as an answer."""
    option = f"{history.purchase_option} {history.option_variant}".rstrip()
    place = history.region or "cheapest region"
    usd = [point.usd_per_hour for point in history.points]
    prices = [value for value in usd if value is not None]
    summary: tuple[str, ...] = ()
    if prices:
        text = f"{prices[-1]:.4f} USD/h; lowest {min(prices):.4f}, highest {max(prices):.4f}"
        summary = (f"{sparkline(usd)}  {text}",)
    rows = [_cells(point) for point in history.points]
    days = tuple(point.day.isoformat() for point in history.points)
    chart = Chart(
        "price", "", "lines", days, (("USD per hour", tuple(usd)),), "usd_price", "", drawn_only=True
    )
    columns = (
        Column("day", "day", "date"), Column("price_per_hour", "lowest price/h", "price"),
        Column("change_ratio", "change", "percent_change"), Column("place", "place", "text"),
        Column("as_of", "price as of", "date"), Column("snapshot", "snapshot", "text"),
    )  # fmt: skip
    section = table_section("prices", "Prices", columns, _points(history.points), charts=(chart,))
    return Answer(
        f"Price of {history.instance_type}", f"{history.provider} {history.instance_type}, {place}, {option}", summary,
        (section,), versioned(_values(history)), _COLUMNS, rows,
    )  # fmt: skip


def snapshots_answer(snapshots: Sequence[Snapshot]) -> Answer:
    """The list of snapshots as an answer."""
    values = [_snapshot_values(item) for item in snapshots]
    columns = (
        Column("provider", "provider", "text"), Column("day", "day", "date"), Column("snapshot", "snapshot", "text"),
        Column("n_instance_types", "types", "count"), Column("n_offers", "offers", "count"),
        Column("n_kept_regions", "kept", "count"), Column("oldest_as_of", "oldest price", "date"),
        Column("in_use", "", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            item.provider, item.as_of.isoformat(), item.name, item.manifest.n_instance_types, item.manifest.n_offers,
            len(item.kept_regions) or "", item.manifest.oldest_as_of, "in use" if item.is_current else "",
        )
        for item in snapshots
    ]  # fmt: skip
    note = "kept: regions whose last good prices were kept because a refresh did not reach them"
    notes = [note] if any(item.kept_regions for item in snapshots) else []
    flat = [{**row, "kept_regions": ";".join(row["kept_regions"])} for row in values]
    section = table_section("snapshots", "Snapshots", columns, rows, notes)
    return Answer(
        "Snapshots of the catalog", f"{len(snapshots)} snapshots", (), (section,), versioned({"snapshots": values}),
        list(values[0]), flat,
    )  # fmt: skip


def _points(points: Sequence[PricePoint]) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    last = None
    for point in points:
        usd = point.usd_per_hour
        change = usd / last - 1.0 if usd and last and usd != last else ""
        derived = point.basis == "derived"
        price: Value = "not offered"
        if point.price_per_hour:
            price = (Decimal(point.price_per_hour), point.currency, derived)
        refused = f"{point.place} (excluded by {point.refused_by})" if point.refused_by else point.place
        rows.append((point.day.isoformat(), price, change, refused, point.as_of, point.snapshot))
        last = usd or last
    return rows


def _values(history: PriceHistory) -> dict[str, Any]:
    return {
        "provider": history.provider,
        "instance_type": history.instance_type,
        "region": history.region or None,
        "purchase_option": history.purchase_option,
        "option_variant": history.option_variant or None,
        "points": [
            {name: None if value == "" else value for name, value in _cells(point).items()}
            for point in history.points
        ],
    }


def _cells(point: PricePoint) -> dict[str, Any]:
    return {name: getattr(point, name) for name in _COLUMNS} | {"day": point.day.isoformat()}


def _snapshot_values(one: Snapshot) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "day": one.as_of.isoformat(),
        "snapshot": one.name,
        "in_use": one.is_current,
        "n_instance_types": one.manifest.n_instance_types,
        "n_offers": one.manifest.n_offers,
        "oldest_as_of": one.manifest.oldest_as_of,
        "newest_as_of": one.manifest.newest_as_of,
        "saved_at": one.saved_at,
        "sha256": one.manifest.sha256,
        "kept_regions": dict(one.kept_regions),
    }
