"""Sets of zones against plain loops, and what is left out of them before they are worked out."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.ways import build
from planner.candidates.ways.build import cost_floor, set_cells, spot_candidates
from planner.candidates.ways.choice import MAX_CHOICE, MAX_STEADY, MAX_ZONES, sets_of
from planner.candidates.ways.judged import judged_turns
from planner.candidates.ways.partners import on_demand_partners
from tests.draws import draws
from tests.planner.candidates.ways.test_laws import DEADLINES, job, some_places
from tests.planner.spine_catalogs import Offer, make_world, plan_on

if TYPE_CHECKING:
    from planner.market.model import Market

ZONES, REGIONS = 40, 4


@st.composite
def groups_of_zones(draw: st.DrawFn) -> dict[str, Any]:
    """Spot offers of a few groups, many of them in one region, some of a whole region."""
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 60))
    region = seed.integers(0, REGIONS, ZONES)
    return {
        "rows": seed.integers(0, ZONES, count), "group": np.sort(seed.integers(0, 3, count)), "region": region,
        "whole": seed.random(ZONES) < draw(st.sampled_from([0.0, 0.2])), "cheap": seed.random(count) < 0.5,
        "down": seed.permutation(count) / count,
    }  # fmt: skip


@draws(60)
@given(groups_of_zones(), st.booleans())
def test_sets_are_those_that_loops_find(made: dict[str, Any], one_region: bool) -> None:
    offers = SimpleNamespace(equals=lambda _name, _text: made["whole"])
    market = SimpleNamespace(
        pool_of_offer=np.arange(ZONES),
        region_of_offer=made["region"],
        offer_set=SimpleNamespace(offers=offers),
    )
    names = ("rows", "group", "cheap", "down")
    found = sets_of(cast("Market", market), *(made[name] for name in names), one_region=one_region)
    assert [tuple(at for at in row if at >= 0) for row in found.tolist()] == looped(made, one_region)


def looped(made: dict[str, Any], one_region: bool) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    region = made["region"][made["rows"]]
    for group in sorted(set(made["group"].tolist())):
        mine = np.flatnonzero(made["group"] == group).tolist()
        zones = [at for k, at in enumerate(mine) if made["rows"][at] not in made["rows"][mine[:k]]]
        steady = sorted(zones[MAX_CHOICE:], key=lambda at: float(made["down"][at]))[:MAX_STEADY]
        known = sorted([*zones[:MAX_CHOICE], *steady])
        places = sorted({int(region[at]) for at in zones if at not in known})
        blocks = [known, *([at for at in zones if region[at] == place][:MAX_CHOICE] for place in places)]
        for number, block in enumerate(blocks):
            for size in range(2, MAX_ZONES + 1):
                for one in combinations(block, size):
                    if made["cheap"][one[0]] and not (number and set(one) <= set(known)):
                        out += [one] if apart(made, one, one_region) else []
    return out


def apart(made: dict[str, Any], one: tuple[int, ...], one_region: bool) -> bool:
    region, whole = made["region"][made["rows"]], made["whole"][made["rows"]]
    alike = [(a, b) for a, b in combinations(one, 2) if region[a] == region[b]]
    pairs = len(one) * (len(one) - 1) // 2
    return not any(whole[a] or whole[b] for a, b in alike) and (not one_region or len(alike) == pairs)


@draws(25)
@given(some_places(), DEADLINES, st.sampled_from(["on_demand", "none"]))
def test_what_is_left_out_early_is_dearer_or_not_sure(
    offers: list[Offer], deadline: float, fallback: str
) -> None:
    made = plan_on(make_world(offers), job(deadline, spot={"fallback": fallback})).found
    assert made is not None
    candidates, market = made.candidates, made.context.market
    at, nothing = spot_candidates(candidates), np.zeros(len(market.is_spot), dtype=np.int64)
    partners = on_demand_partners(market, nothing), on_demand_partners(market, nothing, anywhere=True)
    if not len(at):
        return
    useful = np.ones(len(at), dtype=np.bool_)
    cells = set_cells(candidates, at, partners, useful, one_region=False)
    with mock.patch.object(build, "_may_be_sure", return_value=np.True_):
        every = set_cells(candidates, at, partners, useful, one_region=False)
    judged, all_judged = judged_turns(candidates, cells), judged_turns(candidates, every)
    assert (judged is None) == (all_judged is None)
    if judged is None or all_judged is None:
        return
    cost = judged[0]["cost_usd"]
    assert np.array_equal(cost, all_judged[0]["cost_usd"])
    assert cells is not None
    bought = np.column_stack([candidates.nodes[cells.base], cells.zones, cells.on_demand]).tolist()
    floors = dict(zip(map(tuple, bought), cost_floor(candidates, cells).tolist(), strict=True))
    assert len(floors) == len(bought)
    found = np.column_stack([judged[0]["nodes"], judged[1].offer]).tolist()
    assert all(floors[tuple(one)] <= usd for one, usd in zip(found, cost.tolist(), strict=True))
