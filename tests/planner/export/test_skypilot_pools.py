"""Job Groups of SkyPilot: both pools of `planner pools`, taken by SkyPilot's own loader, with nothing made up."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.registry import Options, checked
from planner.export.targets.skypilot_pools import _launch, render_pools
from tests.conftest import CliResult
from tests.planner.export.validators import shellcheck, sky_says


def part(option: str, zone: str, usd: str, kind: str = "p5.48xlarge") -> dict[str, Any]:
    return {
        "provider": "aws", "region": "us-east-2", "zone": zone, "instance_type": kind, "purchase_option": option,
        "option_variant": "", "nodes": 2, "hours": 10.0, "offer_id": "x",
        "lines": [{"kind": "compute", "amount_usd": usd}, {"kind": "data_storage", "amount_usd": "7"}],
    }  # fmt: skip


def pool(name: str, accelerator: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "accelerator": accelerator, "nodes": 2, "accelerators": 16.0, "hours": 12.0, "tensor_parallel": 2,
        "pipeline_parallel": 1, "data_parallel": 8, "cost_usd": "500", "parts": list(parts),
    }  # fmt: skip


SAVED: dict[str, Any] = {
    "workload": "grpo", "workload_sha256": "ab" * 32, "created_at": "2026-11-20T00:00+00:00", "start": "2026-11-20",
    "planner_version": "0.1.0", "hours": 12.0, "cost_usd": "1000", "same_ways": None,
    "pools": [
        pool("trainer", "h100-80gb-sxm", part("spot", "use2-az3", "400"), part("on_demand", "use2-az1", "1100")),
        pool("rollouts", "l40s-48gb-pcie", part("on_demand", "use2-az1", "200", "g6e.48xlarge")),
    ],
}  # fmt: skip
ENDS = copy.deepcopy(SAVED) | {"sure_hours": 30.0}
ENDS["pools"][0]["deadline_hours"] = 20.0
NONE = checked("skypilot", Options())


def documents(saved: dict[str, Any] = SAVED, options: Options = NONE) -> list[dict[str, Any]]:
    (file,) = render_pools(saved, "pools.json", options)
    assert file.path == "job-group.yaml"
    return list(yaml.safe_load_all(file.text))


def test_the_end_that_pools_are_planned_for_is_said() -> None:
    (file,), (without,) = render_pools(ENDS, "pools.json", NONE), render_pools(SAVED, "pools.json", NONE)
    assert "# planned to end by 2026-11-21 06:00 UTC" in file.text and "planned to end" not in without.text


def test_both_pools_start_together_and_end_with_the_trainer() -> None:
    header, trainer, rollouts = documents()
    assert (header["execution"], header["primary_tasks"]) == ("parallel", ["trainer"])
    assert [(one["name"], one["num_nodes"]) for one in (trainer, rollouts)] == [
        ("trainer", 2),
        ("rollouts", 2),
    ]
    assert [place["use_spot"] for place in trainer["resources"]["ordered"]] == [True, False]
    # compute over nodes and hours, a quarter above
    assert [place["max_hourly_cost"] for place in trainer["resources"]["ordered"]] == [25.0, 68.75]
    assert rollouts["resources"]["ordered"][0]["instance_type"] == "g6e.48xlarge"
    assert (trainer["resources"]["labels"]["pool"], trainer["resources"]["labels"]["workload"]) == (
        "trainer",
        "grpo",
    )


def test_only_figures_of_the_answer_are_stated() -> None:
    _, trainer, _ = documents()
    told = {key: value for key, value in trainer["envs"].items() if key.startswith("PLANNER_")}
    assert told == {
        "PLANNER_RUN_ID": "pools-abababababab", "PLANNER_NODES": "2", "PLANNER_GPUS_PER_NODE": "8",
        "PLANNER_TENSOR_PARALLEL": "2", "PLANNER_PIPELINE_PARALLEL": "1", "PLANNER_DATA_PARALLEL": "8",
    }  # fmt: skip
    assert "OMP_NUM_THREADS" not in trainer["envs"]


def test_each_pool_has_a_command_of_its_own_and_stops_without_it() -> None:
    _, trainer, rollouts = documents()
    assert "torchrun" in trainer["run"] and "PLANNER_TRAINER_COMMAND:?" in trainer["run"]
    assert "torchrun" not in rollouts["run"] and "PLANNER_ROLLOUTS_COMMAND:?" in rollouts["run"]
    for one in (trainer, rollouts):
        assert "PLANNER_COMMAND" not in one["run"] and shellcheck(f"#!/bin/bash\n{one['run']}") == ""


def test_sky_takes_the_group_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    text = render_pools(SAVED, "pools.json", NONE)[0].text
    wrong = {
        "type": text.replace("p5.48xlarge\n", "p5.47xlarge\n"), "primary": text.replace("  - trainer", "  - trainr"),
        "way": text.replace("execution: parallel", "execution: paralel"),
    }  # fmt: skip
    launches = [_launch(SAVED, one) for one in SAVED["pools"]]
    said = sky_says({"good": text, **wrong}, tmp_path, launches)
    assert said.pop("good") == "" and all(said.values())


def test_texts_of_users_stay_texts() -> None:
    hostile = copy.deepcopy(SAVED)
    hostile["workload"] = "x\n---\nname: evil # $(reboot) '\"`"
    found = documents(hostile)
    assert len(found) == 3 and [one["name"] for one in found[1:]] == ["trainer", "rollouts"]
    assert "reboot" not in found[1]["run"]


def test_what_cannot_start_is_refused_by_name() -> None:
    reserved = copy.deepcopy(SAVED)
    reserved["pools"][0]["parts"][0]["purchase_option"] = "capacity_block"
    faults = {
        "capacity_block of aws": reserved, "no pair of pools": {**SAVED, "pools": []},
        "save it again": {**SAVED, "pools": [{"name": "trainer"}]},
    }  # fmt: skip
    for said, saved in faults.items():
        with pytest.raises(InputError, match=said):
            documents(saved)
    with pytest.raises(InputError, match="leave it out"):
        documents(SAVED, Options("megatron"))


def test_the_command_takes_pools_for_skypilot_alone(
    run_cli: Callable[..., CliResult], tmp_path: Path
) -> None:
    saved = tmp_path / "pools.json"
    saved.write_text(json.dumps(SAVED), encoding="utf-8")
    done = run_cli("export", str(saved), "--to", "skypilot")
    assert done.code == 0 and "execution: parallel" in done.stdout
    other = run_cli("export", str(saved), "--to", "slurm")
    assert other.code == 2 and "an answer of `planner pools`; export takes" in other.stderr
    assert run_cli("export", str(saved), "--to", "skypilot", "--option", "queue=x").code == 2
