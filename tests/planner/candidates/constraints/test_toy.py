"""A new constraint is one class: gCO2e of a job, from a column invented here, without a change anywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planner.candidates.constraints.base import Constraint, Use, round_up
from planner.candidates.constraints.registry import registered
from planner.candidates.limits import mark_offers
from planner.job.explain import why_not
from planner.plan.relaxation import Change
from planner.plan.report import plan_answer
from planner.render import render_answer
from planner.workloads.answer import Answer
from tests.planner.spine_catalogs import A10G, L4, Offer, chosen, make_catalog, plan_on, work

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates

GRAMS_PER_HOUR = {"us-east-1": 300.0, "us-central1": 100.0}
OFFERS = [Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "3.0")]


class Grams(Constraint):
    """Most gCO2e of the whole job."""

    id = "toy_grams"
    words = "more gCO2e than the toy limit"
    short = "too dirty"
    paths = ("constraints.max_gco2e",)
    unit = "gCO2e"
    is_measured = True

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def grams(self, case: Case, rows: Ints, nodes: Ints, hours: Floats) -> Floats:
        regions = case.offer_set.offers["region"][rows]
        return np.asarray([GRAMS_PER_HOUR[region] for region in regions.tolist()]) * nodes * hours

    def mask(self, case: Case, made: Candidates) -> Bools:
        return self.grams(case, made.offer, made.nodes, made.paid_hours) > self.limit

    def distance(self, case: Case, made: Candidates, at: Ints) -> tuple[Ints, Floats]:
        return at, self.grams(case, made.offer[at], made.nodes[at], made.paid_hours[at])

    def change(self, case: Case, made: Candidates, at: int) -> Change:
        needed = round_up(float(self.distance(case, made, np.asarray([at]))[1][0]), 1.0)
        return Change(self.id, f"{self.limit:,.0f} g", f"{needed:,.0f} g", self.limit, needed)

    def fleet_uses(self, case: Case, rows: Ints, nodes: Ints, hours: Floats, setup: Floats) -> Iterable[Use]:
        none = np.zeros(len(rows))
        yield Use(self.id, "", none, self.limit, per_busy=self.grams(case, rows, nodes, hours))


def answer(limit: float | None, **changes: Any) -> Answer:
    job = work(constraints={"max_nodes": 1, **changes.pop("constraints", {})}, **changes)
    if limit is None:
        return plan_on(make_catalog(OFFERS), job)
    with registered(Grams(limit)):
        return plan_on(make_catalog(OFFERS), job)


def grams_of(plan: Any) -> float:
    return sum(GRAMS_PER_HOUR[line.region] * line.nodes * float(line.billed_hours) for line in plan.lines)


@pytest.fixture
def free() -> Iterator[Answer]:
    yield answer(None)


def test_it_removes_and_counts_and_says_so(free: Answer) -> None:
    assert [line.region for line in free.plan.lines] == ["us-east-1"]
    limit = grams_of(free.plan) - 1
    with registered(Grams(limit)):
        clean = plan_on(make_catalog(OFFERS), work(constraints={"max_nodes": 1}))
        text = "\n".join(
            why_not(clean.context.asked, clean.context.market, clean.found, A10G.instance_type, clean.plan)
        )
        shown = str(
            render_answer(plan_answer(clean.plan, verbose=True, details=["filters"]), "table", width=200)
        )
    assert [line.region for line in clean.plan.lines] == ["us-central1"]
    assert grams_of(clean.plan) <= limit
    (count,) = [count for count in clean.plan.filters if count.name == "toy_grams"]
    assert (count.removed, count.description) == (1, Grams.words)
    assert Grams.words in shown
    assert "  toy_grams: excludes 1 (1 only by this)" in text


def test_its_relaxation_is_true_and_the_smallest() -> None:
    tight = answer(1.0).plan
    assert tight.status == "infeasible"
    (item,) = [item for item in tight.relaxations if item.constraint == "toy_grams"]
    assert (item.current, item.note) == ("1 g", Grams.words)
    needed = float(item.needed.removesuffix(" g").replace(",", ""))
    assert answer(needed).plan.status == "planned"
    assert answer(needed - 2).plan.status == "infeasible"


def test_it_is_a_row_of_the_fleet_model() -> None:
    fleet: dict[str, Any] = {
        "kind": "fleet",
        "fleet": {"runs": 4},
        "constraints": {"max_nodes": 8, "deadline": "60h"},
    }
    free = answer(None, **fleet).plan
    assert {line.region for line in free.lines} == {"us-east-1"}
    limit = grams_of(free) * 0.6
    mixed = answer(limit, **fleet).plan
    assert {line.region for line in mixed.lines} >= {"us-central1"}
    assert grams_of(mixed) <= limit * 1.02  # billed by whole granules
    none = answer(1.0, **fleet).plan
    assert none.status == "infeasible"
    assert any(item.constraint == "toy_grams" for item in none.relaxations)


def test_it_is_gone_afterwards(free: Answer) -> None:
    assert chosen(answer(None)) == chosen(free)
    bits = mark_offers(
        free.context.market.offer_set, free.context.asked.workload.constraints, free.context.asked.job
    )
    assert not bits.any()
