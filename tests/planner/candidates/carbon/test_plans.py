"""Plans say what they draw and emit: laws, limits, and tampering that `verify` finds."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tariffs.carbon import CarbonTables, Grid, load_carbon
from planner.candidates.carbon import HIGH, LOW, MID, Machines, draw_of_shapes
from planner.candidates.footprint import footprints_of, operational_kg
from planner.workloads.answer import Answer
from tests.draws import draws
from tests.planner.spine_catalogs import A10G, L4, Offer, make_catalog, plan_on, work

OFFERS = [
    Offer(A10G, "us-east-1", "1.00"),
    Offer(A10G, "eu-north-1", "1.30"),
    Offer(L4, "us-central1", "3.00"),
    Offer(A10G, "ap-southeast-6", "0.90"),
]
BRACKET = (LOW, MID, HIGH)


def answer(**limits: Any) -> Answer:
    return plan_on(make_catalog(OFFERS), work(constraints={"max_nodes": 4, **limits}))


@pytest.fixture(scope="module")
def free() -> Answer:
    return answer()


def machines(count: int = 3, pue: float = 1.2, grid: float = 300.0) -> Machines:
    return Machines(
        np.full(count, 5600.0), np.tile([96.0, 96.0, 96.0], (count, 1)), np.tile([pue, pue, pue], (count, 1)),
        np.full(count, grid), np.full(count, 1.2),
    )  # fmt: skip


@given(low=st.floats(0.1, 0.9), more=st.floats(0.0, 0.1), pue=st.floats(1.0, 2.0), extra=st.floats(0.0, 1.0))
@draws(30)
def test_more_draw_and_more_overhead_never_draw_less(
    low: float, more: float, pue: float, extra: float
) -> None:
    draw = np.full(3, low)
    assert (machines(pue=pue).kwh_per_hour(draw + more) >= machines(pue=pue).kwh_per_hour(draw)).all()
    assert (machines(pue=pue + extra).kwh_per_hour(draw) >= machines(pue=pue).kwh_per_hour(draw)).all()
    levels = [machines(pue=pue).kwh_per_hour(draw, level)[0] for level in BRACKET]
    assert levels == sorted(levels)


def test_an_h100_node_in_matrix_work_draws_what_was_measured() -> None:
    node = machines(1)
    node = Machines(node.accelerator_w, np.full((1, 3), 192.0), node.pue, node.grid, node.grid_spread)
    watts = node.node_w(np.asarray([0.82]))[0]
    assert watts == pytest.approx(7750, rel=0.05)  # arXiv:2506.14551


def test_a_plan_adds_up_and_holds(free: Answer) -> None:
    carbon = free.plan.carbon
    assert carbon is not None and carbon.operational_kgco2e is None  # the cheapest region publishes no grid
    assert carbon.energy_kwh == pytest.approx(sum(line.energy_kwh or 0 for line in carbon.lines))
    assert "grid intensity of aws/ap-southeast-6" in carbon.unknown[0]
    known = answer(regions=["us-east-1"]).plan.carbon
    assert known is not None and known.operational_kgco2e is not None and known.energy_kwh is not None
    grid = load_carbon().grid("aws", "us-east-1")
    assert grid is not None
    assert known.operational_kgco2e == pytest.approx(known.energy_kwh * grid.gco2e_per_kwh / 1000)
    assert known.operational_low_kgco2e < known.operational_kgco2e < known.operational_high_kgco2e  # type: ignore[operator]
    # the grid widens it
    assert known.operational_high_kgco2e / known.operational_kgco2e > known.energy_high_kwh / known.energy_kwh  # type: ignore[operator]


def test_a_limit_refuses_the_unknown_and_moves_the_plan(free: Answer) -> None:
    assert free.plan.lines[0].region == "ap-southeast-6"
    dirty = answer(max_kgco2e=1e6).plan
    assert dirty.lines[0].region == "us-east-1"
    assert {count.name: count.removed for count in dirty.filters}["unknown_carbon"] >= 1
    kg = dirty.carbon.operational_kgco2e  # type: ignore[union-attr]
    clean = answer(max_kgco2e=kg * 0.99).plan
    assert clean.lines[0].region == "eu-north-1" and clean.total_usd > dirty.total_usd
    assert clean.carbon.operational_kgco2e < kg  # type: ignore[union-attr,operator]


def test_the_limit_needed_is_true_and_the_smallest() -> None:
    tight = answer(max_kgco2e=1e-6).plan
    (item,) = [item for item in tight.relaxations if item.constraint == "carbon"]
    needed = float(item.needed.split()[0].replace(",", ""))
    assert answer(max_kgco2e=needed).plan.status == "planned"
    assert answer(max_kgco2e=needed * 0.998).plan.status == "infeasible"


def test_halving_the_grid_halves_the_emissions(free: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert free.found is not None
    before = operational_kg(free.found.candidates)
    known = ~np.isnan(before)
    assert known.any() and not known.all()  # unknown stays unknown
    grid = CarbonTables.grid

    def half(self: CarbonTables, provider: str, region: str) -> Grid | None:
        found = grid(self, provider, region)
        return None if found is None else found._replace(gco2e_per_kwh=found.gco2e_per_kwh / 2)

    monkeypatch.setattr(CarbonTables, "grid", half)
    again = answer()
    assert again.found is not None
    after = operational_kg(again.found.candidates)
    np.testing.assert_allclose(after[known], before[known] / 2)
    assert np.isnan(after[~known]).all()
    kwh = [
        [energy for energy, _ in footprints_of(found.candidates, range(len(found.candidates.offer)))]
        for found in (free.found, again.found)
    ]
    np.testing.assert_array_equal(*kwh)


def test_a_step_that_waits_draws_less(free: Answer) -> None:
    assert free.found is not None
    shapes = free.found.candidates.shapes
    draw = draw_of_shapes(shapes, "transformer")
    figures = load_carbon().draws
    fits = np.asarray(shapes["fits"], dtype=bool)
    assert ((draw >= figures["waiting"].mid) & (draw <= figures["compute"].mid))[fits].all()
    busy = shapes.with_columns(dp_comm_s=np.zeros(shapes.n_rows), tp_comm_s=np.zeros(shapes.n_rows))
    assert (draw_of_shapes(busy, "transformer") >= draw - 1e-12).all()


def test_a_fleet_keeps_the_limit_with_all_its_workers() -> None:
    job = work(kind="fleet", fleet={"runs": 40}, constraints={"max_nodes": 40, "deadline": "10d"})
    free = plan_on(make_catalog(OFFERS[:2]), job).plan
    assert free.carbon is not None and free.carbon.operational_kgco2e is not None
    assert {line.region for line in free.lines} == {"us-east-1"}
    limit = free.carbon.operational_kgco2e / 3
    job["constraints"]["max_kgco2e"] = limit
    kept = plan_on(make_catalog(OFFERS[:2]), job).plan
    assert kept.carbon is not None and kept.carbon.operational_kgco2e is not None
    assert kept.carbon.operational_kgco2e <= limit * (1 + 1e-6)
    assert kept.total_usd > free.total_usd and "eu-north-1" in {line.region for line in kept.lines}


def test_older_plans_are_read_without_carbon(free: Answer) -> None:
    values = copy.deepcopy(free.plan.to_dict())
    values.pop("carbon")
    assert type(free.plan).from_dict(values).carbon is None


def test_the_baseline_of_a_fleet_says_what_it_emits() -> None:
    job = work(kind="fleet", fleet={"runs": 40}, constraints={"max_nodes": 40, "deadline": "10d"})
    plan = plan_on(make_catalog(OFFERS[:2]), job).plan
    assert plan.savings is not None and plan.savings.baseline is not None and plan.carbon is not None
    base = plan.savings.baseline
    grid = load_carbon().grid(base.provider, base.region)
    assert grid is not None and base.energy_kwh is not None
    assert base.operational_kgco2e == pytest.approx(base.energy_kwh * grid.gco2e_per_kwh / 1000)
    # the plan is this fleet here: one on-demand offer does the work
    assert base.energy_kwh == pytest.approx(plan.carbon.energy_kwh)
    unknown = plan_on(make_catalog(OFFERS[3:]), job).plan
    assert unknown.savings is not None and unknown.savings.baseline is not None
    assert unknown.savings.baseline.energy_kwh is not None
    assert unknown.savings.baseline.operational_kgco2e is None
