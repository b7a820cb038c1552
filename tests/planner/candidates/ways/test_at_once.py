"""What is worked out for many candidates at once is what each would get by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.asked.assumptions import load_assumptions
from planner.candidates.model import COLUMNS, IN_TURN, Candidates
from planner.candidates.wanted import Scope, Wanted, ceilings
from planner.candidates.ways import course, judged, pricing
from planner.candidates.ways.course import cells_of, frame_of, run_in_turn
from planner.candidates.ways.partners import cheapest_partner
from planner.spot.generate import CALM, generate_traces
from planner.spot.hazards import HazardModel, fit_hazards, make_table
from planner.spot.hazards_cells import N_AGES
from tests.planner.candidates.ways.cases import A10G, answer, on_demand, spot


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
    monkeypatch.setattr(judged, "alike", lambda _candidates, found, _frame: (each[: len(found.base)],) * 2)
    apart = judged.judged_turns(made, cells)
    assert at_once is not None and apart is not None
    for (name, column), other in zip(at_once[0].items(), apart[0].values(), strict=True):
        assert column.tolist() == other.tolist() or name == "p_meet"
    assert at_once[1].paid_hours.tolist() == apart[1].paid_hours.tolist()


def test_cells_are_priced_in_blocks_as_all_at_once(made: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(made, np.flatnonzero(made.kind == IN_TURN))
    ran = run_in_turn(made, cells, frame_of(made, cells))
    whole, turns = pricing.price_in_turn(made, cells, ran)
    monkeypatch.setattr(pricing, "_BLOCK", 3)
    columns, table = pricing.price_in_turn(made, cells, ran)
    assert len(cells.base) > 3
    for name, column in columns.items():
        assert column.tolist() == whole[name].tolist() or name == "p_meet"
    for name in (
        "offer",
        "paid_hours",
        "billed_hours",
        "instance_hours",
        "moved_gb",
        "moved_usd",
        "slack_hours",
    ):
        assert getattr(table, name).tolist() == getattr(turns, name).tolist()
    assert table.pool.rate.tolist() == turns.pool.rate.tolist()


def test_gangs_asked_for_before_are_looked_up_in_a_larger_set(made: Candidates) -> None:
    context = made.context
    rows, nodes = (
        np.tile(np.arange(len(context.market.is_spot)), 4),
        np.repeat([1, 2, 3, 5], len(context.market.is_spot)),
    )
    context.spot.gangs.clear()
    context.gang_risk(rows, nodes)
    some = np.asarray([9, 2, 2, 7])
    kept = context.gang_risk(rows[some], nodes[some])
    assert [len(sets) for sets in context.spot.gangs.values()] == [1]
    context.spot.gangs.clear()
    anew = context.gang_risk(rows[some], nodes[some])
    for field in fields(kept.pool):
        assert getattr(kept.pool, field.name).tolist() == getattr(anew.pool, field.name).tolist()
    assert [kept.sources[at] for at in kept.source] == [anew.sources[at] for at in anew.source]
    assert kept.recorded.tolist() == anew.recorded.tolist()


def test_questions_about_the_same_offers_keep_to_their_own_assumptions_and_records() -> None:
    """What public records say is kept for all of them; own records are one question's alone."""
    context = answer([on_demand(), spot("0.50", "use1-az1"), spot("0.40", "use1-az1", A10G)], 40.0).context
    rows = np.flatnonzero(context.market.is_spot)

    def rates(assumed: float, hazards: HazardModel | None = None) -> list[float]:
        assumptions = load_assumptions(
            dict.fromkeys(("spot_frailty_sd", "spot_unrecorded_frailty_sd"), assumed)
        )
        spot = replace(context.spot, hazards=hazards)  # as each question has one
        asked = replace(context, spot=spot).with_asked(replace(context.asked, assumptions=assumptions))
        return list(asked.gang_risk(rows, np.ones(len(rows), dtype=np.int64)).pool.rate)

    scarce = make_table(np.full(N_AGES, 9.0), np.full(N_AGES, 0.2), (0.0, 0.0), 1.0, "scarce")
    zones = [context.spot.spot_zone(row) for row in rows.tolist()]
    traces = generate_traces(zones, {zone.name: scarce for zone in zones}, 400, weather=CALM)
    own = fit_hazards(traces)
    alone = {}
    for case in ((0.1, None), (0.9, None), (0.1, own)):
        context.market.offer_set.__dict__.pop("_known", None)
        alone[case] = rates(*case)
    assert len({tuple(rate) for rate in alone.values()}) == 3
    for case in (*alone, *reversed(alone)):
        assert rates(*case) == alone[case]


places = st.lists(
    st.tuples(st.integers(-1, 3), st.floats(0.0, 1.0), st.integers(-1, 3)), min_size=1, max_size=3
)


@given(st.lists(st.sampled_from([1.0, 1.5]), min_size=4, max_size=4), places)
def test_a_set_falls_back_on_the_cheapest_and_of_equal_ones_where_it_mostly_is(
    usd: list[float], zones: list[tuple[int, float, int]]
) -> None:
    region = np.asarray([0, 0, 1, 2])
    market: Any = SimpleNamespace(
        region_of_offer=region, offer_set=SimpleNamespace(usd_per_hour=np.asarray(usd))
    )
    rows, shares = (
        np.asarray([[zone for zone, _, _ in zones]]),
        np.asarray([[share for _, share, _ in zones]]),
    )
    partner = np.full(4, -1)
    for zone, _, fallback in zones:
        partner[zone] = fallback if zone >= 0 else partner[zone]
    found = int(cheapest_partner(market, rows, shares, partner)[0])
    options = {int(partner[zone]) for zone, _, _ in zones if zone >= 0 and partner[zone] >= 0}
    if not options:
        assert found == -1
        return
    least = min(usd[row] for row in options)
    stays = {
        row: sum(share for zone, share, _ in zones if zone >= 0 and region[zone] == region[row])
        for row in options
        if usd[row] == least
    }
    assert found in stays
    assert stays[found] == pytest.approx(max(stays.values()))


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
