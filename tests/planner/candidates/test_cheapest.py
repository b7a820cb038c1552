"""The cheapest candidate is the same whether all candidates are priced or only those that may be it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.candidates import cheapest
from planner.candidates.cheapest import build_cheapest
from planner.candidates.choose import choose
from planner.candidates.context import Context
from planner.candidates.decisions import ON_DEMAND, best_of
from planner.candidates.engine import CandidateSearch, build
from planner.candidates.plan_parts.summary import describe, summarize
from planner.candidates.prepare import prepare
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from tests.draws import draws
from tests.planner.job.test_spine_laws import a_job, some_offers
from tests.planner.spine_catalogs import NAN, Offer, loaded, make_world

EXAMPLES = Path(__file__).parents[3] / "examples"
DAY = date(2026, 11, 22)
OPTIONS = Options(datetime(2026, 11, 22, tzinfo=UTC), as_of=DAY)


def told(found: CandidateSearch, *, on_demand: bool = False) -> str | None:
    """The best candidate, or the best on demand, as a plan would tell it."""
    made = found.candidates
    if on_demand:
        at = best_of(made, ON_DEMAND)
    else:
        choice = choose(made, made.context.asked.workload.preferences.objective)
        at = None if choice is None else choice.winner
    if at is None:
        return None
    one = summarize(made, at, None)
    parts = ", ".join(f"{part.region}/{part.zone} {part.purchase_option}" for part in one.parts)
    return f"{describe(one)} ({parts}): {one.cost_usd} USD, {one.hours!r} h, {found.refined_hardware} refined"


def check(context: Context) -> tuple[CandidateSearch, CandidateSearch]:
    whole, found = build(context), build_cheapest(context)
    assert told(found) == told(whole)
    if context.asked.workload.baseline is None:
        assert told(found, on_demand=True) == told(whole, on_demand=True)
    return whole, found


@draws(60)
@given(some_offers(2, 14), a_job(), st.integers(1, 3), st.booleans())
def test_on_invented_offers(offers: list[Offer], job: dict[str, Any], sample: int, several: bool) -> None:
    offers = [replace(offer, capacity=NAN) for offer in offers]
    if several:  # zones
        offers += [replace(offer, zone="b") for offer in offers if offer.purchase_option == "spot"]
    workload = loaded(job)
    context = prepare(workload, workload.workload, make_world(offers), OPTIONS)
    with mock.patch.object(cheapest, "SAMPLE", sample):
        check(context)


CASES = {
    "bert-large": ((), ("constraints.deadline=40d",), ("constraints.max_nodes=24",), ("spot.fallback=none",)),
    "llama-3-8b": ((), ("baseline=null",), ("constraints.deadline=10d",)),
    "resnet50-imagenet": (("spot.zones=single",), ("constraints.purchase_options=[on_demand]",)),
}


@pytest.mark.parametrize(
    ("name", "changes"), [(name, own) for name, all_of in CASES.items() for own in all_of]
)
def test_on_the_bundled_catalog(name: str, changes: tuple[str, ...]) -> None:
    workload = with_settings(load_workload(EXAMPLES / f"{name}.yaml", cache=False), changes)
    whole, found = check(prepare(workload, workload.workload, load_catalog(as_of=DAY), OPTIONS))
    assert len(found.candidates.offer) < len(whole.candidates.offer) / 2


@pytest.mark.parametrize(
    ("name", "changes"),
    [("resnet50-imagenet", ("preferences.objective=time",)), ("low-carbon", ()), ("onprem-comparison", ())],
)
def test_other_objectives_and_own_machines(name: str, changes: tuple[str, ...]) -> None:
    """All candidates of one offer are priced, but ways in turn are those that may be the best alone."""
    workload = with_settings(load_workload(EXAMPLES / f"{name}.yaml", cache=False), changes)
    check(prepare(workload, workload.workload, load_catalog(as_of=DAY), OPTIONS))


def test_a_job_that_nothing_holds_has_all_its_candidates() -> None:
    workload = with_settings(
        load_workload(EXAMPLES / "bert-large.yaml", cache=False), ("constraints.deadline=30m",)
    )
    whole, found = check(prepare(workload, workload.workload, load_catalog(as_of=DAY), OPTIONS))
    assert len(found.candidates.all_bits()) == len(whole.candidates.all_bits())
