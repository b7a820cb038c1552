"""GPUs of bills without SkuPriceDetails: by the machine type that a charge names."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.finops.read import open_bill
from planner.finops.read.machines import gpu_machines
from tests.planner.finops.read.test_open import HEADER, line, write
from tests.planner.finops.small_bill import charge, write_bill

NAMED = [
    ("$98.32 per On Demand Linux p5.48xlarge Instance Hour", "p5.48xlarge", 8, "h100-80gb-sxm"),
    ("USE1-SpotUsage:g5.12xlarge", "g5.12xlarge", 4, "a10g-24gb-pcie"),
    ("ml.p4d.24xlarge training", "p4d.24xlarge", 8, "a100-40gb-sxm"),
    ("P4DE.24XLARGE", "p4de.24xlarge", 8, "a100-80gb-sxm"),
    ("ecs.gn7i-c8g1.2xlarge", "ecs.gn7i-c8g1.2xlarge", 1, "a10-24gb-pcie"),
    # meters of Azure, as its list of prices writes them
    ("ND96isrH100v5 Spot", "standard_nd96isr_h100_v5", 8, "h100-80gb-sxm"),
    ("ND96amsr A100 v4", "standard_nd96amsr_a100_v4", 8, "a100-80gb-sxm"),
    (
        "Virtual Machines NCads_A100_v4 Series - NC24ads_A100_v4",
        "standard_nc24ads_a100_v4",
        1,
        "a100-80gb-pcie",
    ),
]
NOT_NAMED = ["m5.xlarge Instance Hour", "xp5.48xlarge", "p5.48xlarges", "trn1.32xlarge", ""]


def bill(path: Path, texts: list[str], header: str = "ChargeDescription", more: str = "") -> Path:
    lines = [f'{line(sku=f"s{at:02}")},"{one}"{more}' for at, one in enumerate(texts)]
    return write(path, *lines, header=f"{HEADER},{header}")


def details(path: Path) -> list[str | None]:
    with open_bill([path]) as opened:
        rows = opened.engine.query("SELECT SkuId, SkuPriceDetails FROM focus ORDER BY SkuId")
    return [None if value is None or value != value else str(value) for value in rows["SkuPriceDetails"]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_machine_that_is_named_has_its_gpus(suffix: str, tmp_path: Path) -> None:
    path = bill(tmp_path / "bill.csv", [text for text, *_ in NAMED] + NOT_NAMED)
    if suffix == "parquet":
        target = tmp_path / "typed.parquet"
        with duckdb.connect() as own:  # the connection that all share may be in use
            own.execute(f"COPY (FROM READ_CSV('{path}')) TO '{target}'").fetchall()
        path = target
    found = details(path)
    assert found[len(NAMED) :] == [None] * len(NOT_NAMED)
    for text, (_, machine, count, chip) in zip(found, NAMED, strict=False):
        assert json.loads(text or "") == {"GpuCount": count, "GpuModel": chip, "InstanceType": machine}


COUNTED = [
    ("8x NVIDIA H100 SXM", "8x H100", 8, "h100"),  # each had its own text as its type: "8x nvidia h100"
    ("gpu-h100x8-640gb", "8x H100", 8, "h100"),
    ("Capacity block 32x H200", "32x H200", 32, "h200"),  # four machines; was no GPU
    ("gd-8xh100ib-i128", "8x H100", 8, "h100"),
    ("gx3d-160x1792x8h100", "8x H100", 8, "h100"),
    ("h200-141gb-sxm-ib.8x", "8x H200", 8, "h200"),
    ("L40S node, 4 GPUs", "4x L40S", 4, "l40s"),
    ("L40S 1x GPU", "1x L40S", 1, "l40s"),
    ("NVIDIA H100 (SXM, 8 GPUs)", "8x H100", 8, "h100"),  # ended in an error
    ("H100 [SXM+, 4 GPUs", "4x H100", 4, "h100"),
    ("2x RTX 4090", "2x RTX4090", 2, "rtx4090"),
    ("4x NVIDIA L4", "4x L4", 4, "l4"),
]
NOT_COUNTED = [
    "NVIDIA H200 NVLink",
    "A100 x86_64 image",
    "24x L4",
    "744 x H100 SXM GPU-hours",  # hours of a month: each counted as 744 GPUs
    "Invoice 2026 x H100",
    "load balancer L4 x 2",
    "m5.4xlarge",
    "cache.t4g.medium",
    "0f3c1b2e-1a40-4a10-8a10-5c6d7e8f9a0b",  # identifiers of meters: no eight A10
    "6F81-8A10-456A",
]


@pytest.mark.parametrize("held", [30_000, 0], ids=["small", "large"])
def test_a_number_of_chips_that_is_named_is_a_machine(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines of neoclouds are not in the catalog: their GPU-hours were not counted, and no check failed."""
    for module in ("planner.finops.read.machines", "planner.finops.read.open"):
        monkeypatch.setattr(f"{module}.HELD_ROWS", held)
    found = details(bill(tmp_path / "bill.csv", [text for text, *_ in COUNTED] + NOT_COUNTED))
    assert found[len(COUNTED) :] == [None] * len(NOT_COUNTED)
    for text, (_, machine, count, chip) in zip(found, COUNTED, strict=False):
        assert json.loads(text or "") == {"GpuCount": count, "GpuModel": chip, "InstanceType": machine}


SOLD_ALONE = ["Nvidia Tesla A100 GPU running in Japan", "Nvidia L4 GPU attached to Spot VMs running in Iowa"]
NOT_ALONE = [
    "Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year",
    "GPU support plan",
    "N1 Core running in Iowa",
]


@pytest.mark.parametrize("held", [30_000, 0], ids=["small", "large"])
def test_a_gpu_that_is_sold_by_itself_is_one(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's own view of its bill as FOCUS has no SkuPriceDetails: no GPU-hour of it was counted."""
    for module in ("planner.finops.read.machines", "planner.finops.read.open"):
        monkeypatch.setattr(f"{module}.HELD_ROWS", held)
    found = details(bill(tmp_path / "bill.csv", [*SOLD_ALONE, *NOT_ALONE]))
    assert [text and json.loads(text) for text in found] == [{"GpuCount": 1}] * 2 + [None] * 3
    both = details(bill(tmp_path / "both.csv", [SOLD_ALONE[0], "p5.48xlarge", "GPU"]))
    assert [text and json.loads(text)["GpuCount"] for text in both] == [1, 8, None]


def test_a_provider_that_states_gpus_is_believed(tmp_path: Path) -> None:
    header = "ChargeDescription,SkuPriceDetails"
    path = bill(tmp_path / "bill.csv", ["p5.48xlarge"], header, ",")
    assert json.loads(details(path)[0] or "")["GpuCount"] == 8
    with path.open("a", encoding="utf-8") as file:
        file.write(f'{line(sku="t")},"g6.xlarge","{{""GpuCount"":1}}"\n')
    assert details(path) == [None, '{"GpuCount":1}']


def test_a_column_of_the_users_own_is_not_mistaken(tmp_path: Path) -> None:
    path = bill(tmp_path / "bill.csv", ["p5.48xlarge"], "ChargeDescription,x_machine,x_details", ",mine,too")
    assert "p5.48xlarge" in str(details(path))


def test_types_without_gpus_are_not_in_the_list() -> None:
    machines = gpu_machines()
    assert machines["p5.48xlarge"] == (8.0, "h100-80gb-sxm") and "standard_nd96asr_v4" in machines
    assert not [name for name in machines if name.startswith(("trn", "inf", "dl2q", "tpu"))]


@pytest.mark.parametrize("held", [30_000, 0], ids=["small", "large"])
def test_charges_without_details_in_a_bill_that_has_them(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bill with the model of its tokens in SkuPriceDetails had no GPU-hours of the machines beside them.

    A provider that states GPUs of some charges is taken at its word: what names a machine there may be its disk.
    """
    monkeypatch.setattr("planner.finops.read.machines.HELD_ROWS", held)
    day = date(2026, 10, 5)
    rows = [
        charge(day, ProviderName="Neo", SkuId="1", SkuMeter="8x H200 SXM", SkuPriceDetails=""),
        charge(
            day, ProviderName="Neo", SkuId="2", SkuMeter="8x H200 tokens", SkuPriceDetails='{"ModelName":"m"}'
        ),
        charge(day, ProviderName="AWS", SkuId="3", SkuMeter="p5.48xlarge", SkuPriceDetails='{"GpuCount":8}'),
        charge(day, ProviderName="AWS", SkuId="4", SkuMeter="p5.48xlarge EBS optimised", SkuPriceDetails=""),
    ]
    found = details(write_bill(tmp_path / "bill.csv", rows))
    assert json.loads(found[0] or "") == {"GpuCount": 8, "GpuModel": "h200", "InstanceType": "8x H200"}
    assert found[1:] == ['{"ModelName":"m"}', '{"GpuCount":8}', None]
    named = '{"InstanceType":"Standard_ND96isr_H100_v5"}'  # a type and no GPUs: its machines were not counted
    azure = [
        charge(day, ProviderName="Microsoft", SkuId="1", SkuMeter="", SkuPriceDetails=named),
        charge(
            day, ProviderName="Microsoft", SkuId="2", SkuPriceDetails='{"InstanceType":"Standard_D8s_v5"}'
        ),
    ]
    types = details(write_bill(tmp_path / "azure.csv", azure))
    assert json.loads(types[0] or "")["GpuCount"] == 8
    assert types[1] == '{"InstanceType":"Standard_D8s_v5"}'
    gpus = [charge(day, SkuId="1", SkuMeter="Nvidia L4 GPU running in Iowa", SkuPriceDetails="")]
    assert details(write_bill(tmp_path / "gpus.csv", gpus)) == ['{"GpuCount": 1}']


@pytest.mark.parametrize("of_1_0", [True, False])
def test_what_is_charged_beside_a_machine_has_no_gpus(of_1_0: bool, tmp_path: Path) -> None:
    """A port by the hour of `8x H100` added eight GPU-hours an hour, and a disk by GB a unit that nobody knew."""
    day, more = date(2026, 10, 5), {} if of_1_0 else {"SkuPriceDetails": "{}"}
    kinds = ("Compute", "AI and Machine Learning", "Storage", "Networking", "", "GPU Cloud")
    rows = [
        charge(day, SkuId=str(number), SkuMeter="8x H100 node", ServiceCategory=kind, **more)
        for number, kind in enumerate(kinds)
    ]
    found = [
        cell is not None and "GpuCount" in cell for cell in details(write_bill(tmp_path / "a.csv", rows))
    ]
    assert found == [True, True, False, False, True, True]


BESIDE_GPUS = [
    "CPU node for 8x H100 cluster",
    "Login vCPU for p5.48xlarge",
    "Support for 8x H100",
    "Storage volume for 4x L40S node",
]
WITH_GPUS = [
    "GPU support for 8x H100", "Reserved capacity for 8x H100 nodes", "8x H100 for storage tests",
    "8x H100 node for a cluster of 8x H100", "p5.48xlarge for 8x H100",
]  # fmt: skip


@pytest.mark.parametrize("held", [30_000, 0], ids=["small", "large"])
def test_what_is_for_a_machine_with_gpus_is_none_itself(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU node beside a cluster of GPUs counted as 8 of them; what does not say what it is is named."""
    for module in ("planner.finops.read.machines", "planner.finops.read.open"):
        monkeypatch.setattr(f"{module}.HELD_ROWS", held)
    path = bill(tmp_path / "bill.csv", [*BESIDE_GPUS, *WITH_GPUS])
    found = [text and json.loads(text)["GpuCount"] for text in details(path)]
    assert found == [None] * len(BESIDE_GPUS) + [8] * len(WITH_GPUS)
    with open_bill([path]) as read:
        (said,) = [one.message for one in read.findings if one.code == "gpus_after_for"]
    assert "such as 'for 8x h100' (1 text)" in said


def test_the_type_of_the_machine_comes_before_what_a_text_names(tmp_path: Path) -> None:
    path = bill(tmp_path / "bill.csv", ["8x H100 cluster"], "ChargeDescription,x_InstanceType", ",p5.4xlarge")
    (text,) = details(path)
    assert json.loads(text or "")["GpuCount"] == 1


def test_a_type_that_details_name_alone_keeps_its_spelling(tmp_path: Path) -> None:
    """It came in small letters with its GPUs, which no price list knows."""
    alone = json.dumps({"InstanceType": "Standard_NC24ads_A100_v4", "Zone": "1"})
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 1), 96, SkuPriceDetails=alone)])
    with open_bill([str(path)]) as opened:
        ((details,),) = opened.engine.query("SELECT SkuPriceDetails FROM focus").itertuples(index=False)
    gpus = {"GpuCount": 1.0, "GpuModel": "a100-80gb-pcie"}
    assert json.loads(details) == json.loads(alone) | gpus
