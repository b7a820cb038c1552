"""Clusters: ParallelCluster's own schema and validators in an environment of its own, and what these do not see."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import allowed, pcluster_says

RESERVATION = "cr-0123456789abcdef0"
WRONG = {
    "unknown field": ("MaxCount:", "MaxCont:", "MaxCont"),
    "capacity": ("CapacityType: SPOT", "CapacityType: CHEAP", "CapacityType|CHEAP|Must be one of"),
    "system": ("Os: ubuntu2204", "Os: ubuntu1404", "ubuntu1404|Must be one of"),
    "subnet": ("subnet-00000000000000000", "subnet-x", "subnet|match"),
    # these load: only the validators see them
    "name": ("Name: place-0", "Name: P5_x", "NameValidator"),
    "count": ("MinCount: 0", "MinCount: 9", "ComputeResourceSizeValidator"),
    "region": ("Region: us-east-1", "Region: eu-south-2", "RegionValidator"),
}


def block(launch: Launch) -> Launch:
    return replace(launch, pools=tuple(replace(pool, option="capacity_block") for pool in launch.pools))


def cluster_of(launch: Launch, **values: str) -> dict[str, Any]:
    options = Options(values={key.replace("_", "-"): value for key, value in values.items()})
    loaded = yaml.safe_load(export(launch, "parallelcluster", options)[0].text)
    assert isinstance(loaded, dict)
    return loaded


def test_parallelcluster_takes_every_export_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    texts = {
        f"{name} {file.path}": file.text
        for name, files in allowed("parallelcluster").items()
        for file in files
        if name in ("in_turn", "workers")
    }
    options = Options(values={"capacity-reservation": RESERVATION})
    texts["block"] = export(block(LAUNCHES["one"]), "parallelcluster", options)[0].text
    base = export(LAUNCHES["one"], "parallelcluster", Options())[0].text
    for name, (good, bad, _) in WRONG.items():
        assert good in base, name
        texts[name] = base.replace(good, bad)
    said = pcluster_says(texts, tmp_path)
    assert {name: faults for name, faults in said.items() if name not in WRONG and faults} == {}
    unseen = {
        name: said[name] for name, (_, _, words) in WRONG.items() if not re.search(words, str(said[name]))
    }
    assert unseen == {}


def test_a_queue_for_each_place_in_the_order_of_the_plan() -> None:
    launch = LAUNCHES["in_turn"]
    first, second = export(launch, "parallelcluster", Options())
    assert (first.path, second.path) == ("cluster-0.yaml", "cluster-1.yaml")
    queues = yaml.safe_load(first.text)["Scheduling"]["SlurmQueues"]
    assert [(queue["Name"], queue["CapacityType"]) for queue in queues] == [
        ("place-0", "SPOT"), ("place-2", "ONDEMAND"),
    ]  # fmt: skip
    for queue in queues:
        (machines,) = queue["ComputeResources"]
        assert machines["Instances"] == [{"InstanceType": "p5.48xlarge"}]
        assert (machines["MinCount"], machines["MaxCount"]) == (0, 4)
        assert machines["Efa"] == {"Enabled": True} and queue["Networking"]["PlacementGroup"] == {
            "Enabled": True
        }


def test_limits_of_a_partition_are_enforced_and_a_gang_starts_whole() -> None:
    scheduling = cluster_of(LAUNCHES["one"])["Scheduling"]
    assert scheduling["SlurmSettings"]["CustomSlurmSettings"] == [{"EnforcePartLimits": "ALL"}]
    assert scheduling["ScalingStrategy"] == "all-or-nothing"


def test_a_block_needs_its_reservation_and_keeps_its_nodes() -> None:
    with pytest.raises(InputError, match="capacity-reservation=cr-"):
        cluster_of(block(LAUNCHES["one"]))
    (queue,) = cluster_of(block(LAUNCHES["one"]), capacity_reservation=RESERVATION)["Scheduling"][
        "SlurmQueues"
    ]
    (machines,) = queue["ComputeResources"]
    assert queue["CapacityType"] == "CAPACITY_BLOCK"
    assert machines["MinCount"] == machines["MaxCount"] == 4
    assert machines["CapacityReservationTarget"] == {"CapacityReservationId": RESERVATION}


def test_subnets_by_zone_or_one_that_aws_does_not_have() -> None:
    subnets = "use1-az6=subnet-0123456789abcdef0,head=subnet-01234567"
    cluster = cluster_of(LAUNCHES["one"], subnets=subnets)
    assert cluster["HeadNode"]["Networking"]["SubnetId"] == "subnet-01234567"
    assert cluster["Scheduling"]["SlurmQueues"][0]["Networking"]["SubnetIds"] == ["subnet-0123456789abcdef0"]
    text = export(LAUNCHES["one"], "parallelcluster", Options())[0].text
    assert "subnet-00000000000000000 stands for private subnets in use1-az6" in text
    with pytest.raises(InputError, match="ZONE_ID=SUBNET"):
        cluster_of(LAUNCHES["one"], subnets="use1-az6=subnet-x")


def test_a_region_without_parallelcluster_is_left_out_by_name_or_refused() -> None:
    launch = LAUNCHES["in_turn"]
    pools = (replace(launch.first, region="eu-south-2", zone="eus2-az2"), *launch.pools[1:])
    files = export(replace(launch, pools=pools), "parallelcluster", Options())
    assert all("left out: aws/eu-south-2/eus2-az2" in file.text for file in files)
    with pytest.raises(InputError, match="no clusters in eu-south-2"):
        cluster_of(replace(LAUNCHES["one"], pools=pools[:1]))
