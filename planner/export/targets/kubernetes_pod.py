"""What a pod of a run looks like on each cloud's Kubernetes: nodes, resources, network, volumes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from planner.bundled import bundled_rows
from planner.export.fabric import fabric_of
from planner.export.names import KUBERNETES_VALUE, clean
from planner.export.program import NO_IMAGE
from planner.export.view import Launch, Pool

_DATA = Path(__file__).parents[2] / "data"
_GRACE_S = 30
_CPU_SHARE = 0.9  # of a node's CPUs: the rest is for its own daemons
_HUGEPAGES = "5120Mi"
SCRIPT_FOLDER = "/planner"
_ZONE_ID = re.compile(r"-az[0-9]+$")  # use1-az6: the same zone in every account, whatever its name there


@cache
def _labels() -> tuple[Mapping[str, str], ...]:
    return tuple(bundled_rows("kubernetes_labels.csv"))


@cache
def _networks() -> Mapping[str, Any]:
    networks = yaml.safe_load((_DATA / "gke_networks.yaml").read_text(encoding="utf-8"))
    assert isinstance(networks, dict)
    return networks


def accelerator_resource(pool: Pool) -> str:
    """Name of the resource that the vendor's device plugin offers; empty without accelerators."""
    named = {row["value"]: row["key"] for row in _labels() if row["kind"] == "resource"}
    return named.get(pool.vendor, "nvidia.com/gpu") if pool.gpus else ""


def node_labels(pool: Pool) -> dict[str, str]:
    """Labels of the nodes that a pool's machines are."""
    machine = pool.instance_type.partition("+")[0]
    out = {"node.kubernetes.io/instance-type": clean(machine, KUBERNETES_VALUE)}
    for row in _labels():
        if row["provider"] != pool.provider:
            continue
        if row["kind"] == pool.option:
            out[row["key"]] = row["value"]
        if pool.zone and row["kind"] == ("zone_id" if _ZONE_ID.search(pool.zone) else "zone"):
            out[row["key"]] = clean(pool.zone, KUBERNETES_VALUE)
        if row["kind"] == "accelerator" and row["value"].endswith(f"={pool.accelerator}"):
            name = row["value"].partition("=")[0]
            mega = machine.startswith("a3-mega")
            out[row["key"]] = name.replace("h100-80gb", "h100-mega-80gb") if mega else name
    return out


def tolerations(pool: Pool) -> list[dict[str, str]]:
    """Taints that the machines of a pool may carry: those of accelerators, and of spot where the cloud sets one."""
    out = []
    if pool.gpus:
        out.append({"key": accelerator_resource(pool), "operator": "Exists", "effect": "NoSchedule"})
    if pool.is_spot:
        out += [
            {"key": row["key"], "operator": "Equal", "value": row["value"], "effect": "NoSchedule"}
            for row in _labels()
            if (row["provider"], row["kind"]) == (pool.provider, "spot_taint")
        ]
    return out


def resources(pool: Pool, nodes: int) -> dict[str, str]:
    """What one pod asks for: a whole machine, with the interfaces of its fabric where the gang has several."""
    out = {"cpu": str(max(1, math.floor((pool.vcpus or 1) * _CPU_SHARE)))}
    if pool.gpus:
        out[accelerator_resource(pool)] = str(pool.gpus)
    fabric = fabric_of(pool)
    if nodes > 1 and "efa" in fabric.kinds:
        out |= {"vpc.amazonaws.com/efa": str(fabric.interfaces), "hugepages-2Mi": _HUGEPAGES}
    if nodes > 1 and "infiniband" in fabric.kinds:
        out["rdma/ib"] = str(fabric.interfaces)
    return out


def affinity(launch: Launch) -> dict[str, Any]:
    """Nodes of any pool, those of an earlier one rather: what holds without a queue that knows the order."""
    if len(launch.pools) == 1:
        return {}
    terms = [_expressions(pool) for pool in launch.pools]
    weights = [max(1, 100 - 10 * at) for at in range(len(terms))]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "preference": term} for weight, term in zip(weights, terms, strict=True)
            ],
        }
    }


def _expressions(pool: Pool) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": [value]} for key, value in node_labels(pool).items()
        ]
    }


def grace_s(launch: Launch) -> int:
    """Seconds from SIGTERM to SIGKILL: two checkpoints, within the provider's warning where it is known."""
    needed_s = _GRACE_S + math.ceil(2 * (launch.checkpoints.write_s or 0.0))
    notice = launch.checkpoints.notice_s
    return needed_s if notice is None else max(_GRACE_S, min(needed_s, math.floor(notice)))


def secret_env(launch: Launch, secret: str) -> list[dict[str, Any]]:
    """Variables from the keys of a Secret."""
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
        for name in launch.run.secrets
    ]


def pod_spec(launch: Launch, *, name: str, container: str, queued: bool, config: str = "") -> dict[str, Any]:
    """The pod of one node.

    Args:
        launch: the plan.
        name: of the job; its Secret is called NAME-secrets.
        container: name of the container, which some operators prescribe.
        queued: a queue chooses the nodes, so the pod does not.
        config: name of the ConfigMap with the script; empty: the container's command is given elsewhere.
    """
    pool = launch.first
    requests = resources(pool, launch.nodes)
    main: dict[str, Any] = {"name": container, "image": launch.run.image or NO_IMAGE}
    if config:
        main["command"] = ["/bin/bash", f"{SCRIPT_FOLDER}/run.sh"]
    if launch.run.secrets:
        main["env"] = secret_env(launch, f"{name}-secrets")
    main |= {
        "resources": {
            "requests": requests,
            "limits": {key: value for key, value in requests.items() if key != "cpu"},
        },
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
    }
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    if config:
        main["volumeMounts"].append({"name": "script", "mountPath": SCRIPT_FOLDER})
        volumes.append({"name": "script", "configMap": {"name": config, "defaultMode": 0o555}})
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": grace_s(launch),
        "containers": [main],
        "volumes": volumes,
    }
    _add_network(spec, main, launch)
    if queued:
        return spec
    near = affinity(launch)
    places: dict[str, Any] = {"affinity": near} if near else {"nodeSelector": node_labels(pool)}
    taints = {json.dumps(each): each for one in launch.pools for each in tolerations(one)}
    return {**places, "tolerations": list(taints.values()), **spec} if taints else {**places, **spec}


def network_of(launch: Launch) -> Mapping[str, Any]:
    """The parts that GPUDirect on GKE needs; empty for other machines and for single ones."""
    kinds = fabric_of(launch.first).kinds if launch.nodes > 1 else ()
    return next((_networks()[kind] for kind in kinds if kind in _networks()), {})


def pod_annotations(launch: Launch) -> dict[str, str]:
    """Annotations of the pod: Karpenter, where it runs, leaves its node alone; networks and devices of the sidecar."""
    network = network_of(launch)
    out = {"karpenter.sh/do-not-disrupt": "true"}
    if not network:
        return out
    links = [{"interfaceName": "eth0", "network": "default"}]
    links += [{"interfaceName": key, "network": value} for key, value in network["networks"].items()]
    out["networking.gke.io/default-interface"] = "eth0"
    out["networking.gke.io/interfaces"] = json.dumps(links)
    if network["devices"]:
        paths = "".join(f"- path: /dev/{path}\n" for path in network["devices"]["paths"])
        out[f"devices.gke.io/container.{network['devices']['container']}"] = paths
    return out


def _add_network(spec: dict[str, Any], main: dict[str, Any], launch: Launch) -> None:
    network = network_of(launch)
    if not network:
        return
    main["volumeMounts"] += [{"name": key, "mountPath": value} for key, value in network["mounts"].items()]
    spec["volumes"] += [
        {"name": key, "hostPath": {"path": value}} for key, value in network["volumes"].items()
    ]
    if network["capabilities"]:
        main["securityContext"] = {"capabilities": {"add": network["capabilities"]}}
    if network["sidecar"]:
        spec["initContainers"] = [network["sidecar"]]


def unexpanded(text: str) -> str:
    """A text of `command`, `args` or `env`, in which Kubernetes would expand `$(NAME)`."""
    return text.replace("$", "$$")
