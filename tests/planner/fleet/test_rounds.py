"""Rounds of a fleet: a mix with a reserve is looked for among few offers and is as good as among all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pytest

import planner
import planner.fleet.rounds
from planner.fleet.mix import Mix
from planner.fleet.question import FleetInput
from planner.fleet.rounds import Round
from planner.fleet.search import FleetResult
from planner.fleet.workers import Workers
from planner.plan.model import Plan
from solvers.problem.options import SolveOptions

pytestmark = pytest.mark.catalog("small")
CORE = 20  # offers in the restricted model, so that the small catalog has one


@contextmanager
def _asked() -> Iterator[list[FleetInput]]:
    """The questions that are solved inside the block, each by way of a restricted model."""
    solve, asked = planner.fleet.rounds.solve_fleet, []

    def listed(question: FleetInput, options: SolveOptions, **named: Any) -> FleetResult:
        asked.append(question)
        return solve(question, SolveOptions(options.gap, options.time_limit_s, core_columns=CORE), **named)

    with (
        mock.patch.object(planner.fleet.rounds, "solve_fleet", listed),
        mock.patch.object(planner.fleet.rounds, "_NEARBY", CORE),
    ):
        yield asked


TIME_LIMIT_S = 200.0


def _planned() -> Plan:
    """A plan that needs a reserve."""
    settings = {
        "constraints.deadline_confidence": 0.99,
        "constraints.deadline": "46h",
        "constraints.providers": ["gcp", "azure"],
    }
    return planner.optimize(
        "examples/hpo-fleet.yaml", as_of="2026-11-28", time_limit_s=TIME_LIMIT_S, settings=settings
    )


@dataclass(frozen=True)
class AmongLikely:
    """A plan made among likely offers, the questions solved for it, and the time given to each division in runs."""

    plan: Plan
    few: list[FleetInput]
    limits_s: list[float]


@pytest.fixture(scope="module")
def among_likely() -> AmongLikely:
    divide, limits_s = planner.fleet.rounds.in_runs, []

    def timed(mix: Mix, question: FleetInput, units: float, time_limit_s: float) -> Mix | None:
        limits_s.append(time_limit_s)
        return divide(mix, question, units, time_limit_s)

    with _asked() as few, mock.patch.object(planner.fleet.rounds, "in_runs", timed):
        return AmongLikely(_planned(), few, limits_s)


def test_a_mix_with_a_reserve_costs_among_likely_offers_what_it_costs_among_all(
    among_likely: AmongLikely,
) -> None:
    plan, few = among_likely.plan, among_likely.few

    def everyone(asked: Round) -> Workers:
        return asked.workers

    with _asked() as many, mock.patch.object(Round, "among", everyone):
        again = _planned()
    assert plan.lines == again.lines
    assert plan.total_usd == again.total_usd
    assert len(few) == len(many) > 4
    assert sum(one.n_options for one in few) < 0.8 * sum(one.n_options for one in many)


def test_whole_runs_are_divided_within_the_time_of_the_question(among_likely: AmongLikely) -> None:
    limits_s = among_likely.limits_s
    assert limits_s
    assert max(limits_s) <= TIME_LIMIT_S / 2
    assert limits_s == sorted(limits_s, reverse=True)  # each has a share of what is left


def test_where_likely_offers_have_no_mix_all_are_asked(
    among_likely: AmongLikely,
) -> None:
    def hardly_any(asked: Round) -> Workers:
        return asked.workers if asked.likely is None else asked.workers.take(np.zeros(1, dtype=np.int64))

    with _asked(), mock.patch.object(Round, "among", hardly_any):
        again = _planned()
    assert among_likely.plan.total_usd == again.total_usd
