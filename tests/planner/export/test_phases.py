"""A run in phases is launched with the batch, the length and the layout of one of them, and names the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.view import launch_of
from tests.planner.spine_catalogs import A100X8, Offer, make_catalog, plan_on, work

LONG, SHORT = {"sequence_length": 2048, "global_batch": 64}, {"sequence_length": 128, "global_batch": 512}


@pytest.mark.parametrize(("share", "first"), [(0.9, SHORT), (0.02, LONG)])
def test_batch_and_length_are_those_of_the_phase_that_the_layout_is_of(
    share: float, first: dict[str, int]
) -> None:
    training = {
        "tokens": 40_000_000, "global_batch": 512, "sequence_length": 2048, "precision": "bf16",
        "phases": [{"share": share, **SHORT}, {"share": round(1 - share, 2), **LONG}],
    }  # fmt: skip
    job = work(training=training, constraints={"max_nodes": 1})
    launch = launch_of(plan_on(make_catalog([Offer(A100X8, "us-east-1", "20")]), job).plan)
    stated = launch.training
    assert (stated.sequence_length, stated.global_batch) == (first["sequence_length"], first["global_batch"])
    steps = [one[0] for one in stated.phases]
    tokens = sum(count * batch * length for count, batch, length in stated.phases)
    assert stated.steps == sum(steps) and tokens == pytest.approx(40_000_000, rel=0.01)
    script = export(launch, "torchrun", Options())[0].text
    assert f"PLANNER_SEQUENCE_LENGTH={first['sequence_length']}" in script
    assert (
        f"# phases: {steps[0]:,} steps of 512 x 128, then {steps[1]:,} steps of 64 x 2,048 samples" in script
    )


@pytest.mark.parametrize("value", ["a x b x c", "9", "9 x 512 x 128; rm -rf /"])
def test_a_saved_schedule_that_is_none_is_refused(value: str) -> None:
    training = {
        "tokens": 4e6,
        "global_batch": 512,
        "sequence_length": 2048,
        "phases": [{"share": 1, **SHORT}],
    }
    plan = plan_on(make_catalog([Offer(A100X8, "us-east-1", "20")]), work(training=training)).plan
    noted = tuple(
        replace(item, value=value) if item.key == "training.phases" else item for item in plan.assumptions
    )
    with pytest.raises(InputError, match=r"training\.phases: .* is no list of steps"):
        launch_of(replace(plan, assumptions=noted))
