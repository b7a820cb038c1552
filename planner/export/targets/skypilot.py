"""SkyPilot: a managed job that tries the plan's places in order, and what only its server's configuration can say.

Facts: sky/utils/schemas.py and the YAML reference of SkyPilot 0.14. Reservations are settings of the server, and
capacity blocks have no field, so these go elsewhere or are refused by name.

A fleet with more runs than workers, or on several offers, is a pool for each offer, whose workers go from run to run: a
managed job for each run would start as many machines. By SkyPilot 0.14 a pool has one kind of machine, no `ordered` and
no `job_recovery`, and replaces what is preempted (`validate_service_task` of sky/serve/serve_utils.py); mounts are the
pool's, not the job's (`sky jobs launch`); a job that asks for no resources has a worker to itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.frameworks.model import Part
from planner.export.frameworks.registry import part_of
from planner.export.machines import (
    discounts,
    efa_interfaces,
    gcp_machine,
    is_zone_id,
    refuse_others,
    zone_names,
)
from planner.export.names import KUBERNETES_NAME, clean, clean_tags
from planner.export.program import command_lines, export_lines, heading, setup_lines, start_words, variables
from planner.export.quoting import comment, shell_words, yaml_text
from planner.export.registry import Options
from planner.export.software import image_for
from planner.export.view import Launch, Pool, split
from planner.plan.starters import skypilot_clouds

Mounts = dict[str, tuple[str, dict[str, Any]]]
COST_CAP = 1.25
"""A place is left where its price has risen by a quarter: a chosen factor; raise it in the file."""
_RESTARTS_ON_ERRORS = 3
_NAME_MOST = 40
_MOUNTED = ("s3://", "gs://", "r2://", "oci://", "cos://", "https://")
_FABRIC = re.compile(r"a3-(highgpu|edgegpu)-8g")


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return `task.yaml`, files of the framework, and `sky-config.yaml` where reservations are to be used.

    Raises:
        InputError: SkyPilot cannot start this plan; names the pool and what can.
    """
    _check(launch)
    mounts = _mounts(launch)
    launch = _mounted(launch, mounts)
    part = part_of(options.framework, launch)
    zones = zone_names(options.values.get("zones", ""))
    config = _server_config(launch, options.values.get("aws-capacity-reservation", ""))
    if launch.way == "workers" and (
        launch.tasks > launch.workers or (len(launch.pools) > 1 and not launch.moves)
    ):
        files = _fleet(launch, part, zones, mounts, config=bool(config))
    else:
        text = "\n".join(heading(launch, *part.notes, *_how(launch, bool(config), zones))) + "\n"
        files = [ExportFile("task.yaml", text + yaml_text(task(launch, part, zones, mounts)))]
    if config:
        files.append(ExportFile("sky-config.yaml", _CONFIG_NOTE + yaml_text(config)))
    return (*files, *part.files)


def chain(launch: Launch, phases: Sequence[Sequence[ExportFile]]) -> tuple[ExportFile, ...]:
    """Return a pipeline: one managed job whose tasks, the phases, run one after the other.

    Raises:
        InputError: independent runs, each of which is a job of its own.
    """
    if launch.way == "workers":
        raise InputError(
            f"--phase all: {launch.all_tasks} independent runs are as many jobs, and a pipeline is one; write each "
            "phase with --phase N"
        )
    files = dict.fromkeys(file for phase in phases for file in phase)
    tasks = [file for phase in phases for file in phase if file.path == "task.yaml"]
    head = [
        f"{launch.name}: {len(phases)} phases, one after the other",
        "start: sky jobs launch pipeline.yaml, not the tasks below alone",
    ]
    named = yaml_text({"name": clean(launch.name, KUBERNETES_NAME, most=_NAME_MOST)})
    text = "".join(f"# {comment(line)}\n" for line in head)
    pipeline = ExportFile("pipeline.yaml", text + "---\n".join([named, *(file.text for file in tasks)]))
    return (pipeline, *(file for file in files if file.path != "task.yaml"))


def task(launch: Launch, part: Part, zones: dict[str, str], mounts: Mounts) -> dict[str, Any]:
    """The task as SkyPilot's YAML."""
    resources = _machine(launch) | {
        "job_recovery": {
            "strategy": "EAGER_NEXT_REGION"
            if len({pool.region for pool in launch.pools}) > 1
            else "FAILOVER",
            "max_restarts_on_errors": _RESTARTS_ON_ERRORS,
        },
        "ordered": places(launch, zones),
    }
    values = variables(launch, part)
    if launch.way == "workers":
        values["PLANNER_RUN_COUNT"] = str(launch.all_tasks)
    whole: dict[str, Any] = {
        "name": clean(launch.name, KUBERNETES_NAME, most=_NAME_MOST),
        "workdir": ".",
        "num_nodes": launch.nodes,
        "resources": resources,
        "envs": values,
    }
    if launch.run.secrets:
        whole["secrets"] = dict.fromkeys(launch.run.secrets, "")
    if mounts:
        whole["file_mounts"] = dict(mounts.values())
    if run := _gcp_flex(launch):
        whole["config"] = run
    return whole | {"run": "\n".join(_script(launch, part)) + "\n"}


def _machine(launch: Launch) -> dict[str, Any]:
    """What all machines of a launch have."""
    return {
        "image_id": f"docker:{image_for(launch.pools, launch.run.image)}",
        "disk_size": max(256, round(4 * (launch.checkpoints.size_gib or 0))),
        "labels": clean_tags(launch.tags, "skypilot"),
    }


def _fleet(
    launch: Launch, part: Part, zones: dict[str, str], mounts: Mounts, *, config: bool
) -> list[ExportFile]:
    """For each offer a pool of its workers, and the runs that they do: `task.yaml`, `pool.yaml`.

    Workers that move are one pool.
    """
    offers: dict[tuple[str, ...], list[Pool]] = {}
    for pool in launch.pools:
        key = (pool.provider, pool.region, pool.instance_type, pool.option)
        offers.setdefault(() if launch.moves else key, []).append(pool)
    runs = split(launch.tasks, [sum(pool.share for pool in pools) for pools in offers.values()])
    files, begin = [], launch.begin
    for number, (pools, count) in enumerate(zip(offers.values(), runs, strict=True), start=1):
        offer_launch, end = launch.only(*pools), "" if len(offers) == 1 else f"-{number}"
        name = clean(launch.name, KUBERNETES_NAME, most=_NAME_MOST - len(end)) + end
        how = [
            f"workers: sky jobs pool apply --yes --pool {name} pool{end}.yaml",
            f"{count} runs from {begin} on: sky jobs launch --yes --pool {name} --num-jobs {count} task{end}.yaml",
            f"workers stay and are paid until: sky jobs pool down --yes {name}",
        ]
        if any(not pool.is_spot for pool in pools) and any(pool.is_spot for pool in pools):
            how.append(
                "on-demand is taken whenever spot is not available; the plan waits until the last moment"
            )
        text = (
            "\n".join(heading(offer_launch, *part.notes, *how, *_notes(offer_launch, config, zones))) + "\n"
        )
        if count:
            files.append(
                ExportFile(
                    f"task{end}.yaml",
                    text + yaml_text(_runs(offer_launch, part, name, begin, launch.all_tasks)),
                )
            )
            files.append(ExportFile(f"pool{end}.yaml", text + yaml_text(_pool(offer_launch, zones, mounts))))
        begin += count
    return files


def _runs(launch: Launch, part: Part, name: str, begin: int, tasks: int) -> dict[str, Any]:
    """The job that a pool does once for each of its runs, which begin at `begin` of all `tasks`."""
    index = f'export PLANNER_RUN_INDEX="$(({begin} + SKYPILOT_JOB_RANK))"'
    whole: dict[str, Any] = {
        "name": name, "workdir": ".", "num_nodes": launch.nodes,
        "envs": {**variables(launch, part), "PLANNER_RUN_COUNT": str(tasks)},
    }  # fmt: skip
    if launch.run.secrets:
        whole["secrets"] = dict.fromkeys(launch.run.secrets, "")
    return whole | {"run": "\n".join([index, *_script(launch, part)]) + "\n"}


def _pool(launch: Launch, zones: dict[str, str], mounts: Mounts) -> dict[str, Any]:
    """Workers of one offer, whose zones are any of several; those that move try their offers in order."""
    pool_places = places(launch, zones)
    several = {"ordered" if launch.moves else "any_of": pool_places}
    where = pool_places[0] if len(pool_places) == 1 else several
    whole: dict[str, Any] = {
        "pool": {"workers": launch.workers}, "workdir": ".", "num_nodes": launch.nodes,
        "resources": _machine(launch) | where,
    }  # fmt: skip
    if mounts:
        whole["file_mounts"] = dict(mounts.values())
    return whole | ({"config": run} if (run := _gcp_flex(launch)) else {})


def places(launch: Launch, zones: dict[str, str]) -> list[dict[str, Any]]:
    """The plan's places in its order; zones of AWS only where their names in the account are known."""
    out: list[dict[str, Any]] = []
    for pool in launch.pools:
        infra = [skypilot_clouds()[pool.provider]]
        if pool.region != "not-stated":
            infra.append(pool.region)
            infra.extend(_zone(pool, zones))
        entry: dict[str, Any] = {"infra": "/".join(infra), "use_spot": pool.is_spot}
        machine = gcp_machine(pool)
        entry["instance_type"] = machine.machine_type
        if machine.accelerator_type:
            name = machine.accelerator_type.removeprefix("nvidia-tesla-").removeprefix("nvidia-").upper()
            entry["accelerators"] = f"{name}:{machine.count}"
        if launch.nodes > 1 and (efa_interfaces(pool)[0] or _FABRIC.match(pool.instance_type)):
            entry["network_tier"] = "best"
        entry["max_hourly_cost"] = round(float(pool.usd_per_hour) * COST_CAP, 4)
        _add(out, entry)
    return out


def _add(places: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    """Add a place, or raise the cap of the one that is the same but for its price."""
    for other in places:
        if all(other.get(key) == value for key, value in entry.items() if key != "max_hourly_cost"):
            other["max_hourly_cost"] = max(other["max_hourly_cost"], entry["max_hourly_cost"])
            return
    places.append(entry)


def _zone(pool: Pool, zones: dict[str, str]) -> list[str]:
    if is_zone_id(pool.zone):
        return [zones[pool.zone]] if pool.zone in zones else []
    return [pool.zone] if pool.zone else []


def _check(launch: Launch) -> None:
    """Refuse what SkyPilot has no words for.

    Raises:
        InputError: names the pool and a target that can start it.
    """
    for pool in launch.pools:
        if pool.option == "owned":
            raise InputError(
                f"--to skypilot: {pool.instance_type} is a machine you own; start it with --to slurm or --to kubernetes"
            )
        if pool.option == "capacity_block":
            raise InputError(
                f"--to skypilot: {pool.place} is a capacity block, which has no field there; use --to terraform, "
                "--to parallelcluster or --to karpenter"
            )
    refuse_others(launch, "skypilot", frozenset(skypilot_clouds()))
    if launch.way == "together":
        raise InputError(
            "--to skypilot: one gang on several offers at once; a task there has one kind of node: use --to slurm"
        )


def _how(launch: Launch, config: bool, zones: dict[str, str]) -> Iterator[str]:
    name = clean(launch.name, KUBERNETES_NAME, most=_NAME_MOST)
    if launch.way == "workers" and launch.tasks > 1:
        last = launch.begin + launch.tasks - 1
        yield (
            f"start all {launch.tasks}: for i in $(seq {launch.begin} {last}); do sky jobs launch --yes --async "
            f"--name {name[: _NAME_MOST - 6]}-$i --env PLANNER_RUN_INDEX=$i task.yaml; done"
        )
    else:
        index = f"--env PLANNER_RUN_INDEX={launch.begin} " if launch.way == "workers" else ""
        yield f"start: sky jobs launch --name {name} {index}task.yaml"
    yield "job_recovery holds for managed jobs (sky jobs launch) only; sky launch ignores it"
    yield from _notes(launch, config, zones)


def _notes(launch: Launch, config: bool, zones: dict[str, str]) -> Iterator[str]:
    if not launch.command:
        yield "no run.command in the workload: give sky jobs launch --env PLANNER_COMMAND='train.py ...'"
    if config:
        yield "reservations: put sky-config.yaml into ~/.sky/config.yaml of the SkyPilot server first"
    unnamed = [pool.zone for pool in launch.pools if is_zone_id(pool.zone) and pool.zone not in zones]
    if unnamed:
        yield (
            f"zones {', '.join(dict.fromkeys(unnamed))} are ids; their names differ by account: "
            "aws ec2 describe-availability-zones; then --option zones=ID=NAME,... (without: all zones of the region)"
        )
    if owed := discounts(launch):
        yield f"{owed}: a discount on the bill; nothing of it is launched"


def _mounts(launch: Launch) -> Mounts:
    """By key of `run`: the path that the program sees, and what is mounted there; a path is left as it is.

    What is written goes through a cache on the node's disk, which uploads files in the order in which they were closed
    and takes appended and random writes. Checkpoints of several nodes do not: a node's file that says that the
    checkpoint is whole could be uploaded before the parts of others.
    """
    run = launch.run
    cached = "MOUNT_CACHED"
    wanted = (
        ("data", "/data", run.data, "MOUNT"),
        ("checkpoints", "/checkpoints", run.checkpoints, cached if launch.nodes == 1 else "MOUNT"),
        ("outputs", "/outputs", run.outputs, cached),
    )
    return {
        key: (path, {"source": source, "mode": mode})
        for key, path, source, mode in wanted
        if source.startswith(_MOUNTED)
    }


def _mounted(launch: Launch, mounts: Mounts) -> Launch:
    """The launch as its program sees it: variables and flags of frameworks name the mounted paths."""
    run = launch.run
    inside = {"data": run.data, "checkpoints": run.checkpoints, "outputs": run.outputs}
    inside |= {key: path for key, (path, _) in mounts.items()}
    run = replace(run, data=inside["data"], checkpoints=inside["checkpoints"], outputs=inside["outputs"])
    return replace(launch, run=run)


def _gcp_flex(launch: Launch) -> dict[str, Any]:
    """Flex-start of Google Cloud: a queued request for so long a run."""
    pools = [pool for pool in launch.pools if pool.option == "flex_start"]
    if not pools:
        return {}
    seconds = round(max(pool.hours for pool in pools) * 3600)
    return {"gcp": {"managed_instance_group": {"run_duration": seconds, "provision_timeout": 86400}}}


def _server_config(launch: Launch, reservation: str) -> dict[str, Any]:
    """Settings of the server that make it use reserved capacity."""
    if reservation and not re.fullmatch(r"cr-[0-9a-f]{8,17}", reservation):
        raise InputError(
            f"--option aws-capacity-reservation={reservation!r}: an id such as cr-0123456789abcdef0"
        )
    reserved = [pool for pool in launch.pools if pool.option.startswith("reserved") and is_zone_id(pool.zone)]
    config: dict[str, Any] = {}
    if reserved or reservation:
        config["aws"] = {"prioritize_reservations": True}
        if reservation:
            config["aws"]["specific_reservations"] = [reservation]
    if any(pool.option == "future_reservation" for pool in launch.pools):
        config["gcp"] = {"prioritize_reservations": True}
    return config


def _script(launch: Launch, part: Part) -> list[str]:
    """The run section: on each node, with the first as rendezvous."""
    args = [f"command+=({shell_words(part.args)})"] if part.args else []
    head = ['head=$(head -n 1 <<<"$SKYPILOT_NODE_IPS")'] if launch.nodes > 1 else []
    words = start_words(launch, part, head='"$head"', job='"$SKYPILOT_TASK_ID"')
    words.append('"${command[@]}"')
    return [
        "set -euo pipefail",
        *export_lines({}, launch.run.secrets),
        *setup_lines(launch),
        *command_lines(launch),
        *args,
        *head,
        " \\\n  ".join(words),
    ]


_CONFIG_NOTE = """\
# Settings of the SkyPilot server (~/.sky/config.yaml): in a task they are accepted and do nothing.
# Add the ids of your reservations under specific_reservations where they are not open to all instances.
"""
