"""Kubernetes: a JobSet (or a job of Kubeflow), and the queue of Kueue that tries the plan's pools in its order."""

from __future__ import annotations

import math
from typing import Any

from planner.errors import InputError
from planner.export.fabric import network_scripts
from planner.export.files import ExportFile
from planner.export.frameworks.model import Part
from planner.export.frameworks.registry import part_of
from planner.export.names import KUBERNETES_NAME, clean, clean_tags
from planner.export.program import (
    command_lines,
    export_lines,
    heading,
    refuse_unless_torch,
    setup_lines,
    start_words,
    variables,
)
from planner.export.quoting import shell, shell_words, yaml_text
from planner.export.registry import Options
from planner.export.targets.kubernetes_pod import (
    node_labels,
    pod_annotations,
    pod_spec,
    resources,
    secret_env,
    tolerations,
    unexpanded,
)
from planner.export.view import Launch, Pool, split

_MOST_NAME = 40  # the names of pods add job, index and a random end, and stay within 63
_MOST_FAILURES = 3
_QUEUE = "kueue.x-k8s.io/queue-name"
_ZONE = "topology.kubernetes.io/zone"


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return the job, and the queue unless `queue=none`.

    Raises:
        InputError: torchrun starts nothing on these machines, or a plan that is not one cluster.
    """
    refuse_unless_torch(launch, "kubernetes")
    _refuse(launch, options)
    part = part_of(options.framework, launch)
    total = launch.all_tasks
    if part.launcher != "torchrun" and options.values["kind"] != "jobset":
        raise InputError(
            f"--option kind={options.values['kind']}: starts torchrun, not {part.launcher}; use kind=jobset"
        )
    launch, begin, count, notes = _of_region(launch, options.values["region"])
    name = clean(launch.name, KUBERNETES_NAME, most=_MOST_NAME)
    queued = options.values["queue"] != "none"
    job: list[dict[str, Any]] = []
    queue: list[dict[str, Any]] = []
    kinds = _kinds(launch, name, begin, count)
    for job_launch, kind, first, runs in kinds:
        job += (
            _job(job_launch, part, kind, queued, (first, runs, total))
            if launch.way == "workers"
            else _JOBS[options.values["kind"]](job_launch, part, kind, queued)
        )
        queue += _queue(job_launch, kind)
    if queued:
        notes.append("first, once, by an administrator: kubectl apply --server-side -f queue.yaml")
    if launch.run.secrets:
        keys = " ".join(f'--from-literal={key}="${key}"' for key in launch.run.secrets)
        notes += [f"first, in its namespace: kubectl create secret generic {kind}-secrets {keys}"
                  for _, kind, _, _ in kinds]  # fmt: skip
    text = (
        "\n".join(heading(launch, *part.notes, *notes, "start: kubectl create -f job.yaml"))
        + "\n"
        + yaml_text(*job)
    )
    files = [ExportFile("job.yaml", text)]
    if queued:
        files.append(ExportFile("queue.yaml", "\n".join(_queue_heading(launch)) + "\n" + yaml_text(*queue)))
    return (*files, *part.files)


def _refuse(launch: Launch, options: Options) -> None:
    """Refuse what no job of one cluster does.

    Raises:
        InputError: names the reason and what can.
    """
    if launch.way == "workers" and launch.nodes > 1:
        raise InputError("--to kubernetes: independent runs on several instances each: use --to slurm")
    kind = options.values["kind"]
    if launch.way == "workers" and kind != "jobset":
        raise InputError(
            f"--option kind={kind}: a plan of independent workers is a Job; leave the option out"
        )


def _of_region(launch: Launch, wanted: str) -> tuple[Launch, int, int, list[str]]:
    """What one cluster holds, which lies in one region: its pools, its first run and their number, and notes.

    Raises:
        InputError: no pool of the plan is in that region.
    """
    groups: dict[str, list[Pool]] = {}
    for pool in launch.pools:
        groups.setdefault(f"{pool.provider}/{pool.region}", []).append(pool)
    names = list(groups)
    if wanted and wanted not in names:
        raise InputError(f"--option region={wanted}: the plan is in {', '.join(names)}")
    chosen = wanted or names[0]
    if launch.way == "together" and len(names) > 1:
        raise InputError("--to kubernetes: a gang in several regions cannot be one job of a cluster")
    shares = [sum(pool.share for pool in pools) for pools in groups.values()]
    counts = [launch.tasks] * len(names) if launch.moves else split(launch.tasks, shares)
    at = names.index(chosen)
    notes = [f"for a cluster in {chosen}; of the plan's other regions: --option region={name}" for name in names
             if name != chosen]  # fmt: skip
    notes += _without_fall_back(launch, groups[chosen])
    whole = launch if len(names) == 1 else launch.only(*groups[chosen])
    return whole, launch.begin + (0 if launch.moves else sum(counts[:at])), counts[at], notes


def _without_fall_back(launch: Launch, pools: list[Pool]) -> list[str]:
    """Says so where the plan ends in capacity that stays, and a cluster has its spot alone."""
    last = launch.pools[-1]
    if not launch.moves or last.option == "spot" or any(pool.option != "spot" for pool in pools):
        return []
    place = f"{pools[0].provider}/{pools[0].region}"
    return [
        f"spot alone: the fall-back, {last.option} in {last.provider}/{last.region}, is not in this cluster, so the "
        f"deadline is less sure; a plan for one region: planner optimize --set 'constraints.regions=[{place}]'"
    ]


def _kinds(launch: Launch, name: str, begin: int, count: int) -> list[tuple[Launch, str, int, int]]:
    """By kind of machine: its pools, a name, its first run and how many. A pod asks for a whole machine of its kind.

    Args:
        launch: the pools of one cluster.
        name: of all.
        begin: the first run.
        count: runs.
    """
    kinds: dict[str, list[Pool]] = {}
    for pool in launch.pools:
        kinds.setdefault(pool.instance_type, []).append(pool)
    if launch.way != "workers" or launch.moves or len(kinds) == 1:
        return [(launch, name, begin, count)]
    counts = split(count, [sum(pool.share for pool in pools) for pools in kinds.values()])
    out = []
    for number, (pools, runs) in enumerate(zip(kinds.values(), counts, strict=True), start=1):
        if runs:
            out.append((launch.only(*pools), f"{name[: _MOST_NAME - 3]}-{number}", begin, runs))
        begin += runs
    return out


def _script(launch: Launch, part: Part, start: list[str]) -> list[str]:
    """The script that the container runs: the program becomes its first process, so that SIGTERM reaches it."""
    scripts = network_scripts(launch.first, launch.nodes)
    sources = [
        line
        for path in scripts
        for line in ("set +u", "# shellcheck source=/dev/null", f"source {shell(path)}", "set -u")
    ]
    values = variables(launch, part, where="kubernetes")
    more = [f"command+=({shell_words(part.args)})"] if part.args else []
    given = [f"cat >{shell(file.path)} <<<{shell(file.text)}" for file in part.files]
    return [
        "#!/bin/bash", "set -euo pipefail", *export_lines(values, launch.run.secrets),
        *sources, *setup_lines(launch), *given, *command_lines(launch), *more, " \\\n  ".join(start),
    ]  # fmt: skip


def _meta(launch: Launch, name: str, queued: bool, **more: str) -> dict[str, Any]:
    labels = clean_tags(launch.tags, "kubernetes")
    queue = {_QUEUE: clean(f"{name}-queue", KUBERNETES_NAME)} if queued else {}
    return {"name": name, "labels": {**labels, **queue}, **({"annotations": more} if more else {})}


def _config(launch: Launch, part: Part, name: str, start: list[str]) -> dict[str, Any]:
    script = "\n".join(_script(launch, part, start)) + "\n"
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(launch, name, queued=False),
        "data": {"run.sh": script},
    }  # fmt: skip


def _template(launch: Launch, name: str, container: str, queued: bool, **more: Any) -> dict[str, Any]:
    """A pod template that runs the script of the ConfigMap."""
    noted = pod_annotations(launch)
    spec = pod_spec(launch, name=name, container=container, queued=queued, config=f"{name}-script")
    meta = {"labels": clean_tags(launch.tags, "kubernetes"), **({"annotations": noted} if noted else {})}
    return {"metadata": meta, "spec": {**more, **spec}}


def _nproc(launch: Launch) -> int:
    return max(launch.gpus, 1)


def _jobset(launch: Launch, part: Part, name: str, queued: bool) -> list[dict[str, Any]]:
    # static, not c10d: the index of the pod is the rank of its node
    head = f"{name}-node-0-0.{name}"
    words = start_words(launch, part, head=head, rank='"$JOB_COMPLETION_INDEX"')
    start = ["exec " + words[0], *words[1:], '"${command[@]}"']
    one_zone = {} if launch.nodes == 1 else {"alpha.jobset.sigs.k8s.io/exclusive-topology": _ZONE}
    template = _template(launch, name, "train", queued, restartPolicy="Never")
    job = {
        "parallelism": launch.nodes, "completions": launch.nodes, "completionMode": "Indexed", "backoffLimit": 0,
        "podFailurePolicy": {"rules": [_disrupted("FailJob")]}, "template": template,
    }  # fmt: skip
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": _meta(launch, name, queued, **one_zone),
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All"},
            "failurePolicy": {
                "maxRestarts": _MOST_FAILURES,
                "rules": [{
                    "name": "interrupted", "action": "RestartJobSetAndIgnoreMaxRestarts",
                    "onJobFailureReasons": ["PodFailurePolicy"],
                }],
            },
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}],
        },
    }  # fmt: skip
    return [_config(launch, part, f"{name}-script", start), jobset]


def _disrupted(action: str) -> dict[str, Any]:
    # status is written for older versions that need it
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def _job(
    launch: Launch, part: Part, name: str, queued: bool, runs: tuple[int, int, int]
) -> list[dict[str, Any]]:
    """Independent runs, or workers that share one: an indexed Job.

    Args:
        launch: the pools of this cluster.
        part: what states the layout.
        name: of the Job.
        queued: whether a queue chooses the nodes.
        runs: the first run here, how many, and how many there are in all clusters.
    """
    begin, count, total = runs
    index = '"$JOB_COMPLETION_INDEX"' if not begin else f'"$((JOB_COMPLETION_INDEX + {begin}))"'
    start = [f"exec env PLANNER_RUN_INDEX={index}", f"PLANNER_RUN_COUNT={total}", *start_words(launch, part, head=""),
             '"${command[@]}"']  # fmt: skip
    spec = {
        "completionMode": "Indexed", "completions": count, "parallelism": min(launch.workers, count),
        "backoffLimitPerIndex": _MOST_FAILURES, "podFailurePolicy": {"rules": [_disrupted("Ignore")]},
        "template": _template(launch, name, "train", queued, restartPolicy="Never"),
    }  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(launch, name, queued), "spec": spec}
    return [_config(launch, part, f"{name}-script", start), job]


def _pytorchjob(launch: Launch, part: Part, name: str, queued: bool) -> list[dict[str, Any]]:
    """The operator gives the rendezvous by variables PET_*, which torchrun reads."""
    most = _MOST_FAILURES + math.ceil(2 * launch.limits.interruptions)
    replica = {
        "replicas": launch.nodes, "restartPolicy": "OnFailure",
        "template": _template(launch, name, "pytorch", queued),
    }  # fmt: skip
    job = {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": _meta(launch, name, queued),
        "spec": {
            "nprocPerNode": str(_nproc(launch)),
            "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": most},
            "elasticPolicy": {
                "rdzvBackend": "c10d", "minReplicas": launch.nodes, "maxReplicas": launch.nodes, "maxRestarts": most,
            },
            "pytorchReplicaSpecs": {"Worker": replica},
        },
    }  # fmt: skip
    return [_config(launch, part, f"{name}-script", ["exec torchrun", '"${command[@]}"']), job]


def _trainjob(launch: Launch, part: Part, name: str, queued: bool) -> list[dict[str, Any]]:
    """The runtime `torch-distributed` gives pods and rendezvous; the script is an argument, in which `$` is doubled."""
    script = "\n".join(_script(launch, part, ["exec torchrun", '"${command[@]}"'])) + "\n"
    requests = resources(launch.first, launch.nodes)
    limits = {key: value for key, value in requests.items() if key != "cpu"}
    spec: dict[str, Any] = {"runtimeRef": {"name": "torch-distributed"}}
    if not queued:
        pod = pod_spec(launch, name=name, container="node", queued=False)
        places = {key: pod[key] for key in ("affinity", "nodeSelector", "tolerations") if key in pod}
        jobs = [{"name": "node", "template": {"spec": {"template": {"spec": places}}}}]
        spec["runtimePatches"] = [{
            "manager": "planner.export/nodes", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
        }]  # fmt: skip
    spec["trainer"] = {
        "numNodes": launch.nodes, "numProcPerNode": _nproc(launch),
        "image": pod_spec(launch, name=name, container="node", queued=True)["containers"][0]["image"],
        "command": ["/bin/bash", "-c"], "args": [unexpanded(script)],
        **({"env": secret_env(launch, f"{name}-secrets")} if launch.run.secrets else {}),
        "resourcesPerNode": {"requests": requests, "limits": limits},
    }  # fmt: skip
    return [{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": _meta(launch, name, queued),
        "spec": spec,
    }]  # fmt: skip


_JOBS = {"jobset": _jobset, "pytorchjob": _pytorchjob, "trainjob": _trainjob}


def _queue_heading(launch: Launch) -> list[str]:
    return heading(
        launch, "Kueue admits to the first flavor with quota left: the plan's order. It knows quota, not stock: where",
        "spot is sold out, pods wait; a ProvisioningRequest check or waitForPodsReady makes it ask again",
    )  # fmt: skip


def _queue(launch: Launch, name: str) -> list[dict[str, Any]]:
    """Flavors, one for each pool, and queues with just what the plan uses."""
    queue = clean(f"{name}-queue", KUBERNETES_NAME)
    flavors = {}
    for number, pool in enumerate(launch.pools, start=1):
        flavor = clean(f"{name}-{number}-{pool.option.replace('_', '-')}", KUBERNETES_NAME)
        flavors[flavor] = pool
    documents: list[dict[str, Any]] = []
    for flavor, pool in flavors.items():
        taints = tolerations(pool)
        spec = {"nodeLabels": node_labels(pool), **({"tolerations": taints} if taints else {})}
        documents.append(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "ResourceFlavor",
                "metadata": {"name": flavor},
                "spec": spec,
            }
        )
    covered = list(dict.fromkeys(key for pool in flavors.values() for key in resources(pool, launch.nodes)))
    quotas = []
    for flavor, pool in flavors.items():
        asked = resources(pool, launch.nodes)
        most = pool.nodes if launch.way != "together" else launch.nodes
        rows = [{"name": key, "nominalQuota": times(asked.get(key, "0"), most)} for key in covered]
        quotas.append({"name": flavor, "resources": rows})
    documents += [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": queue},
            "spec": {
                "namespaceSelector": {}, "flavorFungibility": {"whenCanPreempt": "TryNextFlavor"},
                "resourceGroups": [{"coveredResources": covered, "flavors": quotas}],
            },
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": {"name": queue, "namespace": "default"}, "spec": {"clusterQueue": queue},
        },
    ]  # fmt: skip
    return documents


def times(quantity: str, nodes: int) -> str:
    """A whole quantity with its unit, for so many nodes: 5120Mi x 2 = 10240Mi."""
    digits = quantity.rstrip("KMGTPEimk")
    return f"{int(digits) * nodes}{quantity[len(digits) :]}"
