"""A run in phases is launched with the batch, the length and the layout of one of them, and names the others."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from planner.errors import InputError
from planner.export.files import write_files
from planner.export.launch import launch_of
from planner.export.monitoring import progress_series
from planner.export.phases import of_phase
from planner.export.registry import Options, export, export_phases
from planner.judge.judge import judge_plan
from planner.plan.model import Plan
from planner.plan.words import layout_words
from tests.planner.spine_catalogs import A100X8, Offer, loaded, make_catalog, plan_on, work

LONG, SHORT = {"sequence_length": 2048, "global_batch": 64}, {"sequence_length": 128, "global_batch": 512}
TWO = {
    "tokens": 40_000_000, "global_batch": 512, "sequence_length": 2048, "precision": "bf16",
    "phases": [{"share": 0.5, **SHORT}, {"share": 0.5, **LONG}],
}  # fmt: skip


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


def test_each_phase_has_its_layout_in_the_plan_and_a_launch_of_its_own() -> None:
    """The schedule is started phase by phase: each with its own batch, length, steps and layout."""
    job = work(training=TWO, constraints={"max_nodes": 1})
    catalog, given = make_catalog([Offer(A100X8, "us-east-1", "20")]), loaded(job)
    plan = plan_on(catalog, job).plan
    layouts = plan.phase_layouts
    assert layouts is not None and [one.update_batch for one in layouts] == [512, 64]
    assert plan.lines[0].layout in layouts
    assert f"layout of phase 2: {layout_words(layouts[1])}" in str(plan.render("md"))
    read = Plan.from_dict(plan.to_dict())
    assert read.phase_layouts == layouts
    launch = launch_of(read)
    for number, (phase, layout) in enumerate(zip((SHORT, LONG), layouts, strict=True), start=1):
        one = of_phase(launch, read, number)
        stated = one.training
        assert one.layout == layout
        assert (stated.sequence_length, stated.global_batch) == (
            phase["sequence_length"],
            phase["global_batch"],
        )
        assert (stated.steps, stated.units) == (
            stated.phases[number - 1][0],
            math.prod(stated.phases[number - 1]),
        )
        script = export(one, "torchrun", Options("megatron"))[0].text
        assert f"this is phase {number}" in script and ("checkpoint of phase 1" in script) == (number == 2)
        assert f"--global-batch-size={phase['global_batch']}" in script.replace(" ", "=")
    with pytest.raises(InputError, match="no such phase; it has 2"):
        of_phase(launch, read, 3)
    with pytest.raises(InputError, match="without the layouts"):
        of_phase(launch, replace(read, phase_layouts=None), 1)
    answer = plan.to_dict()
    assert judge_plan(answer, given.workload, given.sha256, catalog, Path()).faults == []
    answer["phase_layouts"][1]["micro_batch"] *= 2
    assert judge_plan(answer, given.workload, given.sha256, catalog, Path()).faults


def test_a_phase_saves_after_as_many_of_its_own_steps_as_fit_between_two_checkpoints() -> None:
    """Steps of the second phase take longer than the mean, those of the first are shorter."""
    job = work(training=TWO, constraints={"max_nodes": 1, "deadline": "40h"})
    plan = plan_on(make_catalog([Offer(A100X8, "us-east-1", "20")]), job).plan
    launch, times = launch_of(plan), plan.phase_step_times_s
    assert times is not None and plan.performance is not None
    steps = [phase[0] for phase in launch.training.phases]
    mean = sum(count * time for count, time in zip(steps, times, strict=True)) / sum(steps)
    assert plan.performance.step_time_s == pytest.approx(mean, rel=0.01)
    saved = [
        int(re.findall(r"PLANNER_CHECKPOINT_STEPS=(\d+)", export(one, "slurm", Options())[0].text)[0])
        for one in (launch, of_phase(launch, plan, 1), of_phase(launch, plan, 2))
    ]
    seconds = saved[0] * mean
    assert [count * time for count, time in zip(saved[1:], times, strict=True)] == pytest.approx(
        [seconds] * 2, rel=0.05
    )
    assert saved[1] > saved[0] > saved[2]


def test_all_phases_find_their_program_and_files_in_one_folder(tmp_path: Path) -> None:
    """One command starts both phases: it must learn which one it is, when that ends, and find its configuration."""
    plan = plan_on(
        make_catalog([Offer(A100X8, "us-east-1", "20")]),
        work(training=TWO, constraints={"max_nodes": 1}),
    ).plan
    launch = launch_of(plan)
    each = [of_phase(launch, plan, number) for number in (1, 2)]
    steps = [phase[0] for phase in launch.training.phases]
    (tmp_path / "train.py").touch()
    # stands for sbatch: a job finds the program and what its script names where it is submitted
    sbatch = """#!/bin/bash
script=${@: -1}
[ -e train.py ] && [ -e "$(grep -o 'deepspeed-[0-9].json' "$script")" ] || exit 1
grep PLANNER_PHASE "$script" >>phases
echo 7
"""
    files = export_phases(launch, each, "slurm", Options("deepspeed"))
    usual = os.umask(0o027)
    try:
        write_files(files, tmp_path)
    finally:
        os.umask(usual)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*.s*")}
    assert modes == {
        "submit.sh": 0o750,
        "job.sbatch": 0o640,
    }  # as the umask says, and what starts them may be run
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sbatch").write_text(sbatch)
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    subprocess.run([tmp_path / "submit.sh"], check=True, env={"PATH": path}, cwd="/")
    assert (tmp_path / "phases").read_text() == "export PLANNER_PHASE=1\nexport PLANNER_PHASE=2\n"
    pipeline, *others = export_phases(launch, each, "skypilot", Options("deepspeed"))
    _, *tasks = yaml.safe_load_all(pipeline.text)
    assert [task["envs"]["PLANNER_STEPS"] for task in tasks] == [str(count) for count in steps]
    assert [file.path for file in others] == ["deepspeed-1.json", "deepspeed-2.json"]
    batches = [json.loads(file.text)["train_batch_size"] for file in others]
    assert batches == [SHORT["global_batch"], LONG["global_batch"]]
    for number, task in enumerate(tasks, start=1):
        assert f"--deepspeed_config deepspeed-{number}.json" in task["run"]


def test_monitoring_of_a_phase_expects_its_end_by_what_the_whole_run_takes_beside_its_steps() -> None:
    """What comes beside the steps is that of all steps, not all of it on one phase's; the deadline is of the last."""
    job = work(training=TWO, constraints={"max_nodes": 1, "deadline": "40h"})
    plan = plan_on(make_catalog([Offer(A100X8, "us-east-1", "20")]), job).plan
    launch = launch_of(plan)
    whole, *each = (
        {series.name: series.expr for series in progress_series(one)}
        for one in (launch, of_phase(launch, plan, 1), of_phase(launch, plan, 2))
    )
    finish, late = "run:finish_timestamp_seconds:estimated", "run:late_hours:estimated"
    factors = {series[finish].rsplit("*")[-1] for series in (whole, *each)}
    assert len(factors) == 1 and float(factors.pop()) > 1
    steps = [phase[0] for phase in launch.training.phases]
    assert [f"clamp_min({count} - " in series[finish] for count, series in zip(steps, each, strict=True)] == [
        True
    ] * 2
    assert [late in series for series in (whole, *each)] == [True, False, True]


def test_a_run_of_one_phase_has_no_layouts_of_phases() -> None:
    plan = plan_on(make_catalog([Offer(A100X8, "us-east-1", "20")]), work()).plan
    assert plan.phase_layouts is None and "phase_layouts" not in plan.to_dict()
    with pytest.raises(InputError, match="it has none"):
        of_phase(launch_of(plan), plan, 1)


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
