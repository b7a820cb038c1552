"""NodePools and EC2NodeClasses: schemas and CEL rules of the CRDs, and the defaults that would end a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.crds import faults
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import LOADER, allowed

RESERVATION = "cr-0123456789abcdef0"


def documents(launch: Launch, reservation: str = "") -> list[dict[str, Any]]:
    (file,) = export(
        launch, "karpenter", Options(values={"capacity-reservation": reservation} if reservation else {})
    )
    return list(yaml.load_all(file.text, LOADER))


def block(launch: Launch) -> Launch:
    return replace(launch, pools=tuple(replace(pool, option="capacity_block") for pool in launch.pools))


def test_the_schemas_take_every_launch_on_aws() -> None:
    files = allowed("karpenter")
    assert {"one", "in_turn", "together", "single_gpu", "workers"} == set(files)
    for texts in files.values():
        for document in yaml.safe_load_all(texts[0].text):
            assert faults(document) == []
    for document in documents(block(LAUNCHES["one"]), RESERVATION):
        assert faults(document) == []


@pytest.mark.parametrize(
    ("kind", "path", "value", "said"),
    [
        ("NodePool", "spec.template.spec.expireAfter", "30d", "does not match"),
        ("NodePool", "spec.disruption.consolidationPolicy", "Never", "is not one of"),
        ("NodePool", "spec.template.spec.nodeClassReff", {}, "nodeClassReff"),
        ("NodePool", "spec.template.metadata.labels", {"karpenter.sh/x": "y"}, "restricted"),
        ("EC2NodeClass", "spec.instanceProfile", "x", "exactly one of"),
        ("EC2NodeClass", "spec.amiSelectorTerms", [{"alias": "al2023"}], "improperly formatted"),
        ("EC2NodeClass", "spec.tags", {"karpenter.sh/nodepool": "x"}, "restricted|match"),
    ],
)
def test_the_schemas_refuse_what_is_wrong(kind: str, path: str, value: object, said: str) -> None:
    import re

    document = next(item for item in documents(LAUNCHES["one"]) if item["kind"] == kind)
    *way, last = path.split(".")
    inner: Any = document
    for step in way:
        inner = inner[step]
    inner[last] = value
    assert any(re.search(said, fault) for fault in faults(document))


def test_no_default_of_karpenter_ends_a_run() -> None:
    for files in allowed("karpenter").values():
        for document in yaml.safe_load_all(files[0].text):
            if document["kind"] == "NodePool":
                spec = document["spec"]
                assert spec["template"]["spec"]["expireAfter"] == "Never"
                assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
                assert {"nodes": "0", "reasons": ["Drifted", "Underutilized"]} in spec["disruption"][
                    "budgets"
                ]


def test_places_are_tried_in_the_order_of_the_plan() -> None:
    launch = LAUNCHES["in_turn"]
    pools = [item for item in documents(launch) if item["kind"] == "NodePool"]
    weights = [item["spec"]["weight"] for item in pools]
    assert weights == sorted(set(weights), reverse=True)
    for item, pool in zip(pools, launch.pools, strict=True):
        needs = {need["key"]: need["values"] for need in item["spec"]["template"]["spec"]["requirements"]}
        assert needs["node.kubernetes.io/instance-type"] == [pool.instance_type]
        assert needs["topology.k8s.aws/zone-id"] == [pool.zone]
        assert needs["karpenter.sh/capacity-type"] == ["spot" if pool.is_spot else "on-demand"]
        assert item["spec"]["limits"] == {"nvidia.com/gpu": pool.nodes * pool.gpus}
        assert item["metadata"]["labels"]["planner_run_id"] == launch.run_id


def test_reserved_capacity_is_named_or_refused() -> None:
    with pytest.raises(InputError, match="capacity-reservation=cr-"):
        documents(block(LAUNCHES["one"]))
    with pytest.raises(InputError, match="an id such as cr-"):
        documents(LAUNCHES["one"], "cr-x; rm")
    pool, node_class = documents(block(LAUNCHES["one"]), RESERVATION)
    needs = {need["key"]: need["values"] for need in pool["spec"]["template"]["spec"]["requirements"]}
    assert needs["karpenter.sh/capacity-type"] == ["reserved"]
    assert node_class["spec"]["capacityReservationSelectorTerms"] == [{"id": RESERVATION}]
