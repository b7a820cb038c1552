"""Jobs and queues of Kubernetes: built-in kinds, schemas of custom resources with their rules, the script inside."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.crds import faults
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import LOADER, kubernetes_faults, shellcheck

BUILT_IN = ("v1", "batch/v1")
CASES = [
    (name, kind, queue)
    for name in LAUNCHES
    for kind, queue in (("jobset", "kueue"), ("jobset", "none"), ("pytorchjob", "none"), ("trainjob", "none"))
    if name != "workers" or kind == "jobset"
]
# of each custom kind: paths that must be there, for machines without the schemas
FIELDS = {
    "JobSet": ("spec.failurePolicy.rules", "spec.network.enableDNSHostnames", "spec.replicatedJobs"),
    "PyTorchJob": (
        "spec.nprocPerNode",
        "spec.elasticPolicy.minReplicas",
        "spec.pytorchReplicaSpecs.Worker.template.spec",
    ),
    "TrainJob": ("spec.runtimeRef.name", "spec.trainer.numNodes", "spec.trainer.resourcesPerNode"),
    "ResourceFlavor": ("spec.nodeLabels",),
    "ClusterQueue": ("spec.resourceGroups", "spec.namespaceSelector"),
    "LocalQueue": ("spec.clusterQueue", "metadata.namespace"),
}


def documents(launch: Launch, **values: str) -> list[dict[str, Any]]:
    files = export(launch, "kubernetes", Options(values=values))
    return [one for file in files if file.path.endswith(".yaml") for one in yaml.load_all(file.text, LOADER)]


def only(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (one,) = [document for document in found if document["kind"] == kind]
    return one


@pytest.mark.parametrize(("name", "kind", "queue"), CASES)
def test_custom_resources_keep_their_schemas_and_rules(name: str, kind: str, queue: str) -> None:
    found = documents(LAUNCHES[name], kind=kind, queue=queue)
    for document in found:
        for path in FIELDS.get(document["kind"], ()):
            value: Any = document
            for key in path.split("."):
                value = value[key]
        if document["apiVersion"] not in BUILT_IN:
            assert faults(document) == []


def test_built_in_kinds_pass_strictly_and_a_wrong_field_does_not() -> None:
    jobs = [one for name in LAUNCHES for one in documents(LAUNCHES[name]) if one["apiVersion"] in BUILT_IN]
    pods = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": job["template"]["spec"]}
        for name in LAUNCHES if name != "workers"
        for job in only(documents(LAUNCHES[name], queue="none"), "JobSet")["spec"]["replicatedJobs"]
    ]  # fmt: skip
    assert kubernetes_faults(jobs + pods) == ""
    wrong = {**pods[0], "spec": {**pods[0]["spec"], "completionMod": "Indexed"}}
    assert "completionMod" in kubernetes_faults([wrong])
    # a kind that it does not know is a warning there, with exit code 0: it does not count as passed
    assert kubernetes_faults([only(documents(LAUNCHES["one"]), "JobSet")]) != ""


def test_the_scripts_are_clean() -> None:
    maps = (only(documents(launch), "ConfigMap") for launch in LAUNCHES.values())
    assert shellcheck(*(one["data"]["run.sh"] for one in maps)) == ""


def test_a_trainjob_gets_the_script_with_its_dollars_unexpanded() -> None:
    launch = replace(
        LAUNCHES["one"], name="$(HOME)", run=replace(LAUNCHES["one"].run, command="x '$(HOME)' '$$(A)'")
    )
    (text,) = only(documents(launch, kind="trainjob"), "TrainJob")["spec"]["trainer"]["args"]
    # how Kubernetes expands: $$ is a dollar, $(NAME) a variable
    assert not re.search(r"(?<!\$)(\$\$)*\$\(", text)
    assert "command=(x '$(HOME)' '$$(A)')" in text.replace("$$", "$")


@pytest.mark.parametrize(
    ("name", "resource", "count"),
    [("one", "vpc.amazonaws.com/efa", "32"), ("azure", "rdma/ib", "8"), ("gcp", "nvidia.com/gpu", "8")],
)
def test_a_pod_asks_for_its_machine_and_its_fabric(name: str, resource: str, count: str) -> None:
    job = only(documents(LAUNCHES[name]), "JobSet")["spec"]["replicatedJobs"][0]["template"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert container["resources"]["limits"][resource] == container["resources"]["requests"][resource] == count
    assert job["parallelism"] == job["completions"] == 4


def test_gpudirect_has_its_networks_its_sidecar_and_its_environment() -> None:
    found = documents(LAUNCHES["gcp"], queue="none")
    template = only(found, "JobSet")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert '"network": "vpc8"' in template["metadata"]["annotations"]["networking.gke.io/interfaces"]
    (sidecar,) = template["spec"]["initContainers"]
    assert sidecar["name"] == "tcpxo-daemon" and sidecar["restartPolicy"] == "Always"
    assert template["spec"]["nodeSelector"]["cloud.google.com/gke-accelerator"] == "nvidia-h100-mega-80gb"
    assert "source /usr/local/nvidia/lib64/nccl-env-profile.sh" in only(found, "ConfigMap")["data"]["run.sh"]


def test_flavors_are_in_the_order_of_the_plan_and_of_one_region() -> None:
    found = documents(LAUNCHES["in_turn"])
    flavors = [one["metadata"]["name"] for one in found if one["kind"] == "ResourceFlavor"]
    queued = only(found, "ClusterQueue")["spec"]["resourceGroups"][0]["flavors"]
    assert [one["name"] for one in queued] == flavors
    assert [name.rsplit("-", 2)[-1] for name in flavors] == [
        "spot",
        "demand",
    ]  # use2-az3 is in another region
    other = documents(LAUNCHES["in_turn"], region="aws/us-east-2")
    (flavor,) = [one for one in other if one["kind"] == "ResourceFlavor"]
    assert flavor["spec"]["nodeLabels"]["topology.k8s.aws/zone-id"] == "use2-az3"
    with pytest.raises(InputError, match="the plan is in aws/us-east-1, aws/us-east-2"):
        documents(LAUNCHES["in_turn"], region="aws/eu-west-1")


def test_a_cluster_without_the_fall_back_of_the_plan_says_so() -> None:
    def heading(**options: str) -> str:
        job, _ = export(LAUNCHES["in_turn"], "kubernetes", Options(values=options))
        return job.text.partition("apiVersion")[0]

    assert "the fall-back, on_demand in aws/us-east-1, is not in this cluster" in heading(
        region="aws/us-east-2"
    )
    assert "constraints.regions=[aws/us-east-2]" in heading(region="aws/us-east-2")
    assert "fall-back" not in heading(region="aws/us-east-1")


def test_runs_of_a_fleet_in_two_regions_are_each_in_one_job() -> None:
    base = LAUNCHES["workers"]
    pools = (replace(base.pools[0], share=0.6), replace(base.pools[1], region="us-east-2", share=0.4))
    launch = replace(base, pools=pools)
    first, second = (only(documents(launch, region=f"aws/{r}"), "Job") for r in ("us-east-1", "us-east-2"))
    assert (first["spec"]["completions"], second["spec"]["completions"]) == (38, 26)
    script = only(documents(launch, region="aws/us-east-2"), "ConfigMap")["data"]["run.sh"]
    assert 'PLANNER_RUN_INDEX="$((JOB_COMPLETION_INDEX + 38))"' in script and "PLANNER_RUN_COUNT=64" in script


def test_what_is_no_job_of_one_cluster_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="--to slurm"):
        documents(replace(LAUNCHES["workers"], nodes=2))
    with pytest.raises(InputError, match="leave the option out"):
        documents(LAUNCHES["workers"], kind="trainjob")
