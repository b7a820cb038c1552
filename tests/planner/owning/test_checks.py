"""Tests of a bill of materials: what is needed, what is there, and what is not said."""

from __future__ import annotations

from typing import Any

import pytest

from planner.inputs.tco_load import load_tco
from planner.inputs.tco_schema import Tco
from planner.owning.checks import checks_of
from planner.owning.model import Check
from tests.conftest import ROOT

CARD = {
    "name": "card",
    "kind": "accelerator",
    "count": 4,
    "usd": 10_000,
    "watts": 300,
    "pcie_lanes": 16,
    "memory_gb": 80,
}


def machine(*parts: dict[str, Any], **more: Any) -> Tco:
    return Tco.model_validate({
        "version": 1, "name": "m", "own_site": {"rack_kw": 2.5},
        "machine": {"accelerator": "a100-80gb-pcie", "accelerators": 4, "parts": [CARD, *parts], **more},
    })  # fmt: skip


def check(tco: Tco, key: str) -> Check:
    return next(one for one in checks_of(tco) if one.key == key)


@pytest.mark.parametrize(
    ("key", "part", "verdict"),
    [
        ("power_supply", {"kind": "power_supply", "watts": 1200}, "holds"),
        ("power_supply", {"kind": "power_supply", "watts": 1199}, "broken"),
        ("power_supply", {"kind": "power_supply", "watts": 800, "count": 2}, "holds"),
        ("power_supply", {"kind": "power_supply", "watts": 800, "count": 2, "spare": True}, "broken"),
        ("power_supply", {"kind": "case"}, "unknown"),
        ("pcie_lanes", {"kind": "cpu", "pcie_lanes": 64}, "holds"),
        ("pcie_lanes", {"kind": "cpu", "pcie_lanes": 63}, "broken"),
        ("pcie_lanes", {"kind": "cpu"}, "unknown"),
        ("memory", {"kind": "memory", "memory_gb": 80, "count": 4}, "holds"),
        ("memory", {"kind": "memory", "memory_gb": 256}, "broken"),
        ("cores", {"kind": "cpu", "cores": 16}, "holds"),
        ("cores", {"kind": "cpu", "cores": 15}, "broken"),
        ("nvme", {"kind": "nvme", "capacity_tb": 0.6}, "holds"),
        ("nvme", {"kind": "nvme", "capacity_tb": 0.5}, "broken"),
        ("nvme_read.3D U-Net", {"kind": "nvme", "capacity_tb": 1, "read_gb_per_s": 6.5}, "holds"),
        ("nvme_read.3D U-Net", {"kind": "nvme", "capacity_tb": 1, "read_gb_per_s": 6.4}, "broken"),
    ],
)
def test_each_rule_at_its_border(key: str, part: dict[str, Any], verdict: str) -> None:
    assert check(machine({"name": "p", "usd": 100, **part}), key).verdict == verdict


def test_racks_count_whole_machines() -> None:
    fits = check(machine(power_kw=1.0, machines=5), "rack_power.own_site")
    assert (fits.verdict, fits.why) == ("holds", "2 machines a rack: 3 racks for 5")
    assert check(machine(power_kw=2.6), "rack_power.own_site").verdict == "broken"


def test_the_published_list_is_named_with_its_contradictions() -> None:
    found = {one.key: one for one in checks_of(load_tco(ROOT / "examples" / "tco-4xa100.yaml").tco)}
    broken = {key for key, one in found.items() if one.verdict == "broken"}
    assert broken == {"power_supply", "memory_type", "memory_price", "printed_sum"}
    assert found["printed_sum"].why == "right only with 1 x NVIDIA A100 80GB in place of 4"
    assert found["printed_sum"].needs.startswith("$65,400 to $88,600")
    assert found["memory"].why.endswith("2,560 to 5,120 GB")
    assert found["memory"].rule_verdict == "contradicted"
    assert all(one.rule for one in found.values() if one.rule_id)


def test_a_printed_sum_that_is_right_holds_and_one_that_nothing_explains_says_how_far_it_is() -> None:
    assert check(machine(printed_usd=40_000), "printed_sum").verdict == "holds"
    off = check(machine(printed_usd=50_000), "printed_sum")
    assert (off.verdict, off.why) == ("broken", "off by -20 %")
