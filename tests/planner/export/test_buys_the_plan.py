"""Every export buys what the plan says: machines, counts, places, ways to buy, and how the program starts on them.

Over the plans of all examples and hand-made plans of the kinds that no example is; read back from what is written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.launch import in_two_parts, launch_of
from planner.export.machines import gcp_machine
from planner.export.registry import Options, export
from planner.export.view import Launch, Pool
from tests.cli.test_screen import EXAMPLES
from tests.conftest import CliResult
from tests.planned_examples import plan_of, pools_of
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.test_skypilot_pools import SAVED
from tests.planner.export.validators import LOADER

_WORKERS = LAUNCHES["workers"]
_A, _B = _WORKERS.pools[0], _WORKERS.pools[1]
_LARGE = replace(_A, instance_type="g6.12xlarge", nodes=1, gpus=4, vcpus=48, share=0.5, hours=10.0)
PARTS = in_two_parts(
    replace(_WORKERS, pools=(replace(_A, share=0.25), replace(_A, option="on_demand", share=0.125, spot_hours=None),
                             replace(_LARGE, option="on_demand", share=0.625, spot_hours=None)))
)  # fmt: skip
MADE: dict[str, Launch] = {
    **{f"made: {part.name}": part for part in PARTS.parts},
    **{f"made: {name}": launch for name, launch in LAUNCHES.items()},
    "made: two kinds in one region": replace(_WORKERS, pools=(replace(_A, share=0.5), _LARGE)),
    "made: capacity block": replace(
        LAUNCHES["one"], pools=(replace(LAUNCHES["one"].pools[0], option="capacity_block", spot_hours=None),)
    ),
    "made: owned": replace(
        LAUNCHES["one"],
        pools=(
            replace(LAUNCHES["one"].pools[0], provider="onprem", region="onprem", zone="", option="owned"),
        ),
    ),
}
NAMES = [*EXAMPLES, *MADE]
RESERVED = {"capacity-reservation": "cr-0123456789abcdef0"}


def launch(name: str) -> Launch:
    return MADE[name] if name in MADE else launch_of(plan_of(name))


def written(name: str, target: str, **values: str) -> dict[str, str]:
    """Files of an export; skips what the target refuses by name."""
    try:
        return {file.path: file.text for file in export(launch(name), target, Options(values=values))}
    except InputError as error:
        assert str(error).startswith((f"--to {target}: ", "--option "))
        pytest.skip(str(error))


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, LOADER))


def starts(text: str) -> tuple[int, int]:
    """Nodes and processes of a node that torchrun starts in a script."""
    nodes = re.search(r"--nnodes=(\d+)", text)
    each = re.search(r"--nproc-per-node=(\d+)", text)
    assert each is not None
    return int(nodes[1]) if nodes else 1, int(each[1])


def started(item: Launch, pool: Pool) -> tuple[int, int]:
    return item.nodes, max(pool.gpus, 1)


def saves(item: Launch, text: str) -> bool:
    """Whether a file states the plan's checkpoint interval."""
    seconds = item.checkpoints.interval_s
    return seconds is None or re.search(rf"PLANNER_CHECKPOINT_INTERVAL_S\W+{seconds:.0f}\b", text) is not None


@pytest.mark.parametrize("name", NAMES)
def test_torchrun_starts_every_rank_of_one_run(name: str) -> None:
    text, item = written(name, "torchrun")["run.sh"], launch(name)
    assert starts(text) == started(item, item.first)
    assert saves(item, text)


@pytest.mark.parametrize("name", NAMES)
def test_slurm_asks_for_whole_nodes_and_every_run_once(name: str) -> None:
    files, item = written(name, "slurm"), launch(name)
    runs: list[int] = []
    at_once = 0
    for text in files.values():
        asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", text, re.MULTILINE))
        assert int(asked["nodes"]) == item.nodes
        assert saves(item, text)
        kind = next(pool for pool in item.pools if f" {pool.instance_type} " in text.split("set -uo")[0])
        assert starts(text) == started(item, kind)
        assert int(asked["gpus-per-node"].rpartition(":")[2]) == kind.gpus
        if item.way == "workers":
            first, last, most = map(int, re.findall(r"\d+", asked["array"]))
            runs += range(first, last + 1)
            at_once += most
            longest = max(pool.hours for pool in item.pools if pool.instance_type == kind.instance_type)
            days, hours, minutes = map(int, re.findall(r"\d+", asked["time"])[:3])
            each = (last + 1 - first) / most
            assert days * 24 + hours + minutes / 60 >= (0 if item.moves else longest / max(each, 1) * 0.99)
    if item.way == "workers":
        assert runs == list(range(item.begin, item.begin + item.tasks))
        assert at_once == item.workers


@pytest.mark.parametrize("name", NAMES)
def test_skypilot_buys_the_places_in_order_and_every_run_once(name: str) -> None:
    files, item = written(name, "skypilot"), launch(name)
    tasks = {path: documents(text)[0] for path, text in files.items() if path.startswith("task")}
    pools = {path: documents(text)[0] for path, text in files.items() if path.startswith("pool")}
    bought: list[tuple[str, bool, str]] = []
    for number, task in enumerate([*pools.values()] or [*tasks.values()]):
        assert task["num_nodes"] == item.nodes
        resources = task["resources"]
        places = resources.get("ordered") or resources.get("any_of") or [resources]
        bought += [(one["instance_type"], one["use_spot"], one["infra"].split("/")[-1]) for one in places]
        script = [*tasks.values()][number]["run"]
        kind = next(p for p in item.pools if gcp_machine(p).machine_type == places[0]["instance_type"])
        assert starts(script) == started(item, kind)
        assert saves(item, str([*tasks.values()][number]["envs"]))
    wanted = [(gcp_machine(pool).machine_type, pool.is_spot) for pool in item.pools]
    assert [*dict.fromkeys((kind, spot) for kind, spot, _ in bought)] == [*dict.fromkeys(wanted)]
    for pool in item.pools:
        if pool.region != "not-stated":
            assert any(kind == gcp_machine(pool).machine_type and spot == pool.is_spot
                       and place in (pool.region, pool.zone) for kind, spot, place in bought)  # fmt: skip
    if pools:
        assert sum(pool["pool"]["workers"] for pool in pools.values()) == item.workers
        jobs = [int(count) for text in files.values() for count in re.findall(r"--num-jobs (\d+) task", text)]
        assert sum(jobs) // 2 == item.tasks  # the heading is in both files of a pool


def _pools(folder: Path, *, asked: bool) -> dict[str, Any]:
    """An answer of `planner pools`: of the example, else the hand-made one, with places taken in turn."""
    if not asked:
        return SAVED
    saved = pools_of("grpo-8b").save(folder / "pools.json")
    answer: dict[str, Any] = json.loads(saved.read_text(encoding="utf-8"))
    return answer


@pytest.mark.parametrize("asked", [True, False], ids=["example", "made"])
def test_a_job_group_buys_both_pools_and_starts_every_rank_of_the_trainer(
    asked: bool, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    saved = _pools(tmp_path, asked=asked)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(saved), encoding="utf-8")
    done = run_cli("export", str(path), "--to", "skypilot", "--out", str(tmp_path))
    assert done.code == 0, done.stderr
    header, *jobs = documents((tmp_path / "job-group.yaml").read_text(encoding="utf-8"))
    assert [job["name"] for job in jobs] == [pool["name"] for pool in saved["pools"]]
    assert header["primary_tasks"] == [saved["pools"][0]["name"]]
    for job, pool in zip(jobs, saved["pools"], strict=True):
        gpus = int(pool["accelerators"]) // pool["nodes"]
        assert job["num_nodes"] == pool["nodes"]
        assert (job["envs"]["PLANNER_NODES"], job["envs"]["PLANNER_GPUS_PER_NODE"]) == (
            str(pool["nodes"]),
            str(gpus),
        )
        assert ("torchrun" in job["run"]) == (pool is saved["pools"][0])
        if "torchrun" in job["run"]:
            assert starts(job["run"]) == (pool["nodes"], gpus)
        # SkyPilot chooses among the zones of a region itself, so what is bought there in turn is one entry
        bought: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
        for part in pool["parts"]:
            infra = f"{part['provider']}/{part['region']}"
            bought.setdefault((part["instance_type"], infra, part["purchase_option"] == "spot"), []).append(
                part
            )
        places = job["resources"]["ordered"]
        for place, ((machine, infra, spot), parts) in zip(places, bought.items(), strict=True):
            assert (place["instance_type"], place["use_spot"]) == (machine, spot)
            assert place["infra"].startswith(infra)
            for part in parts:
                spent = sum(float(line["amount_usd"]) for line in part["lines"] if line["kind"] == "compute")
                assert place["max_hourly_cost"] >= spent / part["nodes"] / part["hours"] * (1 - 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_asks_for_the_machines_of_each_region(name: str) -> None:
    item = launch(name)
    regions = dict.fromkeys(f"{pool.provider}/{pool.region}" for pool in item.pools)
    runs, flavors = 0, list[Pool]()
    for region in regions:
        files = written(name, "kubernetes", region=region)
        found = documents(files["job.yaml"])
        own = [pool for pool in item.pools if f"{pool.provider}/{pool.region}" == region]
        for document in (one for one in found if one["kind"] in ("Job", "JobSet")):
            spec = document["spec"]
            spec = spec if document["kind"] == "Job" else spec["replicatedJobs"][0]["template"]["spec"]
            asked = spec["template"]["spec"]["containers"][0]["resources"]["requests"]
            gpus = sum(int(count) for key, count in asked.items() if key.endswith("/gpu"))
            kinds = {pool.instance_type: pool for pool in own}
            if item.way == "workers":
                runs += spec["completions"]
                number = len(kinds) > 1 and int(document["metadata"]["name"].rpartition("-")[2]) - 1
                pool = [*kinds.values()][int(number)]
            else:
                pool = own[0]
                assert (spec["completions"], spec["parallelism"]) == (item.nodes, item.nodes)
            assert gpus == pool.gpus
            (script,) = [one["data"]["run.sh"] for one in found if one["kind"] == "ConfigMap"
                         and one["metadata"]["name"] == f"{document['metadata']['name']}-script"]  # fmt: skip
            assert starts(script) == started(item, pool)
            assert saves(item, script)
        labels = [
            one["spec"]["nodeLabels"]
            for one in documents(files["queue.yaml"])
            if one["kind"] == "ResourceFlavor"
        ]
        assert Counter(one["node.kubernetes.io/instance-type"] for one in labels) == Counter(
            pool.instance_type.partition("+")[0] for pool in own
        )
        assert sum("spot" in str(one) for one in labels) == sum(
            pool.is_spot and pool.provider in ("aws", "gcp", "azure") for pool in own
        )
        flavors += own
    if item.way == "workers":
        assert runs == item.tasks * (len(regions) if item.moves else 1)
    assert len(flavors) == len(item.pools)


def blocks(text: str, kind: str) -> Iterator[str]:
    """Resources of a kind, as text."""
    for found in re.finditer(rf'^resource "{kind}" "[^"]+" {{\n(.*?)^}}', text, re.MULTILINE | re.DOTALL):
        yield found[1]


_SCALE_SET = "azurerm_linux_virtual_machine_scale_set"
_GROUP = {
    "aws": ("aws_autoscaling_group", r"desired_capacity\s+= (\d+)", "aws_launch_template"),
    "gcp": ("google_compute_instance_group_manager", r"target_size\s+= (\d+)", "google_compute_instance_template"),
    "azure": (_SCALE_SET, r"instances\s+= (\d+)", _SCALE_SET),
}  # fmt: skip
_TYPE = {"aws": "instance_type", "gcp": "machine_type", "azure": "sku"}
_SPOT = {"aws": 'market_type = "spot"', "gcp": '"SPOT"', "azure": '"Spot"'}


@pytest.mark.parametrize("name", NAMES)
def test_terraform_makes_each_place_with_its_machines(name: str) -> None:
    text, item = written(name, "terraform")["main.tf"], launch(name)
    plain = re.sub(r" +", " ", text)
    for provider in dict.fromkeys(pool.provider for pool in item.pools):
        own = [pool for pool in item.pools if pool.provider == provider]
        group, count, template = _GROUP[provider]
        groups, templates = [*blocks(plain, group)], [*blocks(plain, template)]
        assert len(groups) == len(templates) == len(own)
        for pool, made, machine in zip(own, groups, templates, strict=True):
            number = re.search(count.replace(r"\s+", " "), made)
            assert pool.option == "flex_start" or (number is not None and int(number[1]) == pool.nodes)
            assert f'{_TYPE[provider]} = "{gcp_machine(pool).machine_type}"' in machine
            assert (_SPOT[provider] in machine) == pool.is_spot
            assert (pool.option == "capacity_block") == ("capacity-block" in machine)
            place = pool.zone if provider == "gcp" and pool.zone else pool.region
            assert f'"{place}"' in made + machine
            if item.way == "workers" and item.nodes == 1:  # nodes of their own need not be near each other
                assert "placement" not in machine.replace("single_placement_group = false", "")
                assert '"efa' not in machine
        if pool.zone and provider == "aws":
            assert all(f'var.subnet_ids["{one.zone}"]' in plain for one in own if one.zone)
    active = "[var.place]" if item.moves else str(list(range(len(item.pools))))
    assert f"active = {active}" in plain


@pytest.mark.parametrize("target", ["parallelcluster", "karpenter"])
@pytest.mark.parametrize("name", NAMES)
def test_clusters_on_aws_have_a_pool_for_each_place(name: str, target: str) -> None:
    needs = any(pool.option == "capacity_block" for pool in launch(name).pools)
    files, item = written(name, target, **(RESERVED if needs else {})), launch(name)
    regions = [pool.region for pool in item.pools]
    pools = list(item.pools)
    if target == "parallelcluster":  # a cluster for each region
        pools.sort(key=lambda pool: regions.index(pool.region))
    made: list[tuple[str, int, bool]] = []
    for text in files.values():
        for document in documents(text):
            if target == "parallelcluster" and "Scheduling" in document:
                for queue in document["Scheduling"]["SlurmQueues"]:
                    (one,) = queue["ComputeResources"]
                    (machine,) = one["Instances"]
                    made.append((machine["InstanceType"], one["MaxCount"], queue["CapacityType"] == "SPOT"))
                    assert item.gang(pools[len(made) - 1]) > 1 or not one["Efa"]["Enabled"]
            elif target == "karpenter" and document["kind"] == "NodePool":
                spec = document["spec"]
                rules = {rule["key"]: rule["values"] for rule in spec["template"]["spec"]["requirements"]}
                pool = pools[len(made)]
                (gpus,) = spec["limits"].values()
                spot = "spot" in rules["karpenter.sh/capacity-type"]
                made.append((*rules["node.kubernetes.io/instance-type"], gpus // pool.gpus, spot))
                assert "reserved" not in rules["karpenter.sh/capacity-type"] or not pool.is_spot
    wanted = [(pool.instance_type, pool.nodes, pool.is_spot) for pool in pools]
    assert Counter(made) <= Counter(wanted)
    assert made == wanted or "left out" in "".join(files.values())
