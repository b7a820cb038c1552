"""`optimize --prices live`: prices asked for before a plan is made, stored as `catalog refresh` stores them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from catalogs.providers.base import FetchOptions
from planner.errors import CatalogError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.refresh.report import Outcome, RefreshReport
    from catalogs.refresh.run import OnProgress
    from planner.candidates.sources import Asked


def ask_prices(asked: Asked, on_progress: OnProgress | None = None) -> RefreshReport:
    """Ask for the prices that a workload may use, and store them.

    Args:
        asked: whom and where to ask.
        on_progress: as of `catalogs.refresh.run.refresh`.

    Raises:
        InputError: plans do not use the store (a named or signed catalog), or nobody can be asked.
        CatalogError: nothing at all was refreshed; names each provider's failure. InputError where it is that no region
            of theirs fits.
    """
    from catalogs.refresh.run import refresh

    for name in ("PLANNER_CATALOG_DIR", "PLANNER_CATALOG_KEY"):
        if os.environ.get(name):
            raise InputError(f"--prices live: {name} is set, so plans do not use refreshed prices; unset it")
    if not asked.providers:
        raise InputError(f"--prices live: there is no way to query the prices of {', '.join(asked.unasked)}")
    report = refresh(asked.providers, FetchOptions(regions=asked.regions), on_progress=on_progress)
    if not any(outcome.is_stored for outcome in report.outcomes):
        why = [failure for result in report.outcomes for failure in result.failures[:1]]
        raise (InputError if {result.kind for result in why} == {"input"} else CatalogError)(
            f"--prices live: nothing was refreshed: {'; '.join(result.message for result in why)}. "
            "Without --prices live the stored prices are used"
        )
    return report


def live_notes(asked: Asked, report: RefreshReport) -> tuple[str, ...]:
    """Who answered when; then, for the plan too, a warning for each whose prices are not of today."""
    stored = [outcome.provider for outcome in report.outcomes if outcome.is_stored]
    notes = [f"asked on {report.as_of} of {', '.join(stored)}", *filter(None, map(_stale, report.outcomes))]
    if asked.unasked:
        notes.append(f"no live prices of {', '.join(asked.unasked)}: there is no way to query them")
    return tuple(notes)


def _stale(one: Outcome) -> str:
    """Which prices of a provider are not of today, and why; "" where all are."""
    if not one.failures:
        return ""
    kinds = ", ".join(dict.fromkeys(failure.kind.replace("_", " ") for failure in one.failures))
    if one.is_stored:
        dates = {failure.region: one.kept_regions.get(failure.region, "") for failure in one.failures}
        places = ", ".join(
            f"{region or 'every region'}{day and f' (of {day})'}" for region, day in dates.items()
        )
        return f"live prices of {one.provider} only in part ({kinds}); earlier ones are used in {places}"
    if not one.last_good_as_of:
        return f"no live prices of {one.provider} ({kinds}), and no earlier ones"
    return f"no live prices of {one.provider} ({kinds}): those of {one.last_good_as_of} are used"


def live_messages(report: RefreshReport) -> Iterator[str]:
    """For standard error, beside the notes: each failure with its remedy, and quotes that wait for a person."""
    for outcome in report.outcomes:
        yield from (f"{outcome.provider}: {failure.kind}: {failure.message}" for failure in outcome.failures)
        if outcome.quarantine:
            yield (
                f"{outcome.provider}: {len(outcome.quarantine)} quotes moved too far to be used unseen: "
                "see `planner catalog quarantine`"
            )
