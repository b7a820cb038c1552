"""The search for layouts of reinforcement learning: what is left out, or made once for a cluster, changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds, grid
from planner.performance.post_training.reinforcement import SHARES
from planner.performance.post_training.spec import Lengths, Rollouts, Tuning
from planner.performance.search import estimate_shapes
from planner.performance.search_job import build_job, generations_on, step_of, training_step_of
from planner.performance.spec import TrainingSpec
from tests.draws import draws
from tests.planner.performance.layout_cases import machine_rows
from tests.planner.performance.test_layouts_search import same
from tests.planner.performance.test_performance import A100, LLAMA_70B, SMALL, machines

NODES = (1, 2, 3, 4, 8)


@st.composite
def rollouts(draw: st.DrawFn) -> Rollouts:
    colocated = draw(st.booleans())
    pool: Literal["both", "trainer"] = "trainer" if draw(st.integers(0, 3)) == 3 else "both"
    return Rollouts(
        Lengths(150.0, 0.0, 512.0), Lengths(draw(st.sampled_from([60.0, 900.0, 4000.0])), 1.0, 8000.0),
        samples_per_prompt=8, colocated=colocated and pool == "both", pool=pool,
        steps_off_policy=0 if colocated else draw(st.integers(0, 2)), in_flight=draw(st.booleans()),
        generation_share=draw(st.sampled_from([None, None, 0.5])),
        paced_s=draw(st.sampled_from([0.0, 30.0, 3000.0])) if pool == "trainer" else 0.0,
    )  # fmt: skip


def training_of(some: Rollouts, batch: int = 64) -> TrainingSpec:
    return TrainingSpec(batch, 1024, "bf16", tuning=Tuning("grpo", rollouts=some))


@draws(40)
@given(some=rollouts(), rows=st.lists(machine_rows(), min_size=1, max_size=3), large=st.booleans())
def test_layouts_that_train_too_long_change_nothing(
    some: Rollouts, rows: list[dict[str, Any]], large: bool
) -> None:
    model, hardware = LLAMA_70B if large else SMALL, machines(*rows)
    found, every = (
        estimate_shapes(model, training_of(some), hardware, NODES, prune=prune) for prune in (True, False)
    )
    same(found, every)


def layouts(training: TrainingSpec) -> Layouts:
    return grid((8,), NODES, build_bounds(SMALL, training, False)).layout


@draws(20)
@given(some=rollouts(), pinned=st.sampled_from(SHARES))
def test_the_share_that_generates_is_the_best_of_all_shares(some: Rollouts, pinned: float) -> None:
    some = replace(some, colocated=False, generation_share=None, pool="both", paced_s=0.0)
    free = training_of(some)
    layout = layouts(free)
    total = step_of(build_job(SMALL, free, machines(A100)), layout).total

    def at_share(share: float) -> Any:
        training = training_of(replace(some, generation_share=share))
        return step_of(build_job(SMALL, training, machines(A100)), layout).total

    assert (total <= at_share(pinned) * (1.0 + 1e-12)).all()
    assert np.allclose(total, np.min([at_share(share) for share in SHARES], axis=0), rtol=1e-12)


@draws(20)
@given(some=rollouts(), quantile=st.floats(0.0, 1.0))
def test_a_layout_that_trains_longer_than_a_limit_leaves_takes_longer_than_it(
    some: Rollouts, quantile: float
) -> None:
    some = replace(some, pool="both", paced_s=0.0)
    job = build_job(SMALL, training_of(some), machines(A100))
    layout = layouts(job.training)
    generations = generations_on(job, layout.hardware, layout.nodes)
    assert generations is not None
    total, trained = step_of(job, layout, None, generations).total, training_step_of(job, layout).total
    limit = np.full(len(total), np.quantile(total, quantile))
    rows = generations.rows(layout.hardware, layout.nodes)
    longest = generations.train_s(rows, limit)
    assert (total > limit)[trained > longest].all()
    fastest = np.asarray([trained[rows == row].min() for row in rows])
    closer = generations.train_s(rows, limit, fastest)
    assert (closer <= longest + 1e-8 * limit).all()  # both leave room for rounding
    assert (total > limit)[trained > closer].all()
