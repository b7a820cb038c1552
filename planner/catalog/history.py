"""The price of a machine over time and the list of snapshots, as text; a sparkline for the eye."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from planner.catalog.diff import change_text
from planner.catalog.offers import json_text, plain_table, wrap_line

if TYPE_CHECKING:
    from catalogs.store.price_history import PriceHistory, PricePoint
    from catalogs.store.snapshots import Snapshot

_JSON_SCHEMA_VERSION = 1
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*#@"
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


def sparkline(values: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """Draw values as a row of bars, one per value; a gap where there is none.

    The lowest bar is the lowest value, the highest the highest; equal values stand in the middle. A long
    series keeps its newest `60` values.
    """
    bars = _ASCII if ascii_only else _BLOCKS
    shown = list(values)[-_WIDEST:]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    out = []
    for value in shown:
        if value is None:
            out.append(" ")
        elif high == low:
            out.append(bars[len(bars) // 2])
        else:
            out.append(bars[round((value - low) / (high - low) * (len(bars) - 1))])
    return "".join(out)


def can_draw(stream: TextIO) -> bool:
    """Whether a stream takes the block characters."""
    try:
        _BLOCKS.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def history_text(history: PriceHistory, fmt: str, *, ascii_only: bool = False) -> str:
    """Render prices over time as `table`, `json` or `csv`."""
    if fmt == "json":
        return json_text(_values(history))
    if fmt == "csv":
        return _csv([_cells(point) for point in history.points], _COLUMNS)
    option = f"{history.purchase_option} {history.option_variant}".rstrip()
    place = history.region or "cheapest region"
    usd = [point.usd_per_hour for point in history.points]
    known = [value for value in usd if value is not None]
    lines = [f"{history.provider} {history.instance_type}, {place}, {option}"]
    if known:
        bars = sparkline(usd, ascii_only=ascii_only)
        lines.append(f"{bars}  {known[-1]:.4f} USD/h; lowest {min(known):.4f}, highest {max(known):.4f}")
    lines += ["", *_points_table(history.points).split("\n")]
    return "\n".join(wrapped for line in lines for wrapped in wrap_line(line)) + "\n"


def snapshots_text(snapshots: Sequence[Snapshot], fmt: str) -> str:
    """Render the list of snapshots as `table`, `json` or `csv`."""
    rows = [_snapshot_values(one) for one in snapshots]
    if fmt == "json":
        return json_text({"schema_version": _JSON_SCHEMA_VERSION, "snapshots": rows})
    if fmt == "csv":
        return _csv([{**row, "kept_regions": ";".join(row["kept_regions"])} for row in rows], list(rows[0]))
    heads = ("provider", "day", "snapshot", "types", "offers", "kept", "oldest price", "")
    table = [
        (
            one.provider,
            one.as_of.isoformat(),
            one.name,
            str(one.manifest.n_instance_types),
            str(one.manifest.n_offers),
            str(len(one.kept_regions) or ""),
            one.manifest.oldest_as_of,
            "in use" if one.is_current else "",
        )
        for one in snapshots
    ]
    kept = "kept: regions whose last good prices were kept because a refresh did not reach them"
    more = [kept] if any(one.kept_regions for one in snapshots) else []
    return "\n".join([plain_table(heads, table, numbers=(3, 4, 5)), *more]) + "\n"


def _points_table(points: Sequence[PricePoint]) -> str:
    rows, last = [], None
    for point in points:
        usd = point.usd_per_hour
        change = change_text(usd / last - 1.0) if usd and last and usd != last else ""
        mark = "!" if point.refused_by else "~" if point.basis == "derived" else ""
        price = f"{point.price_per_hour} {point.currency}{mark}" if point.price_per_hour else "not offered"
        rows.append((point.day.isoformat(), price, change, point.place, point.as_of, point.snapshot))
        last = usd or last
    heads = ("day", "lowest price/h", "change", "place", "price as of", "snapshot")
    return plain_table(heads, rows, numbers=(1, 2))


def _values(history: PriceHistory) -> dict[str, Any]:
    return {
        "schema_version": _JSON_SCHEMA_VERSION,
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


def _csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if row[name] is None else row[name] for name in columns} for row in rows)
    return out.getvalue()
