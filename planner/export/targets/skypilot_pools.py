"""SkyPilot: trainer and rollout pools of `planner pools` as one Job Group, which starts both and ends with the trainer.

Facts: `load_job_group_from_yaml_str` of sky/utils/dag_utils.py of SkyPilot 0.14: a header (name, execution,
primary_tasks, termination_delay), then one task for each job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from catalogs.tables.accelerators import load_accelerators
from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.frameworks.registry import part_of
from planner.export.machines import zone_names
from planner.export.names import KUBERNETES_NAME, clean, clean_tags
from planner.export.program import NO_COMMAND
from planner.export.quoting import comment, yaml_text
from planner.export.registry import Options
from planner.export.targets.skypilot import task
from planner.export.view import Checkpoints, Launch, Limits, Pool, Training
from planner.plan.layout import Layout
from planner.plan.run import Run
from planner.plan.starters import skypilot_clouds
from planner.plan.words import enable_first
from planner.render.numbers import usd

_AGAIN = "save it again: planner pools WORKLOAD -o json --out POOLS.json"
_ENDS_AFTER = "5m"
"""Rollouts that are under way end when the trainer has: a chosen time; change it in the file."""
_NAME_MOST = 40
_TOLD = frozenset(
    ["PLANNER_RUN_ID", "PLANNER_NODES", "PLANNER_GPUS_PER_NODE", "PLANNER_TENSOR_PARALLEL", "PLANNER_PIPELINE_PARALLEL",
     "PLANNER_DATA_PARALLEL"]
)  # fmt: skip
"""Variables that the answer has figures for: it states no batch and no recomputation of a pool."""


def render_pools(saved: Mapping[str, Any], name: str, options: Options) -> tuple[ExportFile, ...]:
    """Return `job-group.yaml`.

    Args:
        saved: JSON of `planner pools`.
        name: of its file, for messages.
        options: `zones` as for one task.

    Raises:
        InputError: no pair of pools, not such an answer, a framework, or machines that SkyPilot cannot start.
    """
    if options.framework != "none":
        raise InputError(
            f"--framework {options.framework}: the answer of pools states no batch: leave it out"
        )
    if not saved.get("pools"):
        raise InputError(f"{name}: no pair of pools meets the limits, so there is nothing to start")
    try:
        launches = [_launch(saved, pool) for pool in saved["pools"]]
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, InvalidOperation) as error:
        raise InputError(
            f"{name}: no answer of `planner pools`, or an older one ({error!r}): {_AGAIN}"
        ) from None
    zones = zone_names(options.values.get("zones", ""))
    names = [str(pool["name"]) for pool in saved["pools"]]
    header = {
        "name": clean(str(saved["workload"]), KUBERNETES_NAME, most=_NAME_MOST), "execution": "parallel",
        "primary_tasks": [names[0]], "termination_delay": {"default": _ENDS_AFTER},
    }  # fmt: skip
    jobs = [_job(launch, name, zones) for launch, name in zip(launches, names, strict=True)]
    text = "".join(f"# {comment(line)}\n" for line in _heading(saved, names, launches))
    return (ExportFile("job-group.yaml", text + "---\n".join(yaml_text(one) for one in (header, *jobs))),)


def _job(launch: Launch, name: str, zones: dict[str, str]) -> dict[str, Any]:
    """One pool: the task of a single plan with a command of its own."""
    for pool in launch.pools:
        if pool.provider not in skypilot_clouds() or pool.option not in ("on_demand", "spot"):
            raise InputError(
                f"--to skypilot: {pool.place} is {pool.option} of {pool.provider}, which it cannot start"
            )
    job = task(launch, part_of("none", launch), zones, {})
    job["resources"]["labels"] |= clean_tags({"pool": name}, "skypilot")
    job["name"] = name
    job["envs"] = {key: value for key, value in job["envs"].items() if key in _TOLD or key.startswith("NCCL")}
    asked = f"${{{_command(name)}:?start with sky jobs launch --env {_command(name)}=}}"
    job["run"] = job["run"].replace(f"${{PLANNER_COMMAND:?{NO_COMMAND}}}", asked)
    job["run"] = job["run"].replace("PLANNER_COMMAND", _command(name))
    if name == "rollouts":  # servers, not ranks of a gang: each node starts its own
        lines = job["run"].split("\n")
        start = next(at for at, line in enumerate(lines) if line.startswith("torchrun"))
        job["run"] = (
            "\n".join([*(line for line in lines[:start] if not line.startswith("head=")), '"${command[@]}"'])
            + "\n"
        )
    return job


def _command(pool: str) -> str:
    return f"PLANNER_{pool.upper()}_COMMAND"


def _heading(saved: Mapping[str, Any], names: list[str], launches: list[Launch]) -> Iterator[str]:
    yield f"{saved['workload']}: two pools for reinforcement learning, by planner pools of {saved['created_at']}"
    for name, launch in zip(names, launches, strict=True):
        first = launch.first
        yield (
            f"{name}: {launch.nodes} x {first.instance_type} ({first.gpus} x {first.accelerator} each), "
            f"{', else '.join(f'{pool.option} in {pool.place}' for pool in launch.pools)}"
        )
    cost, hours = usd(Decimal(saved["cost_usd"])), float(saved["hours"])
    yield from enable_first((pool.provider, pool.region) for launch in launches for pool in launch.pools)
    yield f"about {hours:,.1f} h and {cost}; prices change: plan again before a later launch"
    if any(pool.get("deadline_hours") for pool in saved["pools"]):
        last = datetime.fromisoformat(str(saved["start"])) + timedelta(hours=float(saved["sure_hours"]))
        yield f"planned to end by {last:%Y-%m-%d %H:%M} UTC: what falls back on on-demand changes in time for that"
    envs = " ".join(f"--env {_command(name)}='...'" for name in names)
    yield f"start: sky jobs launch {envs} job-group.yaml; it ends with the trainer"
    yield "the pools find each other through your program (object storage or a known address): SkyPilot names peers"
    yield "of a group on one Kubernetes network only; carry weights and samples as your framework does"


def _launch(saved: Mapping[str, Any], pool: Mapping[str, Any]) -> Launch:
    """A pool as what a single plan starts."""
    nodes = int(pool["nodes"])
    pools = tuple(_pool(pool, part) for part in pool["parts"])
    layout = Layout(
        tensor_parallel=int(pool["tensor_parallel"]), pipeline_parallel=int(pool["pipeline_parallel"]),
        context_parallel=1, data_parallel=int(pool["data_parallel"]), zero_stage=0, micro_batch=1, grad_accumulation=1,
        recompute="none",
    )  # fmt: skip
    limits = Limits(
        start=str(saved["start"]), deadline=None, hours=float(pool["hours"]), hours_p90=None,
        cost_usd=Decimal(str(pool["cost_usd"])), cost_p90_usd=None, budget_usd=None, step_time_s=None,
        throughput_per_s=None, mfu=None,
    )  # fmt: skip
    return Launch(
        run_id=f"pools-{str(saved['workload_sha256'])[:12]}", name=str(saved["workload"]), kind="training",
        created_at=str(saved["created_at"]), planner_version=str(saved["planner_version"]),
        way="one" if len(pools) == 1 else "in_turn", pools=pools, nodes=nodes, layout=layout, run=Run(),
        training=Training("", "", "", None, None, "", None, None), checkpoints=Checkpoints(None, None, None, None),
        limits=limits, warnings=(),
    )  # fmt: skip


def _pool(pool: Mapping[str, Any], part: Mapping[str, Any]) -> Pool:
    table, name = load_accelerators(), str(pool["accelerator"])
    at = [str(key) for key in table["accelerator"]].index(name)
    nodes, hours = int(part["nodes"]), float(part["hours"])
    spent = sum(
        (Decimal(line["amount_usd"]) for line in part["lines"] if line["kind"] == "compute"), Decimal(0)
    )
    return Pool(
        provider=str(part["provider"]), region=str(part["region"]), zone=str(part["zone"]),
        instance_type=str(part["instance_type"]), family="", nodes=nodes, accelerator=name,
        vendor=str(table["vendor"][at]), generation=str(table["generation"][at]),
        gpus=int(float(pool["accelerators"]) / int(pool["nodes"])), vcpus=None,
        option=str(part["purchase_option"]), variant=str(part["option_variant"]),
        price_per_hour=spent / nodes / Decimal(repr(hours)), currency="USD", usd_per_currency=Decimal(1),
        price_as_of="", price_basis="", hours=hours, cost_usd=spent, spot_hours=None, quota_name="",
    )  # fmt: skip
