"""Limits on what is in force at the same time: units of a pool, and dollars an hour of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.commitments.model import Cap, CommitColumn

if TYPE_CHECKING:
    from planner.inputs.commit_schema import CommitQuestion


def caps_of(question: CommitQuestion, columns: Sequence[CommitColumn], periods: int) -> tuple[Cap, ...]:
    """Return each limit of the question for each set of its columns that are active in one period.

    A column alone needs none, as its own bound keeps the limit, and neither does a part of a larger set.

    Args:
        question: its options hold the limits.
        columns: what may be bought; those of a pool count units, those of a plan dollars per hour.
        periods: how many periods the horizon has.
    """
    options = question.options
    limits = {
        number: options.max_instances[pool.name]
        for number, pool in enumerate(question.pools)
        if pool.name in options.max_instances
    }
    out = [
        cap
        for pool, most in [*limits.items(), (None, options.max_usd_per_hour)]
        if most is not None
        for cap in _largest(columns, pool, most, periods)
    ]
    return tuple(out)


def _largest(columns: Sequence[CommitColumn], pool: int | None, most: float, periods: int) -> list[Cap]:
    """The sets of columns of a pool, or of plans, that are active together and within no other set."""
    sets = {
        frozenset(
            number
            for number, column in enumerate(columns)
            if column.pool == pool and column.is_active(period)
        )
        for period in range(periods)
    }
    kept = [one for one in sets if len(one) > 1 and not any(one < other for other in sets)]
    return [Cap(columns, most) for columns in sorted(tuple(sorted(one)) for one in kept)]
