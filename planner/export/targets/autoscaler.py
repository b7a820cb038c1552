"""A HorizontalPodAutoscaler for servers and for loaders; a training gang has none, because its ranks are fixed."""

from __future__ import annotations

from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.names import KUBERNETES_NAME, clean, clean_tags
from planner.export.program import heading
from planner.export.quoting import yaml_text
from planner.export.registry import Options
from planner.export.view import Launch
from planner.tracking.thresholds import thresholds

_NAME_MOST = 48
_LOADERS_PER_NODE = 8
"""At most so many loader pods beside a node: a chosen limit."""
_CPU_PERCENT = 80
_CALM_S = 300


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return `autoscaler.yaml` for the Deployment of the servers, or of the loaders (`--option role=loader`).

    Raises:
        InputError: training, whose number of ranks may not change.
    """
    role = options.values.get("role", "server")
    if role == "server" and launch.kind != "inference":
        raise InputError(
            "--to autoscaler: training has a fixed number of ranks, and a pod more or less stops it; its loaders can "
            "have one: --option role=loader. Runs that end are jobs in a queue: --to kubernetes"
        )
    name = f"{clean(launch.name, KUBERNETES_NAME, most=_NAME_MOST)}-{role}"
    head = "\n".join(heading(launch, f"scales the Deployment {name}, which is yours", *_how(role))) + "\n"
    return (ExportFile("autoscaler.yaml", head + yaml_text(autoscaler(launch, name, role))),)


def autoscaler(launch: Launch, name: str, role: str) -> dict[str, Any]:
    """The autoscaler: at most the machines of the plan, or so many loaders beside them."""
    nodes = launch.instances if launch.way == "workers" else launch.nodes
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "labels": clean_tags(launch.tags, "kubernetes")},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": nodes if role == "server" else nodes * _LOADERS_PER_NODE,
            "metrics": [_busy() if role == "server" else _cpu()],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}],
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": _CALM_S,
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
                },
            },
        },
    }


def _busy() -> dict[str, Any]:
    """Activity of the GPU per pod; a server below the threshold of alerts wastes it, above it queues grow."""
    share = round(1000 * thresholds()["gpu_busy_min"].value)
    target = {"type": "AverageValue", "averageValue": f"{share}m"}
    return {"type": "Pods", "pods": {"metric": {"name": "DCGM_FI_PROF_GR_ENGINE_ACTIVE"}, "target": target}}


def _cpu() -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _how(role: str) -> list[str]:
    if role == "server":
        return ["the metric comes from dcgm-exporter through prometheus-adapter, with the pod's labels"]
    return ["pods of loaders request CPU: the share is of what they request"]
