"""What `catalog doctor` found, as text and as JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from catalogs.tables.model import offer_id
from planner.render.terminal import terminal_width
from planner.render.text import columns

if TYPE_CHECKING:
    from catalogs.inspection.diff import PriceMove
    from catalogs.inspection.doctor import Examination
    from catalogs.inspection.history import HistoryHealth

_MIN_WIDTH = 60
_JSON_SCHEMA_VERSION = 1


def examination_text(examination: Examination, fmt: str) -> str:
    """Render what `catalog doctor` found as `table` or `json`."""
    if fmt == "json":
        return json.dumps(_examination_values(examination), indent=2, sort_keys=True, default=str) + "\n"
    width = max(terminal_width(sys.stdout), _MIN_WIDTH)
    rows: list[tuple[str, ...]] = [
        (
            health.manifest.provider,
            str(health.manifest.n_instance_types),
            str(health.manifest.n_offers),
            str(health.n_regional_offers),
            str(health.n_admitted),
            f"{health.newest_age_days} d",
            f"{health.oldest_age_days} d",
            health.manifest.sha256[:12],
        )
        for health in examination.providers
    ]
    total = [str(sum(int(row[at]) for row in rows)) for at in range(1, 5)]
    rows.append(("all", *total, "", "", ""))
    heads = ("provider", "types", "offers", "regional", "admitted", "newest", "oldest", "sha256")
    lines = [*columns(heads, rows, "lrrrrrrl", width), ""]
    for health in examination.providers:
        name = health.manifest.provider
        lines += [
            f"{name}: {count} offer{'s' * (count > 1)} excluded by {flag}"
            for flag, count in health.refused.items()
        ]
        if health.unpriced_types:
            count = len(health.unpriced_types)
            types = ", ".join(health.unpriced_types)
            lines.append(f"{name}: no price for {count} type{'s' * (count > 1)}: {types}")
        lines += [f"{name}: refused row: {fault}" for fault in health.faults[:20]]
    lines += (
        [f"known regions without an offer: {', '.join(examination.idle_regions)}"]
        if examination.idle_regions
        else []
    )
    lines += (
        [f"unknown regions: {', '.join(examination.unknown_regions)}"] if examination.unknown_regions else []
    )
    lines += [line for one in examination.history for line in _history_lines(one)]
    lines += [f"broken: {message}" for message in examination.broken]
    lines.append("the catalog is intact" if examination.is_healthy else "the catalog is broken")
    return "\n".join(part for line in lines for part in _wrapped(line, width)) + "\n"


def _history_lines(one: HistoryHealth) -> list[str]:
    """What the history of one provider holds, and what in it asks for a look."""
    span = f", {one.oldest} to {one.newest}" if one.oldest else ""
    lines = [f"{one.provider}: {one.n_snapshots} refreshed snapshots{span}"]
    old = [f"{region} ({days} d)" for region, days in one.kept_age_days.items()]
    lines += (
        [f"{one.provider}: kept from before, as no refresh reached them: {', '.join(old)}"] if old else []
    )
    if one.missing_regions:
        lines.append(
            f"{one.provider}: regions lost since the snapshot before: {', '.join(one.missing_regions)}"
        )
    if one.disagreements:
        worst = ", ".join(_disagreement(move) for move in one.disagreements[:3])
        lines.append(
            f"{one.provider}: {len(one.disagreements)} of {one.n_compared} prices are more than 20 % from the "
            f"bundled ones: {worst}; `planner catalog diff bundled latest --provider {one.provider}` lists them"
        )
    lines += [f"{one.provider}: {one.n_leftovers} leftovers of killed writers"] if one.n_leftovers else []
    return [*lines, *(f"broken: {message}" for message in one.damaged)]


def _disagreement(move: PriceMove) -> str:
    prices = f"{move.old} {move.old_currency} -> {move.new} {move.new_currency}"
    return f"{offer_id(move.key).partition('/')[2]} {prices}"


def _history_values(one: HistoryHealth) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "n_snapshots": one.n_snapshots,
        "oldest": one.oldest,
        "newest": one.newest,
        "damaged": one.damaged,
        "n_leftovers": one.n_leftovers,
        "kept_age_days": dict(one.kept_age_days),
        "missing_regions": one.missing_regions,
        "n_compared_with_bundled": one.n_compared,
        "disagreements": [
            {
                "offer_id": offer_id(move.key),
                "bundled_price_per_hour": move.old,
                "refreshed_price_per_hour": move.new,
                "change_ratio": None if math.isnan(move.change_ratio) else move.change_ratio,
            }
            for move in one.disagreements
        ],
    }


def _examination_values(examination: Examination) -> dict[str, Any]:
    providers = [
        {
            "provider": health.manifest.provider,
            "sha256": health.manifest.sha256,
            "n_instance_types": health.manifest.n_instance_types,
            "n_offers": health.manifest.n_offers,
            "n_regional_offers": health.n_regional_offers,
            "n_admitted": health.n_admitted,
            "oldest_as_of": health.manifest.oldest_as_of,
            "newest_as_of": health.manifest.newest_as_of,
            "newest_age_days": health.newest_age_days,
            "flags": dict(health.flags),
            "refused": dict(health.refused),
            "unpriced_types": list(health.unpriced_types),
            "faults": [str(fault) for fault in health.faults],
        }
        for health in examination.providers
    ]
    return {
        "schema_version": _JSON_SCHEMA_VERSION,
        "directory": str(examination.directory),
        "healthy": examination.is_healthy,
        "broken": list(examination.broken),
        "idle_regions": list(examination.idle_regions),
        "unknown_regions": list(examination.unknown_regions),
        "providers": providers,
        "history": [_history_values(one) for one in examination.history],
    }


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line at spaces, and nowhere else, so that it fits; what follows is indented by two more."""
    import textwrap

    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
