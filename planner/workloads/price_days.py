"""One workload planned with the prices of two days."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from catalogs.store.read import history_directory
from catalogs.store.snapshots import bundled_snapshot, provider_places, stored_snapshots
from planner.asked.options import Options
from planner.errors import CatalogError
from planner.plan.diff import diff_plans
from planner.workloads.answer import optimize

if TYPE_CHECKING:
    from datetime import date

    from planner.inputs.load import LoadedWorkload
    from planner.plan.diff import PlanDiff


def held_days() -> dict[str, tuple[date, ...]]:
    """Days of the prices that are held, bundled and refreshed, by provider, from old to new."""
    out: dict[str, tuple[date, ...]] = {}
    for name, (bundled, stored) in provider_places(history_directory()).items():
        days = {one.as_of for one in (stored_snapshots(stored) if stored else [])}
        days |= {bundled_snapshot(bundled).as_of} if bundled else set()
        out[name] = tuple(sorted(days))
    return out


def check_held(days: tuple[date, ...], providers: tuple[str, ...] | None) -> None:
    """Refuse days for which a provider's prices are not held: plans of other providers would not compare.

    Args:
        days: asked for.
        providers: that the workload admits; None: all.

    Raises:
        CatalogError: names the days that are held.
    """
    held = {name: found for name, found in held_days().items() if providers is None or name in providers}
    missing = {
        day: lacking
        for day in days
        if (lacking := [name for name, found in held.items() if found and found[0] > day])
    }
    if missing:
        lacks = "; ".join(f"{day} ({', '.join(names)})" for day, names in missing.items())
        known = "; ".join(
            f"{name}: {', '.join(day.isoformat() for day in found)}"
            for name, found in held.items() if any(name in names for names in missing.values())
        )  # fmt: skip
        raise CatalogError(
            f"--as-of: no prices are held for {lacks}. Held: {known}. Name days from these on, or refresh the catalog "
            "from now on to keep a history (`planner catalog refresh`)"
        )


def diff_days(loaded: LoadedWorkload, old: date, new: date) -> PlanDiff:
    """The plan of a workload with the prices of one day, against that with another day's.

    Both are planned as on their day: start, age and expected change of prices count from it.

    Raises:
        CatalogError: prices of a day are not held.
    """
    check_held((old, new), loaded.workload.constraints.providers)
    before, after = (
        optimize(loaded, Options(datetime.combine(day, time(), tzinfo=UTC), as_of=day)).plan
        for day in (old, new)
    )
    return diff_plans(before, after, old.isoformat(), new.isoformat())
