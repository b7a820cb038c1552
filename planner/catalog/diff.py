"""What changed between two catalogs, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from catalogs.model import offer_id
from planner.catalog.offers import json_text, place_text, plain_table, wrap_line

if TYPE_CHECKING:
    from catalogs.inspection.diff import CatalogDiff, PriceMove

_JSON_SCHEMA_VERSION = 1


def diff_text(diff: CatalogDiff, fmt: str, max_results: int = 20) -> str:
    """Render a comparison as `table` (at most `max_results` lines of each kind; 0: all) or `json`."""
    if fmt == "json":
        return json_text(_values(diff))
    moves, shown = diff.moves, diff.moves[: max_results or len(diff.moves)]
    lines = [
        f"{diff.old} -> {diff.new}",
        f"offers  {len(diff.new_offers)} new, {len(diff.gone_offers)} gone, {len(moves)} with another price, "
        f"{diff.n_small_moves} moved by less, {diff.n_same} the same",
        f"types   {len(diff.new_types)} new, {len(diff.gone_types)} gone, {len(diff.renamed_types)} renamed, "
        f"{len(diff.changed_types)} changes of a description",
    ]
    if shown:
        lines += ["", *_moves_table(shown).split("\n")]
        lines += [f"{len(shown)} of {len(moves)} prices shown"] if len(shown) < len(moves) else []
    lines += ["", *_lists(diff, max_results)]
    return "\n".join(wrapped for line in lines for wrapped in wrap_line(line)).rstrip() + "\n"


def change_text(ratio: float) -> str:
    """A change as a percentage with its sign; `currency` where it cannot be told."""
    if math.isnan(ratio):
        return "currency"
    digits = 1 if abs(ratio) < 10 else 0
    text = f"{ratio * 100:+.{digits}f} %"
    return text if text.strip("+-0. %") else f"{ratio * 100:+.2g} %"


def _moves_table(moves: Sequence[PriceMove]) -> str:
    rows = []
    for move in moves:
        provider, region, zone, instance_type, option, variant = move.key
        place = place_text(provider, region, zone)
        bought = f"{option} {variant}".rstrip()
        prices = (f"{move.old} {move.old_currency}", f"{move.new} {move.new_currency}")
        rows.append((place, instance_type, bought, *prices, change_text(move.change_ratio), move.new_as_of))
    heads = ("place", "instance type", "option", "before/h", "after/h", "change", "as of")
    return plain_table(heads, rows, numbers=(3, 4, 5))


def _lists(diff: CatalogDiff, limit: int) -> list[str]:
    renamed = [f"{one.provider}/{one.old} -> {one.new}" for one in diff.renamed_types]
    changed = [
        f"{one.provider}/{one.instance_type} {one.column}: {one.old or 'unknown'} -> {one.new or 'unknown'}"
        for one in diff.changed_types
    ]
    named: Iterable[tuple[str, Sequence[str]]] = (
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
    for name, texts in named:
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
        "schema_version": _JSON_SCHEMA_VERSION,
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
