"""`planner estimate` without a machine: the machines of the plan, as fast as the plan says."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import planner
from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs.load import LoadedWorkload
from planner.performance.goodput import TYPICAL, estimate_goodput, load_site
from planner.plan.ids import TimePartId
from planner.workloads.planned_cluster import _nodes
from tests.cli.test_optimize import example
from tests.cli.test_screen import saved
from tests.conftest import Run
from tests.planned_examples import plan_of

DAY = ("--as-of", "2026-11-20")


@pytest.fixture
def planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster of an example is that of the plan which other tests ask for, too, with the same prices."""

    def planned(loaded: LoadedWorkload, options: Options, **_: object) -> SimpleNamespace:
        assert str(options.as_of) == DAY[1] and options.calibrated
        return SimpleNamespace(plan=plan_of(loaded.path.stem))

    monkeypatch.setattr("planner.workloads.planned_cluster.optimize", planned)


def answer(run_cli: Run, command: str, name: str, *options: str) -> Any:
    done = run_cli(command, example(name), *DAY, *options, "-o", "json")
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("name", ["llama-3-8b", "owned-top-up", "batch-inference-70b"])
def test_the_cluster_of_the_plan_is_estimated(run_cli: Run, name: str) -> None:
    """Spot in zones that follow each other, own machines topped up, and answers in bulk."""
    plan, found = saved(name), answer(run_cli, "estimate", name)
    (one,) = found["estimates"]
    first = plan["lines"][0]
    in_turn = plan["launch"] is not None
    nodes = first["nodes"] if in_turn else sum(line["nodes"] for line in plan["lines"])
    assert (one["instance_type"], one["nodes"]) == (first["instance_type"], nodes)
    assert one["throughput_per_s"] == pytest.approx(plan["performance"]["throughput_per_s"], rel=1e-9)
    assert any(note.startswith("no --instance-type was given") for note in found["warnings"])


@pytest.mark.usefixtures("planned_once")
def test_a_fleet_is_estimated_for_one_run(run_cli: Run) -> None:
    plan, found = saved("hpo-fleet"), answer(run_cli, "estimate", "hpo-fleet")
    types = list(dict.fromkeys(line["instance_type"] for line in plan["lines"]))
    assert [(one["instance_type"], one["nodes"]) for one in found["estimates"]] == [
        (kind, 1) for kind in types
    ]


@pytest.mark.usefixtures("planned_once")
def test_other_node_counts_are_compared_on_the_type_of_the_plan(run_cli: Run) -> None:
    plan = saved("llama-3-8b")
    found = answer(run_cli, "estimate", "llama-3-8b", "--nodes", "2", "--nodes", "4")
    kind = plan["lines"][0]["instance_type"]
    assert [(one["instance_type"], one["nodes"]) for one in found["estimates"]] == [(kind, 2), (kind, 4)]
    in_python = planner.estimate(example("llama-3-8b"), nodes=[2, 4], as_of=DAY[1])
    assert [one.throughput_per_s.value for one in in_python.estimates] == [
        one["throughput_per_s"] for one in found["estimates"]
    ]


def test_a_provider_without_a_type_is_refused(run_cli: Run) -> None:
    done = run_cli("estimate", example("llama-3-8b"), "--provider", "aws", *DAY)
    assert done.code == 2 and "needs --instance-type" in done.stderr
    with pytest.raises(InputError, match="give instance_type, too"):
        planner.estimate(example("llama-3-8b"), provider="aws", as_of=DAY[1])


def test_spot_beside_machines_bought_otherwise_counts_with_them() -> None:
    topped_up, in_turn = plan_of("owned-top-up"), plan_of("llama-3-8b").launch
    assert in_turn is not None and len(topped_up.lines) > 1
    beside = replace(topped_up, launch=replace(in_turn, strategy="spot_with_steady"))
    assert _nodes(beside) == _nodes(topped_up) == sum(line.nodes for line in topped_up.lines)
    assert _nodes(replace(beside, launch=in_turn)) == topped_up.lines[0].nodes


SAME_HOURS = (
    "bert-large", "dpo-8b", "grpo-8b", "llama-3-8b", "mixtral-eu", "onprem-comparison", "owned-top-up", "qlora-70b",
    "resnet50-imagenet",
)  # fmt: skip


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("name", SAME_HOURS)
def test_plan_and_estimate_name_the_same_hours_of_work(name: str) -> None:
    """Steps, evaluation and what runs take beside them; each has start-up, stops and checkpoints of its own model."""
    plan = plan_of(name)
    (one,) = planner.estimate(example(name), as_of="2026-11-20").estimates
    hours = {part.id: part.hours for part in plan.timeline}
    steps = hours[TimePartId.TRAINING_STEPS]
    work = steps + hours[TimePartId.EVALUATION] + hours[TimePartId.BESIDE_STEPS]
    assert work == pytest.approx(1.38 * steps, rel=1e-9)
    run = one.run
    assert run is not None
    assert run.step_hours == pytest.approx(steps, rel=1e-9)
    assert dict(run.parts)["evaluation"] == pytest.approx(hours[TimePartId.EVALUATION], rel=1e-9)
    assert dict(run.parts)["beside the steps"] == pytest.approx(hours[TimePartId.BESIDE_STEPS], rel=1e-9)
    assert sum(part for _, part in run.parts) == pytest.approx(run.wall_hours.value, rel=1e-12)
    assert run.goodput.value == pytest.approx(run.step_hours / run.wall_hours.value, rel=1e-12)
    kept = estimate_goodput(run.accelerators, work).kept_ratio
    assert run.wall_hours.value == pytest.approx(work / kept + load_site(TYPICAL).startup_hours, rel=1e-9)
    if (
        plan.launch is None
    ):  # capacity that stays: hours in use differ by the two models of stops and checkpoints
        assert run.wall_hours.value == pytest.approx(plan.hours - (plan.starts_in_hours or 0.0), rel=0.03)


def test_an_assumption_of_the_workload_holds_for_both(run_cli: Run) -> None:
    none = ("--set", "assumptions.beside_steps_ratio=0", "--set", "assumptions.evaluation_share_ratio=0")
    plan, found = (
        answer(run_cli, command, "onprem-comparison", *none) for command in ("optimize", "estimate")
    )
    hours = {part["id"]: part["hours"] for part in plan["timeline"]}
    (one,) = found["estimates"]
    assert "beside_steps" not in hours
    assert one["run"]["step_hours"] == pytest.approx(hours["training_steps"], rel=1e-9)
    assert one["run"]["wall_hours"] == pytest.approx(one["run"]["step_hours"], rel=0.03)
