"""Chances of fleets, worked out once per question in a search of many seeds.

A check that plans the same workload twice asks how likely the same workers are done by the same hours, and most of
what a fleet with spot costs in CPU is incomplete beta functions. `Progress.chance` is a pure function of its arrays.
So is what the judge knows of a job on spot (`Elapsed`): both plans and each number of workers ask it of the same work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np

from planner.fleet.chance import Progress
from planner.judge.chance import Elapsed

_MOST_ANSWERS = 20_000


@contextlib.contextmanager
def remembered_chances() -> Iterator[None]:
    """Stand before the planner's chances and the judge's."""
    elapsed = lru_cache(_MOST_ANSWERS)(Elapsed)
    with (
        mock.patch.object(Progress, "chance", remembered_chance()),
        mock.patch("planner.judge.chance.Elapsed", elapsed),
        mock.patch("planner.judge.spot_policies.Elapsed", elapsed),
    ):
        yield


def remembered_chance() -> Callable[[Progress, float, float], float]:
    """`Progress.chance` with a memory."""
    known: dict[tuple[Any, ...], float] = {}
    ask = Progress.chance

    def chance(progress: Progress, at_hours: float, work: float) -> float:
        key = (at_hours, work, *_parts(progress))
        if key not in known:
            if len(known) >= _MOST_ANSWERS:
                known.clear()
            known[key] = ask(progress, at_hours, work)
        return known[key]

    return chance


def _parts(value: object) -> Iterator[object]:
    """All that a value consists of, with the shapes of its arrays, in an order that tells two values apart."""
    if isinstance(value, np.ndarray):
        yield value.shape, value.dtype.str, value.tobytes()
    elif isinstance(value, tuple):
        yield len(value)
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    else:
        yield value
