"""The law of the one engine: a portfolio of one job = a pipeline of one task = `optimize` = that point of the frontier.

In money, to the cent, and infeasible together: on the bundled catalog, and on small random ones. A fleet of one worker
is the same question where one node, bought on demand, does the work.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from planner.asked.options import Options
from planner.candidates.prepare import prepare
from planner.fleet.answer import plan_fleet
from planner.inputs.load import LoadedWorkload, load_workload
from planner.inputs.schema import Fleet, Workload
from planner.job.answer import plan_job
from planner.workloads.answer import optimize
from tests.conftest import ROOT
from tests.draws import share_of
from tests.planner.job.one_engine_answers import Asked, cents
from tests.planner.job.test_spine_brute_force import random_instance
from tests.planner.spine_catalogs import NOW, bundled_tariffs, loaded, make_catalog

DAY = datetime(2026, 11, 22, tzinfo=UTC)
DEADLINES = 50
EACH = share_of(8)  # small instances of a test; `benchmarks.brute_force` asks thousands


@dataclass(frozen=True)
class Case:
    """An example on some of its offers, and a span of deadlines in hours: the soonest are too soon."""

    example: str
    first: float
    last: float
    constraints: dict[str, Any]


CASES = [
    Case("bert-large", 2.5, 300.0, {"regions": ("us-east-1", "us-west-2")}),
    Case("resnet50-imagenet", 1.0, 60.0, {"regions": ("us-central1", "europe-west4"), "max_nodes": 2}),
    Case("llama-3-8b", 60.0, 900.0, {"regions": ("us-east-1", "us-east-2")}),
    Case("owned-top-up", 12.0, 200.0, {"regions": ("us-east-1",)}),
    Case("llama-70b-lora", 2.0, 90.0, {"regions": ("eu-central-1", "europe-west4")}),
    Case("mixtral-eu", 4.0, 300.0, {"max_nodes": 12, "regions": ("eu-west-1",)}),
]


@functools.cache
def bundled() -> Catalog:
    """The bundled catalog, read once."""
    return load_catalog(None, as_of=DAY.date())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.example)
def test_every_question_has_the_same_answer(case: Case) -> None:
    given = load_workload(ROOT / "examples" / f"{case.example}.yaml", cache=False)
    limits = given.workload.constraints.model_copy(
        update={**case.constraints, "budget_usd": None, "deadline": None}
    )
    workload = given.workload.model_copy(update={"constraints": limits})
    hours = tuple(np.exp(np.linspace(np.log(case.first), np.log(case.last), DEADLINES)).tolist())
    asked = Asked(_with(given, workload), bundled(), Options(DAY, as_of=DAY.date()), hours)
    assert asked.disagreements() == []


@pytest.mark.parametrize("block", range(4))
def test_small_instances_have_one_answer(block: int) -> None:
    for seed in range(block * EACH, (block + 1) * EACH):
        check_one_engine(seed)


def test_a_task_is_not_too_late_for_lack_of_one_zone() -> None:
    # the least time of a task was that of spot in one zone: in two zones it waits less
    check_one_engine(700784)


def check_one_engine(seed: int) -> None:
    """One small random catalog is answered alike at six deadlines."""
    sections, offers = random_instance(seed)
    rng = np.random.default_rng(seed)
    hours = tuple(np.sort(rng.uniform(1.0, 30.0, 6)).round(3).tolist())
    constraints = {k: v for k, v in sections["constraints"].items() if k not in ("deadline", "budget_usd")}
    # spot with a fall-back and in several zones, which the brute force of the instances leaves out
    sections = {k: v for k, v in sections.items() if k != "spot"} | {"constraints": constraints}
    with (
        mock.patch("planner.candidates.prepare.load_tariffs", bundled_tariffs),
        mock.patch("planner.pipelines.answer.load_tariffs", bundled_tariffs),
    ):
        asked = Asked(loaded(sections), make_catalog(offers), Options(NOW), hours)
        disagreements = asked.disagreements()
    assert disagreements == [], seed


def test_the_command_chooses_what_the_engine_gives() -> None:
    """The answers above stand for `planner optimize`: its own plan costs the same, to the cent."""
    given = load_workload(ROOT / "examples" / "bert-large.yaml", cache=False)
    for hours in (17, 180):
        update = {"deadline": timedelta(hours=hours), "budget_usd": None}
        limits = given.workload.constraints.model_copy(update=update)
        workload = given.workload.model_copy(update={"constraints": limits})
        one = _with(given, workload)
        plan = optimize(one, Options(DAY, as_of=DAY.date())).plan
        asked = Asked(one, bundled(), Options(DAY, as_of=DAY.date()), (float(hours),))
        assert cents(asked.by_optimize()[0]) == cents(plan.total_usd)


# bert-large beyond 20 h: hours are billed whole, and another offer than the best of unrounded hours is cheaper
ONE_WORKER = [
    ("bert-large", (20, 40, 54), 0.9), ("resnet50-imagenet", (3, 6, 60), 0.5), ("llama-70b-lora", (5, 20), 0.9),
]  # fmt: skip


@pytest.mark.parametrize(("example", "deadlines", "confidence"), ONE_WORKER)
def test_a_fleet_of_one_worker_is_a_job_on_one_node(
    example: str, deadlines: tuple[int, ...], confidence: float
) -> None:
    """Bought on demand both ask the same and say the same of it: in money, to the cent."""
    given = load_workload(ROOT / "examples" / f"{example}.yaml", cache=False)
    places = next(case.constraints["regions"] for case in CASES if case.example == example)
    options = Options(DAY, as_of=DAY.date(), gap=0.0)
    for hours in deadlines:
        limits = given.workload.constraints.model_copy(
            update={
                "regions": places, "budget_usd": None, "deadline": timedelta(hours=hours), "max_nodes": 1,
                "deadline_confidence": confidence, "purchase_options": ("on_demand",),
            }
        )  # fmt: skip
        job = given.workload.model_copy(update={"constraints": limits})
        fleet = job.model_copy(update={"kind": "fleet", "fleet": Fleet(runs=1)})
        alone, _ = plan_job(prepare(_with(given, job), job, bundled(), options), options)
        one = _with(given, fleet)
        plan, _ = plan_fleet(one, prepare(one, fleet, bundled(), options), options)
        assert (plan.status, cents(plan.total_usd)) == (alone.status, cents(alone.total_usd)), hours


def _with(given: LoadedWorkload, workload: Workload) -> LoadedWorkload:
    return replace(given, workload=workload)
