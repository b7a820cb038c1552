"""Tasks for SkyPilot: its own loader and validation, run in an environment of its own, and what these do not see."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.frameworks.model import Part, parallel_of
from planner.export.frameworks.none import parse
from planner.export.registry import Options, export, export_phases
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import allowed, shellcheck, sky_says

ZONES = "use1-az6=us-east-1d,use1-az2=us-east-1a,use2-az3=us-east-2b"


def task_of(launch: Launch, **values: str) -> dict[str, Any]:
    loaded = yaml.safe_load(export(launch, "skypilot", Options(values=values))[0].text)
    assert isinstance(loaded, dict)
    return loaded


WRONG = {
    "unknown key": ("use_spot:", "spot:", "use_spot"),
    "not a number of nodes": ("num_nodes: 4", "num_nodes: '4'", "num_nodes|is not of type"),
    "unknown cloud": ("infra: aws/", "infra: awss/", "does not match|awss"),
    # these three load without a word: only `validate` with a catalog sees them
    "wrong region": ("aws/us-east-2/us-east-2b", "aws/us-eest-2", "Invalid region"),
    "wrong zone": ("us-east-2b", "us-east-2z", "Invalid zone|zone"),
    "wrong recovery": ("EAGER_NEXT_REGION", "FOO", "recovery"),
    "wrong type": ("p5.48xlarge\n", "p5.47xlarge\n", "nvalid instance type|p5.47xlarge"),
    "both orders": ("  ordered:", "  any_of:\n    - infra: aws\n  ordered:", "ordered"),
    "cap of nothing": ("max_hourly_cost: 25.625", "max_hourly_cost: 0", "max_hourly_cost|less than"),
    "mode": ("mode: MOUNT", "mode: MONT", "MONT"),
}
WRONG_POOL = {
    "unknown key of a pool": ("workers: 3", "worker: 3", "worker"),
    "recovery of a pool": (
        "  use_spot:",
        "  job_recovery: FAILOVER\n  use_spot:",
        "job_recovery is disabled",
    ),
    "order of a pool": ("  use_spot: true", "  ordered: [{use_spot: true}]", "Ordered resources"),
}


def test_sky_takes_every_export_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    tasks = {name: files[0].text for name, files in allowed("skypilot").items()}
    tasks |= {
        f"zones {name}": files[0].text
        for name, files in allowed("skypilot", Options(values={"zones": ZONES})).items()
    }
    tasks |= {file.path: file.text for file in allowed("skypilot")["workers"]}
    tasks["pipeline"] = export_phases(LAUNCHES["one"], [LAUNCHES["one"]] * 2, "skypilot", Options())[0].text
    wrong = WRONG | WRONG_POOL
    for base, faults in ((tasks["zones in_turn"], WRONG), (tasks["pool-1.yaml"], WRONG_POOL)):
        for name, (good, bad, _) in faults.items():
            assert good in base, name
            tasks[name] = base.replace(good, bad, 1)
    said = sky_says(tasks, tmp_path, LAUNCHES.values())
    assert {name: text for name, text in said.items() if name not in wrong and text} == {}
    unseen = [name for name, (_, _, words) in wrong.items() if not re.search(words, said[name])]
    assert unseen == [], {name: said[name] for name in unseen}


def test_phases_are_the_tasks_of_one_pipeline() -> None:
    one = LAUNCHES["one"]
    second = replace(one, run=replace(one.run, command="train.py --resume"))
    (file,) = export_phases(one, [one, second], "skypilot", Options())
    head, *tasks = yaml.safe_load_all(file.text)
    assert file.path == "pipeline.yaml" and set(head) == {"name"}
    assert tasks == [yaml.safe_load(export(each, "skypilot", Options())[0].text) for each in (one, second)]
    fleet = LAUNCHES["workers"]
    with pytest.raises(InputError, match="64 independent runs are as many jobs"):
        export_phases(fleet, [fleet, fleet], "skypilot", Options())
    with pytest.raises(InputError, match="torchrun starts no phase after another, slurm, skypilot do"):
        export_phases(one, [one, second], "torchrun", Options())


def test_places_come_in_the_order_of_the_plan_with_their_fall_back() -> None:
    places = task_of(LAUNCHES["in_turn"], zones=ZONES)["resources"]["ordered"]
    assert [(place["infra"], place["use_spot"]) for place in places] == [
        ("aws/us-east-1/us-east-1d", True), ("aws/us-east-2/us-east-2b", True), ("aws/us-east-1/us-east-1a", False),
    ]  # fmt: skip
    assert all(place["network_tier"] == "best" for place in places)


def test_zones_without_a_name_in_the_account_become_their_region_once() -> None:
    launch = LAUNCHES["in_turn"]
    dear = replace(launch.pools[0], zone="use1-az5", price_per_hour=launch.pools[0].price_per_hour * 2)
    task = task_of(replace(launch, pools=(launch.pools[0], dear, launch.pools[2])))
    places = task["resources"]["ordered"]
    assert [(place["infra"], place["max_hourly_cost"]) for place in places] == [
        ("aws/us-east-1", 51.25), ("aws/us-east-1", 68.8),
    ]  # fmt: skip
    assert "use1-az5" in export(replace(launch, pools=(launch.pools[0], dear)), "skypilot", Options())[0].text


def test_an_attached_accelerator_is_asked_for_beside_its_machine() -> None:
    launch = LAUNCHES["gcp"]
    pool = replace(launch.first, instance_type="n1-standard-32+nvidia-tesla-t4x4", gpus=4)
    (place,) = task_of(replace(launch, pools=(pool,)))["resources"]["ordered"]
    assert (place["instance_type"], place["accelerators"]) == ("n1-standard-32", "T4:4")
    assert place["infra"] == "gcp/us-east4/us-east4-b"


def test_the_runs_of_a_fleet_go_to_the_workers_of_its_plan() -> None:
    launch = LAUNCHES["workers"]
    files = {file.path: file.text for file in export(launch, "skypilot", Options())}
    assert list(files) == ["task-1.yaml", "pool-1.yaml", "task-2.yaml", "pool-2.yaml"]
    begin = 0
    for number, pool in enumerate(launch.pools, start=1):
        made, run = (yaml.safe_load(files[f"{name}-{number}.yaml"]) for name in ("pool", "task"))
        assert made["pool"] == {"workers": pool.nodes} and made["resources"]["use_spot"] == pool.is_spot
        assert "resources" not in run and run["envs"]["PLANNER_RUN_COUNT"] == "64"
        assert f'PLANNER_RUN_INDEX="$(({begin} + SKYPILOT_JOB_RANK))"' in run["run"]
        (count,) = re.findall(r"--num-jobs (\d+) ", files[f"task-{number}.yaml"])
        begin += int(count)
    assert begin == launch.tasks == 64


def test_an_address_is_mounted_and_a_path_is_left_alone() -> None:
    task = task_of(LAUNCHES["one"])
    assert task["file_mounts"] == {
        "/data": {"source": "s3://example-data/tokens", "mode": "MOUNT"},
        "/outputs": {"source": "s3://example-data/models", "mode": "MOUNT_CACHED"},
    }
    assert task["envs"]["PLANNER_DATA"] == "/data"
    assert task["envs"]["PLANNER_CHECKPOINTS"] == "/mnt/checkpoints"


@pytest.mark.parametrize(("name", "mode"), [("single_gpu", "MOUNT_CACHED"), ("one", "MOUNT")])
def test_parts_of_several_nodes_are_uploaded_before_the_checkpoint_counts(name: str, mode: str) -> None:
    launch = LAUNCHES[name]
    task = task_of(replace(launch, run=replace(launch.run, checkpoints="s3://example/runs")))
    assert task["file_mounts"]["/checkpoints"] == {"source": "s3://example/runs", "mode": mode}


def test_flags_of_a_framework_name_the_mounted_path() -> None:
    launch = LAUNCHES["one"]
    run = replace(launch.run, checkpoints="s3://example/runs")
    for framework in ("none", "torchtitan", "axolotl"):
        files = export(replace(launch, run=run), "skypilot", Options(framework))
        task = yaml.safe_load(files[0].text)
        assert task["file_mounts"]["/checkpoints"]["source"] == "s3://example/runs"
        assert task["envs"]["PLANNER_CHECKPOINTS"] == "/checkpoints", framework
        assert not any("s3://example/runs" in text for text in (task["run"], *(f.text for f in files[1:])))


def test_the_run_section_is_a_clean_script() -> None:
    scripts = (yaml.safe_load(files[0].text)["run"] for files in allowed("skypilot").values())
    assert shellcheck(*(f"#!/bin/bash\n{script}" for script in scripts)) == ""


def test_the_layout_is_read_back_from_the_task() -> None:
    for name in ("one", "in_turn", "gcp", "azure", "single_gpu"):
        launch = LAUNCHES[name]
        task = task_of(launch)
        (gpus,) = re.findall(r"--nproc-per-node=(\d+)", task["run"])
        found = parse(Part(env=task["envs"]), task["num_nodes"], int(gpus))
        assert found == parallel_of(launch)


def test_secrets_are_names_without_values() -> None:
    assert task_of(LAUNCHES["one"])["secrets"] == {"WANDB_API_KEY": ""}


def test_reservations_are_settings_of_the_server() -> None:
    launch = LAUNCHES["one"]
    reserved = replace(launch, pools=(replace(launch.first, option="reserved_1y"),))
    options = Options(values={"aws-capacity-reservation": "cr-0123456789abcdef0"})
    task, config = export(reserved, "skypilot", options)
    assert config.path == "sky-config.yaml"
    assert yaml.safe_load(config.text)["aws"]["specific_reservations"] == ["cr-0123456789abcdef0"]
    assert "specific_reservations" not in task.text and "~/.sky/config.yaml" in task.text


@pytest.mark.parametrize(
    ("option", "said"), [("capacity_block", "capacity block"), ("owned", "a machine you own")]
)
def test_what_sky_has_no_words_for_is_refused_by_name(option: str, said: str) -> None:
    launch = LAUNCHES["one"]
    with pytest.raises(InputError, match=said):
        task_of(replace(launch, pools=(replace(launch.first, option=option),)))


@pytest.mark.parametrize("zones", ["use1-az6", "use1-az6=us east", "a=b;rm -rf"])
def test_names_of_zones_are_checked(zones: str) -> None:
    with pytest.raises(InputError, match="ZONE_ID=ZONE_NAME"):
        task_of(LAUNCHES["one"], zones=zones)
