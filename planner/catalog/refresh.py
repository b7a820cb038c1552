"""What a refresh did, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

from planner.version import __version__

if TYPE_CHECKING:
    from catalogs.refresh.report import Outcome, RefreshReport

SCHEMA_VERSION = 1
_SHOWN = 3
_NAMED_QUOTES = 500


def refresh_document(report: RefreshReport) -> dict[str, Any]:
    """The report as plain values; units stand in the names."""
    today = date.fromisoformat(report.as_of)
    return {
        "schema_version": SCHEMA_VERSION,
        "planner_version": __version__,
        "as_of": report.as_of,
        "wall_s": round(report.wall_s, 3),
        "is_good": report.is_good,
        "providers": [_outcome(outcome, today) for outcome in report.outcomes],
    }


def refresh_json(report: RefreshReport) -> str:
    """The report as JSON, with a line end."""
    return json.dumps(refresh_document(report), indent=2, ensure_ascii=False) + "\n"


def _outcome(outcome: Outcome, today: date) -> dict[str, Any]:
    return {
        "provider": outcome.provider,
        "status": outcome.status,
        "n_instance_types": outcome.n_instance_types,
        "n_offers": outcome.n_offers,
        "n_kept_offers": outcome.n_kept_offers,
        "kept_regions": dict(outcome.kept_regions),
        "n_without_accelerator": outcome.n_without_accelerator,
        "n_refused": sum(outcome.refused.values()),
        "refused": dict(outcome.refused),
        "refused_examples": list(outcome.refused_examples),
        "quarantine": [
            {
                "offer_id": quote.offer_id,
                "price_per_hour": quote.row["price_per_hour"],
                "currency": quote.row["currency"],
                "reason": quote.reason,
                "accepted_price_per_hour": quote.accepted_price_per_hour,
                "accepted_as_of": quote.accepted_as_of,
            }
            for quote in outcome.quarantine
        ],
        "not_understood": [
            {"what": one.what, "name": one.name, "reason": one.reason} for one in outcome.not_understood
        ],
        "failures": [
            {"kind": one.kind, "region": one.region, "api": one.api, "message": one.message}
            for one in outcome.failures
        ],
        "remarks": list(outcome.remarks),
        "last_good_as_of": outcome.last_good_as_of,
        "last_good_age_days": outcome.age_days(today),
        "seconds": dict(outcome.seconds),
        "sha256": outcome.sha256,
    }


def refresh_table(report: RefreshReport) -> str:
    """One line per provider, with a line end."""
    lines = [
        f"{'provider':<12}{'status':<11}{'types':>7}{'offers':>9}{'kept':>7}{'refused':>9}{'seconds':>9}"
    ]
    for outcome in report.outcomes:
        refused, spent = sum(outcome.refused.values()), sum(outcome.seconds.values())
        counts = f"{outcome.n_instance_types:>7}{outcome.n_offers:>9}{outcome.n_kept_offers:>7}{refused:>9}"
        lines.append(f"{outcome.provider:<12}{outcome.status:<11}{counts}{spent:>9.1f}")
    return "\n".join(lines) + "\n"


def refresh_errors(report: RefreshReport) -> Iterator[str]:
    """Why a provider, region or interface was not refreshed, one sentence each: all that a quiet run shows."""
    for outcome in report.outcomes:
        status = "stored in part" if outcome.is_stored else outcome.status
        shown = outcome.failures if outcome.is_stored else outcome.failures[:1]
        yield from (f"{outcome.provider}: {status}: {failure.message}" for failure in shown)


def refresh_warnings(report: RefreshReport) -> Iterator[str]:
    """What a reader must know beside the table: failures, ages, refused rows, things not understood."""
    today = date.fromisoformat(report.as_of)
    for outcome in report.outcomes:
        for failure in outcome.failures:
            yield f"{outcome.provider}: {failure.kind}: {failure.message}"
        if not outcome.is_stored:
            age = outcome.age_days(today)
            fallback = (
                f"the prices of {outcome.last_good_as_of} ({age} days old) stay in use"
                if age is not None
                else "there are no older prices of it"
            )
            yield f"{outcome.provider}: {fallback}"
        for region, as_of in outcome.kept_regions.items():
            yield f"{outcome.provider} {region}: offers kept from before, the oldest of {as_of}"
        for reason, number in outcome.refused.items():
            yield f"{outcome.provider}: {number} refused: {reason}"
        yield from _quarantine(outcome)
        if outcome.not_understood:
            yield f"{outcome.provider}: {_not_understood(outcome)}"
        yield from (f"{outcome.provider}: {remark}" for remark in outcome.remarks)


def _quarantine(outcome: Outcome) -> Iterator[str]:
    """Each quote that waits, and how to confirm it."""
    for quote in outcome.quarantine[:_NAMED_QUOTES]:
        row = quote.row
        kept = f"{quote.accepted_price_per_hour} of {quote.accepted_as_of} stays in use"
        instead = kept if quote.accepted_price_per_hour else "not used"
        yield (
            f"quarantine: {quote.offer_id}: {row['price_per_hour']} {row['currency']}/h is {quote.reason}; {instead}"
        )
    if outcome.quarantine:
        more = len(outcome.quarantine) - _NAMED_QUOTES
        rest = f"{more} more quotes are in quarantine; " if more > 0 else ""
        yield (
            f"{outcome.provider}: {rest}`planner catalog quarantine` lists them, `planner catalog accept OFFER_ID` "
            "confirms"
        )


def _not_understood(outcome: Outcome) -> str:
    first = [f"{item.what} {item.name} ({item.reason})" for item in outcome.not_understood[:_SHOWN]]
    more = len(outcome.not_understood) - len(first)
    remainder = f" and {more} more (--json lists all)" if more else ""
    return f"{len(outcome.not_understood)} not understood: {'; '.join(first)}{remainder}"
