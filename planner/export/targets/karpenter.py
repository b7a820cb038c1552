"""Karpenter on EKS: a NodePool per kind of machine and an EC2NodeClass, which outlive a long run.

Facts: karpenter.sh/v1 and karpenter.k8s.aws/v1 (CRDs of 2026-08), concepts/nodepools.md, tasks/odcrs.md. By default a
node expires after 720 h and is consolidated when it is underused: both would kill a run, and are switched off.
"""

from __future__ import annotations

import re
from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.machines import discounts, efa_interfaces, refuse_others
from planner.export.names import KUBERNETES_NAME, clean, clean_tags
from planner.export.program import heading
from planner.export.quoting import yaml_text
from planner.export.registry import Options
from planner.export.software import platform_of
from planner.export.view import Launch, Pool

ZONE_LABEL = "topology.k8s.aws/zone-id"
"""Plans name AWS zones by id: names differ by account, ids do not."""
_CAPACITY = {"spot": "spot", "on_demand": "on-demand", "capacity_block": "reserved"}
_WEIGHT_MOST = 100
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}\Z")
_RESOURCES = {"aws": "aws.amazon.com/neuron"}
"""What pods ask for by the vendor of the chip; nvidia.com/gpu where it is not listed."""
_DISK_GIB = 200


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return `karpenter.yaml`.

    Raises:
        InputError: not of AWS alone, or a capacity block without the id of its reservation.
    """
    refuse_others(launch, "karpenter", frozenset({"aws"}))
    reservation = _reservation(launch, options)
    name = clean(launch.name, KUBERNETES_NAME, most=48)
    documents = [
        *(node_pool(launch, name, place, pool, reservation) for place, pool in enumerate(launch.pools)),
        *(node_class(launch, f"{name}-{region}", region, reservation) for region in _regions(launch)),
    ]
    text = "\n".join(heading(launch, *_how(launch, reservation))) + "\n"
    return (ExportFile("karpenter.yaml", text + yaml_text(*documents)),)


def node_pool(launch: Launch, name: str, place: int, pool: Pool, reservation: str) -> dict[str, Any]:
    """The pool of one place; a higher weight is tried first, so weights fall in the plan's order."""
    reserved = bool(reservation) and not pool.is_spot
    capacity = ["reserved"] * reserved + [_CAPACITY.get(pool.option, "on-demand")]
    requirements = [
        _requirement("node.kubernetes.io/instance-type", [pool.instance_type]),
        _requirement("karpenter.sh/capacity-type", list(dict.fromkeys(capacity))),
        _requirement("kubernetes.io/arch", [platform_of(pool)]),
    ]
    if pool.zone:
        requirements.append(_requirement(ZONE_LABEL, [pool.zone]))
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": f"{name}-{place}", "labels": clean_tags(launch.tags, "kubernetes")},
        "spec": {
            "weight": max(1, _WEIGHT_MOST - place),
            "limits": {_gpu_resource(pool): pool.nodes * pool.gpus},
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "5m",
                "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
            },
            "template": {
                "metadata": {"labels": clean_tags(launch.tags, "kubernetes")},
                "spec": {
                    "expireAfter": "Never",
                    "terminationGracePeriod": "10m",
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": f"{name}-{pool.region}",
                    },
                    "taints": [{"key": _gpu_resource(pool), "value": "true", "effect": "NoSchedule"}],
                    "requirements": requirements,
                },
            },
        },
    }


def node_class(launch: Launch, name: str, region: str, reservation: str) -> dict[str, Any]:
    """Images, networks, disks and tags of the nodes of one region."""
    spec: dict[str, Any] = {
        "role": "KarpenterNodeRole",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "train"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "train"}}],
        "instanceStorePolicy": "RAID0",
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "blockDeviceMappings": [_disk(launch)],
        "tags": clean_tags(launch.tags, "aws"),
    }
    if reservation:
        spec["capacityReservationSelectorTerms"] = [{"id": reservation}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/region": region}},
        "spec": spec,
    }


def _disk(launch: Launch) -> dict[str, Any]:
    size = max(_DISK_GIB, round(2 * (launch.checkpoints.size_gib or 0)))
    volume = {"volumeSize": f"{size}Gi", "volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    return {"deviceName": "/dev/xvda", "ebs": volume}


def _requirement(key: str, values: list[str]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": values}


def _gpu_resource(pool: Pool) -> str:
    return _RESOURCES.get(pool.vendor, "nvidia.com/gpu")


def _regions(launch: Launch) -> list[str]:
    return list(dict.fromkeys(pool.region for pool in launch.pools))


def _reservation(launch: Launch, options: Options) -> str:
    """The id of reserved capacity.

    Raises:
        InputError: not an id, or none where a capacity block needs one.
    """
    reservation = options.values.get("capacity-reservation", "")
    if reservation and not _RESERVATION.match(reservation):
        raise InputError(f"--option capacity-reservation={reservation!r}: an id such as cr-0123456789abcdef0")
    if not reservation and any(pool.option == "capacity_block" for pool in launch.pools):
        raise InputError(
            "--to karpenter: a capacity block is used by its reservation: buy it, then "
            "--option capacity-reservation=cr-..."
        )
    return reservation


def _how(launch: Launch, reservation: str) -> list[str]:
    lines = [
        "start: kubectl apply -f karpenter.yaml, on the EKS cluster of the region; then the job of --to kubernetes",
        "role and discovery tags are those of Karpenter's getting-started guide: enter yours",
    ]
    lines.append(
        'pods of the run carry karpenter.sh/do-not-disrupt: "true"; on nodes it would keep them when the run is over'
    )
    regions = _regions(launch)
    if len(regions) > 1:
        lines.append(
            f"regions {', '.join(regions)}: a cluster lives in one; apply the pools of each to its own cluster"
        )
    if any(pool.is_spot and launch.nodes > 1 for pool in launch.pools):
        lines.append(f"pools fall back by weight; a gang must land on one: its pods select {ZONE_LABEL}")
    if efa := max(efa_interfaces(pool)[0] for pool in launch.pools):
        lines.append(f"EFA: a pod asks for vpc.amazonaws.com/efa, up to {efa} a node, and hugepages-2Mi")
    if reservation:
        lines.append("reserved capacity needs the feature gate ReservedCapacity=true of Karpenter")
        if any(pool.option == "capacity_block" for pool in launch.pools):
            lines.append(
                "a block is drained 10 minutes before EC2 ends it, 30 minutes before its end: save by then"
            )
    if owed := discounts(launch):
        lines.append(f"{owed}: a discount on the bill; nodes start as on-demand")
    return lines
