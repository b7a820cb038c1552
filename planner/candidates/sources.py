"""Whom a workload lets the planner ask for live prices and quotas, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalogs.patterns import matches
from catalogs.providers.registry import COMES_WITH, DEFAULT, provider_names
from planner.errors import InputError
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.schema import Constraints


@record(frozen=True)
class Asked:
    """Who is asked for live figures, and where.

    Attributes:
        providers: sources to ask, by registry id.
        regions: region patterns, empty for all.
        unasked: providers that the workload allows and that nobody can be asked about.
        is_named: whether the workload names its providers; then one without a login is a failure.
    """

    providers: tuple[str, ...]
    regions: tuple[str, ...]
    unasked: tuple[str, ...]
    is_named: bool


def asked_of(limits: Constraints) -> Asked:
    """The providers and regions that a workload allows, as far as they can be asked; without limits the large clouds.

    Args:
        limits: the workload's constraints.
    """
    if limits.providers is None:
        return Asked(DEFAULT, _regions(limits), (), False)
    known = provider_names()
    sources = {name: COMES_WITH.get(name, name) for name in limits.providers}
    asked = dict.fromkeys(source for source in sources.values() if source in known)
    unasked = tuple(name for name, source in sources.items() if source not in known)
    return Asked(tuple(asked), _regions(limits), unasked, True)


def _regions(limits: Constraints) -> tuple[str, ...]:
    """Patterns of the regions that the workload allows; of a residency its regions by name."""
    patterns = tuple(limits.regions or ())
    if limits.residency is None:
        return patterns
    from catalogs.tables.regions import regions_in

    places = sorted({place for group in limits.residency for place in regions_in(group)})
    named = [
        f"{provider}/{region}"
        for provider, region in places
        if not patterns
        or any(matches(one, f"{provider}/{region}" if "/" in one else region) for one in patterns)
    ]
    if not named:
        raise InputError("constraints.residency and constraints.regions leave no region to ask for")
    return tuple(named)
