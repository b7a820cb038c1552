"""AWS ParallelCluster: a Slurm cluster per region with a queue for each place of the plan.

Facts: the schema and validators of aws-parallelcluster 3.16. Subnets are the user's: without `--option subnets` the
file names one that AWS does not have, so that nothing is created.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.machines import discounts, efa_interfaces, refuse_others
from planner.export.names import clean_tags
from planner.export.program import heading
from planner.export.quoting import yaml_text
from planner.export.registry import Options
from planner.export.view import Launch, Pool

NO_SUBNET = "subnet-00000000000000000"
_CAPACITY = {"spot": "SPOT", "capacity_block": "CAPACITY_BLOCK"}
_HEAD = "m5.xlarge"
_DISK_GB = 200
_IDLE_MINUTES = 10
_SUBNET = re.compile(r"subnet-[0-9a-f]{8}(?:[0-9a-f]{9})?\Z")
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}\Z")


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return `cluster.yaml`, or a file for each region.

    Raises:
        InputError: not of AWS alone, an option that is not of its form, or a capacity block without its reservation.
    """
    refuse_others(launch, "parallelcluster", frozenset({"aws"}))
    subnets = subnets_of(options.values.get("subnets", ""))
    reservation = _reservation(launch, options.values.get("capacity-reservation", ""))
    regions = _regions(launch)
    files = []
    for region in regions:
        name = "cluster.yaml" if len(regions) == 1 else f"cluster-{regions.index(region)}.yaml"
        text = "\n".join(heading(launch, *_how(launch, region, name, subnets))) + "\n"
        files.append(ExportFile(name, text + yaml_text(cluster(launch, region, subnets, reservation))))
    return tuple(files)


@cache
def known_regions() -> frozenset[str]:
    """Regions that ParallelCluster makes clusters in (pcluster_regions.csv)."""
    return frozenset(row["region"] for row in bundled_rows("pcluster_regions.csv"))


def _regions(launch: Launch) -> list[str]:
    """Regions of the plan in its order, without those that ParallelCluster refuses.

    Raises:
        InputError: it refuses all of them, or one that the plan cannot do without.
    """
    regions = list(dict.fromkeys(pool.region for pool in launch.pools))
    supported = [region for region in regions if region in known_regions()]
    if not supported or (not launch.moves and len(supported) < len(regions)):
        other = next(region for region in regions if region not in known_regions())
        raise InputError(
            f"--to parallelcluster: it makes no clusters in {other}; plan with constraints.regions, or take "
            "--to terraform or --to karpenter"
        )
    return supported


def cluster(launch: Launch, region: str, subnets: dict[str, str], reservation: str) -> dict[str, Any]:
    """The cluster of one region; queues in the plan's order."""
    own = [(place, pool) for place, pool in enumerate(launch.pools) if pool.region == region]
    head = subnets.get("head") or next(iter(subnets.values()), NO_SUBNET)
    return {
        "Region": region,
        "Image": {"Os": "ubuntu2204"},
        "Tags": [{"Key": key, "Value": value} for key, value in clean_tags(launch.tags, "aws").items()],
        "HeadNode": {"InstanceType": _HEAD, "Networking": {"SubnetId": head}, "Imds": {"Secured": True}},
        "Scheduling": {
            "Scheduler": "slurm",
            # a gang is of no use in part
            "ScalingStrategy": "all-or-nothing",
            "SlurmSettings": {
                "ScaledownIdletime": _IDLE_MINUTES,
                # else a limit above the partition's is accepted and waits for ever
                "CustomSlurmSettings": [{"EnforcePartLimits": "ALL"}],
            },
            "SlurmQueues": [queue(launch, place, pool, subnets, reservation) for place, pool in own],
        },
    }


def queue(
    launch: Launch, place: int, pool: Pool, subnets: dict[str, str], reservation: str
) -> dict[str, Any]:
    """The queue of one place: its nodes start with a job and end when they are idle; those of a block stay."""
    block = pool.option == "capacity_block"
    size = max(_DISK_GB, round(2 * (launch.checkpoints.size_gib or 0)))
    resource: dict[str, Any] = {
        "Name": f"place-{place}",
        "Instances": [{"InstanceType": pool.instance_type}],
        "MinCount": pool.nodes if block else 0,
        "MaxCount": pool.nodes,
        "Efa": {"Enabled": launch.gang(pool) > 1 and efa_interfaces(pool)[0] > 0},
    }
    if reservation and not pool.is_spot:
        resource["CapacityReservationTarget"] = {"CapacityReservationId": reservation}
    return {
        "Name": f"place-{place}",
        "CapacityType": _CAPACITY.get(pool.option, "ONDEMAND"),
        "Networking": {
            "SubnetIds": [subnets.get(pool.zone) or subnets.get(pool.region) or NO_SUBNET],
            # the nodes of a block are near each other already
            "PlacementGroup": {"Enabled": launch.gang(pool) > 1 and not block},
        },
        "ComputeSettings": {"LocalStorage": {"RootVolume": {"Size": size, "Encrypted": True}}},
        "ComputeResources": [resource],
    }


def subnets_of(text: str) -> dict[str, str]:
    """Read `use1-az6=subnet-...,head=subnet-...`: subnets by zone id, region, or `head`.

    Raises:
        InputError: not of this form.
    """
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    for key, _, value in pairs:
        if not re.fullmatch(r"[a-z0-9-]+", key) or not _SUBNET.match(value):
            raise InputError(
                f"--option subnets={text!r}: write ZONE_ID=SUBNET,...,head=SUBNET such as "
                "use1-az6=subnet-0123456789abcdef0"
            )
    return {key: value for key, _, value in pairs}


def _reservation(launch: Launch, given: str) -> str:
    """The id of reserved capacity.

    Raises:
        InputError: not an id, or none where a capacity block needs one.
    """
    if given and not _RESERVATION.match(given):
        raise InputError(f"--option capacity-reservation={given!r}: an id such as cr-0123456789abcdef0")
    if not given and any(pool.option == "capacity_block" for pool in launch.pools):
        raise InputError(
            "--to parallelcluster: a capacity block is used by its reservation: buy it, then "
            "--option capacity-reservation=cr-..."
        )
    return given


def _how(launch: Launch, region: str, name: str, subnets: dict[str, str]) -> list[str]:
    lines = [
        f"start: pcluster create-cluster --cluster-name train --cluster-configuration {name}; "
        "then sbatch --partition=place-0 with the script of --to slurm",
        f"end: pcluster delete-cluster --cluster-name train --region {region} (the head node costs money until then)",
    ]
    places = [
        f"place-{place}: {pool.nodes} x {pool.instance_type} {pool.option} in {pool.place}"
        for place, pool in enumerate(launch.pools)
        if pool.region == region
    ]
    lines += places
    refused = [pool.place for pool in launch.pools if pool.region not in known_regions()]
    if refused:
        lines.append(f"left out: {', '.join(refused)}, where ParallelCluster makes no clusters")
    wanted = [pool.zone or pool.region for pool in launch.pools if pool.region == region]
    missing = [zone for zone in dict.fromkeys(wanted) if zone not in subnets]
    if missing:
        lines.append(
            f"{NO_SUBNET} stands for private subnets in {', '.join(missing)}: --option subnets=ZONE_ID=SUBNET,..."
        )
    if owed := discounts(launch):
        lines.append(f"{owed}: a discount on the bill; nodes start as on-demand")
    if launch.run.checkpoints.startswith("/"):
        lines.append(
            f"{launch.run.checkpoints} must be a file system that all nodes mount: add it under SharedStorage"
        )
    return lines
