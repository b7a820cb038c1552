"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.spot.policy.baselines import Greedy, Margin, OnDemand, SpotOnly, UniformProgress
from planner.spot.policy.job import SpotJob
from planner.spot.policy.view import ArrayPolicy

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable
    from planner.spot.policy.survival import Memory

Tables = Mapping[str, "HazardTable"]
"""Per zone name what is known of its spells."""


def _survival(job: SpotJob, tables: Tables, memory: Memory | None) -> ArrayPolicy:
    from planner.spot.policy.survival import SurvivalPolicy

    return SurvivalPolicy(job, tables, memory)


POLICIES: Mapping[str, Callable[[SpotJob, Tables, Memory | None], ArrayPolicy]] = {
    "survival": _survival,
    "uniform_progress": lambda job, *_: UniformProgress(job),
    "greedy": lambda job, *_: Greedy(job),
    "margin": lambda job, *_: Margin(job),
    "on_demand": lambda job, *_: OnDemand(job),
    "spot_only": lambda job, *_: SpotOnly(job),
}
"""Name to maker; every policy but `spot_only` meets each deadline that on-demand can meet."""


def make_policy(name: str, job: SpotJob, tables: Tables, memory: Memory | None = None) -> ArrayPolicy:
    """The named policy for a job.

    Args:
        name: key of `POLICIES`.
        job: what must be done.
        tables: hazards per zone name; only `survival` looks at them.
        memory: of what `survival` solved before; default: this process's own.

    Raises:
        InputError: no policy of that name.
    """
    if name not in POLICIES:
        raise InputError(f"policy: {name!r} is not known; choose one of {', '.join(POLICIES)}")
    return POLICIES[name](job, tables, memory)
