"""What offers draw on quotas: units converted by each type's own numbers, names and units that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.schema import QuotaLimit
from planner.judge.lines import verify_plan
from planner.market.quota import needed_quota, quota_units
from tests.planner.spine_catalogs import (
    A10,
    A100,
    A100X8,
    T4,
    Machine,
    Offer,
    chosen,
    loaded,
    make_catalog,
    plan_on,
    work,
)

H100X8 = replace(
    A100X8, instance_type="p5.48xlarge", family="p5", accelerator="h100-80gb-sxm", accelerator_memory_gib=79.6,
    vcpus=192.0,
)  # fmt: skip
NC_T4 = replace(T4, family="NC_T4_v3")
OWN = Machine("onprem", "our-dgx", "dgx", "a100-40gb-sxm", 8.0, 39.5, float("nan"), intra_node="nvswitch",
              intra_node_gb_per_s=600.0)  # fmt: skip
OFFERS = [
    Offer(A100X8, "us-east-1", "20"),
    Offer(A100X8, "us-east-1", "9", "spot"),
    Offer(H100X8, "eu-west-1", "40"),
    Offer(H100X8, "us-east-1", "15", "spot"),
    Offer(H100X8, "us-east-1", "25", "capacity_block", term_hours=24.0),
    Offer(A100, "us-central1", "3"),
    Offer(A100, "us-central1", "1", "spot"),
    Offer(NC_T4, "eastus", "1"),
    Offer(NC_T4, "eastus", "0.3", "spot"),
    Offer(A10, "cn-beijing", "1"),
    Offer(OWN, "room-1", "5", "owned"),
]


@pytest.fixture(scope="module")
def context():  # type: ignore[no-untyped-def]
    return plan_on(make_catalog(OFFERS), work()).context


def drawn(context: Any, **limit: Any) -> dict[str, float]:
    """Units that one instance takes, by offer (provider/type/option), of those that count."""
    units = quota_units(
        context.market.offer_set, context.market.tariffs, QuotaLimit(**{"limit": 1_000.0, **limit})
    )
    return {
        f"{offer.machine.provider}/{offer.machine.family}/{offer.purchase_option}": float(taken)
        for offer, taken in zip(OFFERS, units, strict=True)
        if taken
    }


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        # AWS counts vCPUs per class of instances, on-demand and spot apart, and blocks in instances
        ({"provider": "aws", "quota": "L-417A185B"}, {"aws/p4d/on_demand": 96, "aws/p5/on_demand": 192}),
        ({"provider": "aws", "quota": "L-417A185B", "unit": "GPU"}, {"aws/p4d/on_demand": 8, "aws/p5/on_demand": 8}),
        ({"provider": "aws", "quota": "L-417A185B", "unit": "instances"},
         {"aws/p4d/on_demand": 1, "aws/p5/on_demand": 1}),
        ({"provider": "aws", "quota": "L-417A185B", "region": "eu-*"}, {"aws/p5/on_demand": 192}),
        ({"provider": "aws", "quota": "L-7212CCBC"}, {"aws/p4d/spot": 96}),
        ({"provider": "aws", "quota": "Capacity Blocks"}, {"aws/p5/capacity_block": 1}),
        ({"provider": "aws", "quota": "Capacity Blocks", "unit": "GPU"}, {"aws/p5/capacity_block": 8}),
        ({"provider": "aws", "quota": "p5", "unit": "vCPU"},
         {"aws/p5/on_demand": 192, "aws/p5/spot": 192, "aws/p5/capacity_block": 192}),
        ({"provider": "aws", "quota": "h100"},
         {"aws/p5/on_demand": 8, "aws/p5/spot": 8, "aws/p5/capacity_block": 8}),
        ({"provider": "aws", "quota": "a100-40gb-sxm", "unit": "instances"},
         {"aws/p4d/on_demand": 1, "aws/p4d/spot": 1}),
        # GCP counts GPUs per accelerator, preemptible ones apart
        ({"provider": "gcp", "quota": "NVIDIA_A100_GPUS"}, {"gcp/a2-highgpu/on_demand": 1}),
        ({"provider": "gcp", "quota": "PREEMPTIBLE_NVIDIA_A100_GPUS"}, {"gcp/a2-highgpu/spot": 1}),
        ({"provider": "gcp", "quota": "NVIDIA_A100_GPUS", "unit": "vCPU"}, {"gcp/a2-highgpu/on_demand": 12}),
        # Azure counts vCPUs per family, and one pool of them for all spot sizes
        ({"provider": "azure", "quota": "Standard NCASv3_T4 Family"}, {"azure/NC_T4_v3/on_demand": 8}),
        ({"provider": "azure", "quota": "lowPriorityCores"}, {"azure/NC_T4_v3/spot": 8}),
        ({"provider": "azure", "quota": "lowPriorityCores", "unit": "GPU"}, {"azure/NC_T4_v3/spot": 1}),
        # Alibaba counts vCPUs; a limit may be given in instances
        ({"provider": "alibaba", "quota": "gn7i"}, {"alibaba/gn7i/on_demand": 8}),
        ({"provider": "alibaba", "quota": "gn7i", "unit": "instances"}, {"alibaba/gn7i/on_demand": 1}),
    ],
)  # fmt: skip
def test_limits_are_converted_by_the_numbers_of_each_type(
    context: Any, limit: dict[str, Any], expected: dict[str, float]
) -> None:
    assert drawn(context, **limit) == expected


def test_an_unknown_number_of_vcpus_is_more_than_any_limit(context: Any) -> None:
    assert drawn(context, provider="onprem", quota="dgx", unit="vCPU")["onprem/dgx/owned"] > 1_000
    assert drawn(context, provider="onprem", quota="dgx") == {"onprem/dgx/owned": 1}


def quotas(*limits: dict[str, Any]) -> dict[str, Any]:
    return work(constraints={"quota": [{"provider": "aws", **limit} for limit in limits], "max_nodes": 8})


def gpus(limit: float, **more: Any) -> dict[str, Any]:
    return {"quota": "L-417A185B", "unit": "GPU", "limit": limit, **more}


def test_a_limit_in_gpus_holds_as_many_gpus() -> None:
    """64 GPUs are eight instances of eight, though the quota itself counts vCPUs."""
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20")])
    fast = {"preferences": {"objective": "time"}}
    free = plan_on(catalog, {**work(), **fast}).plan.lines[0].nodes
    assert free > 1
    for limit, most in ((8 * free, free), (8 * free - 1, free - 1)):
        plan = plan_on(catalog, {**quotas(gpus(limit)), **fast}).plan
        (line,) = plan.lines
        assert line.nodes <= most
        assert (line.quota.unit, line.quota.needed, line.quota.limit) == ("GPU", 8 * line.nodes, limit)
        assert line.quota.status == "within the declared limit"
    assert plan_on(catalog, {**quotas(gpus(8 * free)), **fast}).plan.lines[0].nodes == free


def test_the_tightest_of_several_limits_is_shown() -> None:
    answer = plan_on(
        make_catalog([Offer(A100X8, "us-east-1", "20")]), quotas(gpus(64), gpus(100, unit="vCPU"))
    )
    assert chosen(answer) == [("aws/us-east-1/-/p4d.24xlarge/on_demand/-", 1)]
    context = answer.context
    given = (context.market.offer_set, context.market.tariffs, context.asked.workload.constraints.quota, 0)
    need = needed_quota(*given, 1)
    assert (need.unit, need.needed, need.limit) == ("vCPU", 96, 100)
    assert needed_quota(*given, 2).status == "above the limit"


@pytest.mark.parametrize(
    ("limit", "breaks"),
    [
        ({"quota": "L-417A185B", "unit": "GPU", "limit": 7}, True),
        ({"quota": "L-417A185B", "unit": "GPU", "limit": 8}, False),
        ({"quota": "L-417A185B", "limit": 95}, True),
        ({"quota": "L-417A185B", "limit": 96}, False),
        ({"quota": "p4d", "unit": "instances", "limit": 0}, True),
        ({"quota": "a100", "limit": 7}, True),
        ({"quota": "a100-40gb-sxm", "unit": "vCPU", "limit": 95}, True),
        ({"quota": "a100", "unit": "instances", "limit": 1}, False),
    ],
)
def test_verify_counts_in_the_declared_unit(limit: dict[str, Any], breaks: bool) -> None:
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20")])
    plan = plan_on(catalog, work(constraints={"max_nodes": 1})).plan.to_dict()
    faults = verify_plan(plan, loaded(quotas(limit)).workload, catalog.offers)
    assert any("quota" in fault for fault in faults) is breaks


WRONG = {
    "no wildcard is a name": (
        {"quota": "*", "limit": 64}, "quota[0].quota: no quota of aws is called '*'; write one of: ",
    ),
    "a near miss": ({"quota": "L-417A185", "limit": 64}, "called 'L-417A185' (did you mean 'L-417A185B'?)"),
    "a letter of official names": (
        {"quota": "p", "limit": 64}, "Running On-Demand P instances"
    ),
    "another provider's name": (
        {"quota": "NVIDIA_A100_GPUS", "limit": 8}, "no quota of aws is called 'NVIDIA_A100_GPUS'; write one of: "
    ),
    "a region that is none": (
        gpus(64, region="us-est-1"), "quota[0].region: no region of aws matches 'us-est-1' (did you mean 'us-east-1'?)"
    ),
    "a provider that is none": (
        gpus(64, provider="awss"), "quota[0].provider: no provider called 'awss' in the catalog (did you mean 'aws'?)"
    ),
    "units that differ by purchase option": (
        {"quota": "p5", "limit": 64}, "quota[0].quota: 'p5' counts in instances or vCPU, by purchase option: set 'unit'"
    ),
    "a quota over all regions": (
        {"provider": "gcp", "quota": "GPUS_ALL_REGIONS", "limit": 64},
        "'GPUS_ALL_REGIONS' (GPUs (all regions), project (global)) is not a quota that the planner can apply",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_matches_nothing_is_refused_by_name(case: str) -> None:
    limit, text = WRONG[case]
    with pytest.raises(InputError) as caught:
        plan_on(make_catalog(OFFERS), quotas(limit))
    assert text in str(caught.value)


def test_a_quota_is_declared_by_the_name_that_a_plan_shows() -> None:
    """No name holds what only our tables add to it, such as "(in other copies: ...)"."""
    search = plan_on(make_catalog(OFFERS), work())
    offers, market = search.context.market.offer_set, search.context.market
    shown = {
        (offers.offers["provider"][row], needed_quota(offers, market.tariffs, [], row, 1).name)
        for row in range(len(OFFERS) - 1)
    }
    assert ("aws", "All P5 Spot Instance Requests") in shown
    assert ("azure", "Spot (low-priority) vCPUs") in shown
    for provider, name in shown - {("aws", "Capacity Blocks")}:
        plan_on(make_catalog(OFFERS), quotas({"provider": provider, "quota": name, "limit": 1e6}))


JOB = """\
name: job
version: 1
model: {{preset: bert-base}}
training: {{samples: 1e6, global_batch: 256, sequence_length: 128}}
constraints:
  deadline: 100h
  quota:
    - {{provider: aws, quota: {quota}, unit: {unit}, limit: 64}}
"""
PORTFOLIO = """\
version: 1
kind: portfolio
name: jobs
quota:
  - {{provider: aws, quota: {quota}, unit: {unit}, limit: 64}}
jobs:
  - name: a
    candidates:
      - {{provider: aws, region: us-east-1, instance_type: {type}, family: {family}, nodes: 1, hours: 5, cost_usd: 9}}
"""
INLINE = """\
version: 1
kind: portfolio
name: jobs
jobs:
  - name: a
    inline:
"""
PIPELINE = """\
version: 1
kind: pipeline
name: tasks
tasks:
  - {name: a, workload: job.yaml}
"""


@pytest.mark.parametrize(
    "command", ["optimize", "explain", "frontier", "fleet", "pipeline", "inline", "file"]
)
def test_every_command_refuses_it_with_its_place(command: str, tmp_path: Path, run_cli: Any) -> None:
    job = JOB.format(quota='"*"', unit="GPU")
    if command == "fleet":
        job += "kind: fleet\nfleet: {runs: 3}\n"
    (tmp_path / "job.yaml").write_text(job)
    file, place = "job.yaml", "8:30: constraints.quota[0].quota"
    if command == "pipeline":
        file = "pipeline.yaml"
        (tmp_path / file).write_text(PIPELINE)
    elif command == "inline":
        file, place = "jobs.yaml", "14:36: jobs[0].inline.constraints.quota[0].quota"
        (tmp_path / file).write_text(INLINE + "".join(f"      {line}\n" for line in job.splitlines()))
    elif command == "file":
        file = "jobs.yaml"
        (tmp_path / file).write_text(INLINE.replace("    inline:\n", "    workload: job.yaml\n"))
    name = {"inline": "portfolio", "file": "portfolio", "fleet": "optimize"}.get(command, command)
    result = run_cli(name, str(tmp_path / file), "--as-of", "2026-11-20")
    shown = file if command == "inline" else "job.yaml"
    assert result.code == 2
    assert f"{shown}:{place}: no quota of aws is called '*'" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("quota", "unit", "family", "kind", "text"),
    [
        ('"*"', "GPU", "p4d", "p4d.24xlarge", "5:28: quota[0].quota: no quota of aws is called '*'"),
        ("p4d", "cores", "p4d", "p4d.24xlarge", "5:39: quota[0].unit: must be one of vCPU, GPU or instances"),
        ("P", "GPU", "P", "their-own", "quota[0].unit: how many GPU a their-own has is not known"),
    ],
)
def test_a_portfolio_refuses_quotas_that_cannot_be_applied(
    quota: str, unit: str, family: str, kind: str, text: str, tmp_path: Path, run_cli: Any
) -> None:
    (tmp_path / "jobs.yaml").write_text(PORTFOLIO.format(quota=quota, unit=unit, family=family, type=kind))
    result = run_cli("portfolio", str(tmp_path / "jobs.yaml"), "--as-of", "2026-11-20")
    assert result.code == 2
    assert text in " ".join(result.stderr.split())


@pytest.mark.parametrize(("unit", "used"), [("GPU", 8), ("vCPU", 96), ("instances", 1)])
def test_a_portfolio_converts_what_sized_candidates_draw(
    unit: str, used: int, tmp_path: Path, run_cli: Any
) -> None:
    import json

    text = PORTFOLIO.format(quota="P", unit=unit, family="P", type="p4d.24xlarge").replace(
        "limit: 64", "limit: 99"
    )
    (tmp_path / "jobs.yaml").write_text(text)
    result = run_cli("portfolio", str(tmp_path / "jobs.yaml"), "--as-of", "2026-11-20", "-o", "json")
    assert result.code == 0, result.stderr
    (limit,) = json.loads(result.stdout)["limits"]
    assert (limit["used"], limit["available"], limit["unit"]) == (used, 99, unit)
