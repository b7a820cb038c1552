"""What is worked out for many candidates at once is what each would get by itself."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from planner.candidates.model import COLUMNS, IN_TURN, Candidates
from planner.candidates.wanted import Scope, Wanted, ceilings
from planner.candidates.ways import course, judged
from planner.candidates.ways.course import cells_of, frame_of, run_in_turn
from tests.planner.candidates.ways.cases import answer, on_demand, spot


@pytest.fixture(scope="module")
def made() -> Candidates:
    offers = [on_demand(), spot("0.50", "use1-az1"), spot("0.70", "use1-az2"), spot("0.90", "use1-az3")]
    found = answer(offers, 40.0).found
    assert found is not None
    return found.candidates


def test_cells_run_in_blocks_as_all_at_once(made: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    at = np.flatnonzero(made.kind == IN_TURN)
    cells = cells_of(made, at)
    frame = frame_of(made, cells)
    whole = run_in_turn(made, cells, frame)
    assert len(at) > 3
    monkeypatch.setattr(course, "_BLOCK", 3)
    blocks = run_in_turn(made, cells, frame)
    for field in fields(whole):
        assert getattr(blocks, field.name).tolist() == getattr(whole, field.name).tolist()


def test_alike_sets_are_judged_as_each_by_itself(made: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(made, np.flatnonzero(made.kind == IN_TURN))
    cells = cells.take(np.tile(np.arange(len(cells.base)), 2))
    at_once = judged.judged_turns(made, cells)
    each = np.arange(len(cells.base))
    monkeypatch.setattr(judged, "_alike", lambda _candidates, found, _frame: (each[: len(found.base)],) * 2)
    apart = judged.judged_turns(made, cells)
    assert at_once is not None and apart is not None
    for (name, column), other in zip(at_once[0].items(), apart[0].values(), strict=True):
        assert column.tolist() == other.tolist() or name == "p_meet"
    assert at_once[1].paid_hours.tolist() == apart[1].paid_hours.tolist()


def test_gangs_of_many_offers_have_the_risk_of_each_one(made: Candidates) -> None:
    context = made.context
    count = len(context.market.is_spot)
    rows, nodes = np.tile(np.arange(count), 3), np.repeat([2, 1, 16], count)
    many = context.gang_risk(rows, nodes)
    for number, (row, gang) in enumerate(zip(rows, nodes, strict=True)):
        one = context.gang_risk(np.asarray([row]), np.asarray([gang]))
        for field in fields(one.pool):
            assert getattr(many.pool, field.name)[number] == getattr(one.pool, field.name)[0]
        assert bool(many.recorded[number]) == bool(one.recorded[0])
        named = [
            risk.sources[int(risk.source[at])] if risk.source[at] >= 0 else ""
            for risk, at in ((many, number), (one, 0))
        ]
        assert named[0] == named[1]


@pytest.mark.parametrize("scope", [Scope.BEST, Scope.SHOWN, Scope.PLACES])
def test_ceilings_know_candidates_that_are_not_joined_yet(made: Candidates, scope: Scope) -> None:
    single, turns = (made.take(np.flatnonzero(mask)) for mask in (made.kind != IN_TURN, made.kind == IN_TURN))
    columns = {name: getattr(turns, name) for name in COLUMNS}
    for of_sets in (False, True):
        apart = ceilings(single, Wanted(scope=scope), of_sets=of_sets, more=[columns])
        assert apart.tolist() == ceilings(made, Wanted(scope=scope), of_sets=of_sets).tolist()
    assert not np.array_equal(apart, ceilings(single, Wanted(scope=scope), of_sets=True))
