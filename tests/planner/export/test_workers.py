"""Independent workers that are all on one pool at a time: a target starts each of them once, wherever it is."""

from __future__ import annotations

from dataclasses import replace

import yaml

from planner.export.registry import Options, export
from planner.export.view import Launch
from planner.plan.run import Run
from tests.planner.export.launches import LAUNCHES

_SPOT, _ELSE = (replace(pool, nodes=2) for pool in LAUNCHES["workers"].pools)
MOVING = replace(
    LAUNCHES["workers"], kind="inference", run=Run(), turns=True,
    pools=(_SPOT, replace(_SPOT, region="us-east-2", zone="use2-az3"), _ELSE),
)  # fmt: skip


def text_of(launch: Launch, target: str, name: str, **values: str) -> str:
    return next(file.text for file in export(launch, target, Options(values=values)) if file.path == name)


def test_two_workers_with_a_fall_back_stay_two() -> None:
    assert (MOVING.instances, MOVING.workers, MOVING.tasks) == (2, 2, 2)
    for region in ("aws/us-east-1", "aws/us-east-2"):
        job = text_of(MOVING, "kubernetes", "job.yaml", region=region)
        assert "  completions: 2\n  parallelism: 2\n" in job and "PLANNER_RUN_COUNT=2" in job
        assert 'PLANNER_RUN_INDEX="$JOB_COMPLETION_INDEX"' in job
    script = text_of(MOVING, "slurm", "job.sbatch")
    assert "#SBATCH --array=0-1%2\n" in script and "\n# else 2 x g6.xlarge spot in aws/us-east-2" in script
    assert "  maxReplicas: 2\n" in text_of(MOVING, "autoscaler", "autoscaler.yaml")
    assert "var.place" in text_of(MOVING, "terraform", "main.tf")


def test_skypilot_starts_each_worker_and_says_how_many_there_are() -> None:
    task = text_of(MOVING, "skypilot", "task.yaml")
    assert "# start all 2: for i in $(seq 0 1); do sky jobs launch" in task
    assert '\n  PLANNER_RUN_COUNT: "2"\n' in task
    alone = replace(MOVING, pools=tuple(replace(pool, nodes=1) for pool in MOVING.pools))
    assert "--env PLANNER_RUN_INDEX=0 task.yaml" in text_of(alone, "skypilot", "task.yaml")


def test_each_script_of_slurm_names_itself() -> None:
    base = LAUNCHES["workers"]
    two = replace(base, pools=(base.pools[0], replace(base.pools[1], instance_type="g5.xlarge")))
    for number in (1, 2):
        assert f"# submit: sbatch job-{number}.sbatch," in text_of(two, "slurm", f"job-{number}.sbatch")


def test_runs_of_a_fleet_that_falls_back_go_to_one_pool_of_workers() -> None:
    """Spot first, then on-demand: more runs than workers, which stay as many."""
    fleet = replace(MOVING, kind="fleet", run=replace(LAUNCHES["workers"].run, runs=64), pools=(_SPOT, _ELSE))
    assert (fleet.workers, fleet.tasks) == (2, 64)
    files = {file.path: file.text for file in export(fleet, "skypilot", Options())}
    assert list(files) == ["task.yaml", "pool.yaml"]
    pool = yaml.safe_load(files["pool.yaml"])
    assert pool["pool"] == {"workers": 2}
    assert [place["use_spot"] for place in pool["resources"]["ordered"]] == [True, False]
    assert "--num-jobs 64 task.yaml" in files["task.yaml"]
    script = text_of(fleet, "slurm", "job.sbatch")
    assert "#SBATCH --array=0-63%2\n" in script and "\n# else 2 x g6.xlarge on_demand" in script
    job = text_of(fleet, "kubernetes", "job.yaml")
    assert "  completions: 64\n  parallelism: 2\n" in job
