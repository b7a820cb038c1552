"""The cheapest candidate of a deadline is the same whether all are judged or only those that may be it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.store.load import load_catalog
from planner.candidates.best_alone import BestAlone
from planner.candidates.choose import best_where
from planner.candidates.context import Context
from planner.candidates.engine import Engine
from planner.candidates.model import Candidates
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import prepare, unlimited
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from tests.draws import draws
from tests.planner.candidates.test_cheapest import DAY, EXAMPLES, OPTIONS
from tests.planner.job.test_spine_laws import a_job, some_offers
from tests.planner.spine_catalogs import NAN, Offer, loaded, make_world


def best(made: Candidates) -> tuple[object, ...] | None:
    """The cheapest candidate with its chance; the last digits hang on what is worked out beside it."""
    at = best_where(made, made.bits == 0, "cost")
    if at is None:
        return None
    one, chance = summarize(made, at, None), stated_chance(made, at)
    assert chance is not None
    figures = [float(one.cost_usd), one.hours, chance]
    return replace(one, cost_usd=one.cost_usd * 0, hours=0.0), *(float(f"{figure:.9g}") for figure in figures)


def check(context: Context, deadlines: list[float]) -> None:
    engine = Engine(context)
    alone, below = BestAlone(engine), np.inf
    for hours in deadlines:
        wanted = Wanted(Scope.BEST, below=below)
        whole = engine.at_hours(hours, wanted).candidates
        one = alone.at_hours(hours, below)
        assert best(one) == best(whole), hours
        assert len(one.bits) <= len(whole.bits)
        below = min(below, 1.001 * float(whole.cost_usd[whole.bits == 0].min(initial=np.inf)))


@draws(40)
@given(some_offers(2, 14), a_job(), st.booleans(), st.booleans(), st.integers(0, 3))
def test_on_invented_offers(
    offers: list[Offer], job: dict[str, Any], several: bool, scarce: bool, dear: int
) -> None:
    if not scarce:
        offers = [replace(offer, capacity=NAN) for offer in offers]
    if several:  # zones
        offers += [replace(offer, zone="b") for offer in offers if offer.purchase_option == "spot"]
    offers += [
        replace(offer, purchase_option="spot")
        for offer in offers[:dear]
        if offer.purchase_option == "on_demand"
    ]
    workload = loaded(job)
    context = prepare(workload, unlimited(workload.workload), make_world(offers), OPTIONS)
    check(context, np.geomspace(0.5, 400.0, 6).tolist())


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("bert-large", ("constraints.max_nodes=24",)), ("dpo-8b", ("constraints.deadline_confidence=0.5",)),
        ("owned-top-up", ()), ("resnet50-imagenet", ("spot.fallback=none",)),
        ("resnet50-imagenet", ("constraints.purchase_options=[on_demand]",)),
    ],
)  # fmt: skip
def test_on_the_bundled_catalog(name: str, changes: tuple[str, ...]) -> None:
    read = with_settings(load_workload(EXAMPLES / f"{name}.yaml"), changes)
    catalog = load_catalog(as_of=DAY)
    check(prepare(read, unlimited(read.workload), catalog, OPTIONS), [0.7, 3.0, 8.0, 200.0])


@pytest.mark.parametrize("option", ["spot", "on_demand"])
def test_offers_that_a_limit_removes_may_be_left_out(option: str) -> None:
    changes = (f"constraints.purchase_options=[{option}]", "constraints.providers=[gcp, azure]")
    read = with_settings(load_workload(EXAMPLES / "bert-large.yaml"), changes)
    context = prepare(read, read.workload, load_catalog(as_of=DAY), OPTIONS)
    whole, few = (
        Engine(context, admitted_only=only).at(context.dates.deadline, Wanted(Scope.BEST)).candidates
        for only in (False, True)
    )
    assert best(few) == best(whole) is not None
    assert len(few.bits) < len(whole.bits) and (few.bits == 0).sum() == (whole.bits == 0).sum()


@pytest.mark.parametrize("column", ["region", "instance_type"])
def test_candidates_of_some_offers_are_those_of_all(column: str) -> None:
    """Prices, times and limits of an offer do not depend on what else is looked at."""
    read = load_workload(EXAMPLES / "bert-large.yaml")
    context = prepare(read, read.workload, load_catalog(as_of=DAY), OPTIONS)
    names = context.market.offer_set.offers[column]
    among = np.asarray(names == names[np.flatnonzero(context.market.is_spot)[0]], dtype=np.bool_)
    whole, few = (Engine(context, among=some).coarse for some in (None, among))
    mine = np.flatnonzero(among[whole.offer])
    assert 0 < len(few.bits) == len(mine) < len(whole.bits)
    for column_of in ("offer", "nodes", "bits", "hours", "cost_usd", "waiting_hours", "interruptions"):
        assert np.array_equal(getattr(few, column_of), getattr(whole, column_of)[mine], equal_nan=True), (
            column_of
        )
    steps = (found.shapes["step_time_s"][found.shape] for found in (few, whole.take(mine)))
    assert np.array_equal(*steps)
