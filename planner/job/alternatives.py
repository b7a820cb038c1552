"""The decisions beside the plan, in brief: those next to it with what each stands for, and those that buyers weigh."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from planner.candidates.choices import weigh_choices
from planner.candidates.decisions import FACETS, list_decisions
from planner.candidates.footprint import footprints_of
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.ways.chances import stated_chance
from planner.plan.brief import Choice, Folded, Summary

if TYPE_CHECKING:
    from planner.candidates.model import Candidates

_NAMED = frozenset(facet.id for facet in FACETS)


def alternatives_of(
    candidates: Candidates, winner: int, limit: int
) -> tuple[tuple[Summary, ...], tuple[Folded, ...]]:
    """Return the alternatives by rank, and the decisions folded into the plan and into them.

    Args:
        candidates: all candidates.
        winner: the plan's, which differences are to.
        limit: alternatives to list; the best of each further provider and way to buy are added.
    """
    listed = list_decisions(candidates, limit)
    assert listed[0].at == winner, "the best decision is the plan"
    shown = [fold.best for fold in listed[0].folded if fold.differs_in in _NAMED]
    footprints_of(candidates, [*(one.at for one in listed), *shown])  # at once, for the summaries
    others = tuple(replace(summarize(candidates, one.at, winner), brings=one.brings) for one in listed[1:])
    folded = tuple(
        Folded(
            rank, fold.differs_in, fold.count,
            summarize(candidates, fold.best, winner) if rank == 1 and fold.differs_in in _NAMED else None,
        )
        for rank, one in enumerate(listed, start=1) for fold in one.folded
    )  # fmt: skip
    return others, folded


def choices_of(candidates: Candidates, winner: int) -> tuple[Choice, ...]:
    """The decisions that buyers weigh, the plan first.

    Args:
        candidates: all candidates.
        winner: the plan's, which differences are to.
    """
    start = candidates.context.dates.start
    weighed = weigh_choices(candidates, winner)
    footprints_of(candidates, [one.at for one in weighed])
    return tuple(
        Choice(
            one.kinds, None if one.at == winner else summarize(candidates, one.at, winner),
            moment_text(start + timedelta(hours=float(candidates.hours[one.at]))), stated_chance(candidates, one.at),
        )
        for one in weighed
    )  # fmt: skip
