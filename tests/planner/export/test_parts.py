"""Fleets in two parts: every run is started once, and each part buys by itself."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from planner.export.monitoring import planned_rate
from planner.export.names import RUN_TAG
from planner.export.registry import TARGETS, Options, export
from planner.export.targets.autoscaler import autoscaler
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.test_buys_the_plan import PARTS, documents


def _files(target: str) -> dict[str, str]:
    return {file.path: file.text for file in export(PARTS, target, Options())}


def test_slurm_starts_every_run_once() -> None:
    files = _files("slurm")
    assert [*files] == ["part-1/job.sbatch", "part-2/job.sbatch"]
    arrays = [re.search(r"--array=(\d+)-(\d+)%(\d+)", text) for text in files.values()]
    # 24 of 64 runs fall back: three eighths of the throughput
    assert [found and found.groups() for found in arrays] == [("0", "23", "3"), ("24", "63", "1")]
    assert all("PLANNER_RUN_COUNT=64" in text for text in files.values())


def test_kubernetes_counts_runs_through_both_parts() -> None:
    files = _files("kubernetes")
    jobs = [
        next(one for one in documents(files[f"part-{part}/job.yaml"]) if one["kind"] == "Job")
        for part in (1, 2)
    ]
    assert [job["spec"]["completions"] for job in jobs] == [24, 40]
    assert len({job["metadata"]["name"] for job in jobs}) == 2
    assert 'PLANNER_RUN_INDEX="$((JOB_COMPLETION_INDEX + 24))"' in files["part-2/job.yaml"]
    assert all("PLANNER_RUN_COUNT=64" in files[f"part-{part}/job.yaml"] for part in (1, 2))


def test_skypilot_has_a_pool_for_each_part() -> None:
    files = _files("skypilot")
    pools = [documents(files[f"part-{part}/pool.yaml"])[0] for part in (1, 2)]
    assert [pool["pool"]["workers"] for pool in pools] == [3, 1]
    assert [one["use_spot"] for one in pools[0]["resources"]["ordered"]] == [True, False]
    tasks = [documents(files[f"part-{part}/task.yaml"])[0] for part in (1, 2)]
    assert [task["envs"]["PLANNER_RUN_COUNT"] for task in tasks] == ["64", "64"]
    assert (
        "$((0 + SKYPILOT_JOB_RANK))" in tasks[0]["run"] and "$((24 + SKYPILOT_JOB_RANK))" in tasks[1]["run"]
    )


@pytest.mark.parametrize("target", ["karpenter", "terraform", "parallelcluster", "torchrun"])
def test_each_part_has_a_folder_and_the_tags_of_the_whole(target: str) -> None:
    files = _files(target)
    assert {path.split("/")[0] for path in files} == {"part-1", "part-2"}
    assert {part.tags["workload"] for part in PARTS.parts} == {LAUNCHES["workers"].name}
    assert {part.tags[RUN_TAG] for part in PARTS.parts} == {PARTS.run_id}


def test_what_starts_nothing_takes_the_whole_fleet() -> None:
    whole = [name for name, target in TARGETS.items() if target.whole]
    assert whole == ["autoscaler", "dockerfile", "prometheus", "grafana"]
    spot, _, other = PARTS.pools
    assert PARTS.instances == spot.nodes + other.nodes
    assert (
        planned_rate(PARTS) == spot.nodes * spot.usd_per_hour + other.nodes * other.usd_per_hour > Decimal(0)
    )
    assert autoscaler(PARTS, "x", "server")["spec"]["maxReplicas"] == PARTS.instances
    heading = _files("prometheus")["rules.yaml"]
    assert re.search(r"# on 3 x .* spot .*\n# else 3 x .*on_demand.*\n# and 1 x ", heading), heading[:800]
