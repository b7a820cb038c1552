"""What changed between two catalogs, as an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from catalogs.tables.model import offer_id
from planner.render.model import ALL_ROWS, Answer, Column, Section, Value, table_section, versioned
from planner.render.units import bare

if TYPE_CHECKING:
    from catalogs.inspection.diff import CatalogDiff, PriceMove

_MOVED = ("offer_id", "old_price_per_hour", "new_price_per_hour", "old_currency", "new_currency", "change_ratio",
          "old_as_of", "new_as_of")  # fmt: skip
_COLUMNS = (
    Column("place", "place", "place"), Column("instance_type", "instance type", "text"),
    Column("option", "option", "option"), Column("before", "before/h", "price"), Column("after", "after/h", "price"),
    Column("change_ratio", "change", "percent_change"), Column("as_of", "as of", "date"),
)  # fmt: skip


def diff_answer(diff: CatalogDiff, max_results: int = 20) -> Answer:
    """A comparison as an answer; texts show at most `max_results` of each kind (0: all)."""
    moves = diff.moves
    summary = (
        f"offers  {len(diff.new_offers)} new, {len(diff.gone_offers)} gone, {len(moves)} with another price, "
        f"{diff.n_small_moves} moved by less, {diff.n_same} the same",
        f"types   {len(diff.new_types)} new, {len(diff.gone_types)} gone, {len(diff.renamed_types)} renamed, "
        f"{len(diff.changed_types)} changes of a description",
    )
    shown = max_results or ALL_ROWS
    sections = (
        [table_section("moved", "Prices", _COLUMNS, [_row(m) for m in moves], shown=shown)] if moves else []
    )
    lists = tuple(_lists(diff, max_results))
    sections += [Section("changes", "Offers, types and regions", lists)] if lists else []
    values = _values(diff)
    return Answer(
        "Changes of the catalog", f"{diff.old} -> {diff.new}", summary, tuple(sections), versioned(values), _MOVED,
        values["moved"],
    )  # fmt: skip


def change_text(ratio: float) -> str:
    """A change as a percentage with its sign; `currency` where it is unknown."""
    return "currency" if math.isnan(ratio) else bare(ratio, "percent_change", "USD")


def price_cell(text: str, *rest: str | bool) -> Value:
    """A price of a snapshot with its currency; "unknown" where the text is not a number to pay."""
    try:
        price = Decimal(text)
    except InvalidOperation:
        return "unknown"
    return (price, *rest) if price.is_finite() else "unknown"


def _row(move: PriceMove) -> tuple[Value, ...]:
    provider, region, zone, instance_type, option, variant = move.key
    change = "currency" if math.isnan(move.change_ratio) else move.change_ratio
    return (
        (provider, region, zone), instance_type, (option, variant), price_cell(move.old, move.old_currency),
        price_cell(move.new, move.new_currency), change, move.new_as_of,
    )  # fmt: skip


def _lists(diff: CatalogDiff, limit: int) -> list[str]:
    renamed = [f"{change.provider}/{change.old} -> {change.new}" for change in diff.renamed_types]
    changed = [
        f"{change.provider}/{change.instance_type} {change.column}: "
        f"{change.old or 'unknown'} -> {change.new or 'unknown'}"
        for change in diff.changed_types
    ]
    lists: Iterable[tuple[str, Sequence[str]]] = (
        ("only in the new one, whole provider", diff.new_providers),
        ("only in the old one, whole provider", diff.gone_providers),
        ("new types", _joined(diff.new_types)),
        ("gone types", _joined(diff.gone_types)),
        ("probably renamed", renamed),
        ("still listed, no longer priced", _joined(diff.unpriced_types)),
        ("new regions", _joined(diff.new_regions)),
        ("gone regions", _joined(diff.gone_regions)),
        ("descriptions", changed),
        ("new offers", [offer_id(key) for key in diff.new_offers]),
        ("gone offers", [offer_id(key) for key in diff.gone_offers]),
    )
    out = []
    for name, texts in lists:
        if not texts:
            continue
        shown = texts[: limit or len(texts)]
        more = f", ... ({len(texts)} in all)" if len(shown) < len(texts) else ""
        out.append(f"{name}: {', '.join(shown)}{more}")
    return out


def _joined(keys: Iterable[tuple[str, ...]]) -> list[str]:
    return ["/".join(key) for key in keys]


def _values(diff: CatalogDiff) -> dict[str, Any]:
    moves = [
        {
            "offer_id": offer_id(move.key),
            "old_price_per_hour": move.old,
            "new_price_per_hour": move.new,
            "old_currency": move.old_currency,
            "new_currency": move.new_currency,
            "change_ratio": None if math.isnan(move.change_ratio) else move.change_ratio,
            "old_as_of": move.old_as_of,
            "new_as_of": move.new_as_of,
        }
        for move in diff.moves
    ]
    changed = [
        {
            "provider": c.provider,
            "instance_type": c.instance_type,
            "column": c.column,
            "old": c.old,
            "new": c.new,
        }
        for c in diff.changed_types
    ]
    return {
        "old": diff.old,
        "new": diff.new,
        "new_providers": diff.new_providers,
        "gone_providers": diff.gone_providers,
        "new_regions": _joined(diff.new_regions),
        "gone_regions": _joined(diff.gone_regions),
        "new_types": _joined(diff.new_types),
        "gone_types": _joined(diff.gone_types),
        "renamed_types": [{"provider": r.provider, "old": r.old, "new": r.new} for r in diff.renamed_types],
        "unpriced_types": _joined(diff.unpriced_types),
        "changed_types": changed,
        "new_offers": [offer_id(key) for key in diff.new_offers],
        "gone_offers": [offer_id(key) for key in diff.gone_offers],
        "moved": moves,
        "n_small_moves": diff.n_small_moves,
        "n_same": diff.n_same,
    }
