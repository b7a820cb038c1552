"""Machines as people name them: short names, what has no price, what is no longer sold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalogs.offers.naming import fits_name, known_accelerators
from tests.architecture.modules import ROOT

Run = Callable[..., Any]


def _workload(path: Path, **constraints: Any) -> str:
    values = yaml.safe_load((ROOT / "examples" / "resnet50-imagenet.yaml").read_text(encoding="utf-8"))
    values["constraints"] = constraints
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return str(path)


def test_a_short_name_stands_for_its_cards(run_cli: Run, tmp_path: Path) -> None:
    path = _workload(tmp_path / "w.yaml", accelerators={"allow": ["H100", "a100-80"]})
    done = run_cli("optimize", path, "--as-of", "2026-11-20")
    assert done.code == 0 and ("h100-" in done.stdout or "a100-80gb-" in done.stdout)


@pytest.mark.parametrize(
    ("device", "cards"),
    [
        ("NVIDIA H100 80GB HBM3", {"h100-80gb-sxm"}),
        ("NVIDIA A100-SXM4-80GB", {"a100-80gb-sxm"}),
        ("A100 80GB", {"a100-80gb-sxm", "a100-80gb-pcie", "a100-80gb-unknown"}),
        ("Tesla V100-SXM2-16GB", {"v100-16gb-sxm"}),
        ("NVIDIA H100 NVL", {"h100-94gb-nvl"}),
        ("NVIDIA GeForce RTX 4090", {"rtx4090-24gb-pcie"}),
        ("AMD Instinct MI300X OAM", {"mi300x-192gb-oam"}),
        ("H100 40GB", set()),
        ("NVIDIA", set()),
        ("80GB", set()),
    ],
)
def test_the_name_of_a_driver_stands_for_its_cards(device: str, cards: set[str]) -> None:
    assert set(known_accelerators(device)) == cards


@pytest.mark.parametrize(("pattern", "name"), [("n1-4", "n1-standard-4"), ("us-1", "us-east-1")])
def test_parts_of_names_of_other_things_are_no_names(pattern: str, name: str) -> None:
    assert not fits_name(pattern, name)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"accelerators": {"allow": ["tpu-v5e"]}}, "no offers with prices for tpu-v5e-16gb"),
        (
            {"instance_types": {"allow": ["ecs.gn7-c13g1.6xlarge"]}},
            "no offers with prices for ecs.gn7-c13g1.6xlarge",
        ),
        ({"software": "tpu"}, "no offers with prices for software tpu (tpu-v5e-16gb, tpu-v5p-95gb,"),
        ({"accelerators": {"allow": ["H1000"]}}, "no accelerator called 'H1000' in the catalog"),
        ({"accelerators": {"allow": ["p4d"]}}, "constraints.instance_types has p4d.24xlarge"),
        ({"instance_types": {"deny": ["L40S"]}}, "constraints.accelerators has l40s-48gb-pcie"),
        ({"accelerators": {"allow": ["RTX 4090"]}}, "no offers with prices for rtx4090-24gb-pcie"),
        ({"accelerators": {"allow": ["a6000-*"]}}, "(did you mean 'rtxa6000-48gb-pcie'?)"),
        (
            {"accelerators": {"allow": ["xyz"]}},
            "no accelerator called 'xyz' in the catalog; planner catalog list",
        ),
        (
            {"providers": ["google"]},
            "no provider called 'google' in the catalog (did you mean 'gcp'?)",
        ),
        ({"accelerators": {"allow": ["h20"]}}, "no offers with prices for h20-96gb-sxm"),
        ({"accelerators": {"allow": ["MI250"]}}, "no offers with prices for mi250-128gb-oam"),
        (
            {"instance_types": {"allow": ["gn7-c13g1.6xlarge"]}},
            "no offers with prices for ecs.gn7-c13g1.6xlarge",
        ),
    ],
)
def test_what_has_no_price_is_named_as_such(
    run_cli: Run, tmp_path: Path, rule: dict[str, Any], says: str
) -> None:
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", **rule), "--as-of", "2026-11-20")
    assert done.code == 2 and says in done.stderr


@pytest.mark.parametrize(
    ("machine", "option", "types"),
    [
        ("p4d", "savings_plan_3y", "p4d.24xlarge"),
        ("p4d", "reserved_3y", "p4d.24xlarge"),
        ("gn7", "spot", "ecs.gn7-c12g1.3xlarge, ecs.gn7-c13g1.13xlarge, ecs.gn7-c13g1.26xlarge"),
    ],
)
def test_a_way_to_buy_without_a_price_is_called_unpriced(
    run_cli: Run, tmp_path: Path, machine: str, option: str, types: str
) -> None:
    rule = {"instance_types": {"allow": [machine]}, "purchase_options": [option]}
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", **rule), "--as-of", "2026-11-20", "-o", "json")
    assert done.code == 3 and f"{option} is unpriced, so not considered, for {types}" in done.stdout


def test_ways_to_buy_that_nothing_is_priced_by_are_an_error(run_cli: Run, tmp_path: Path) -> None:
    rule = {"instance_types": {"allow": ["gn7i"]}, "purchase_options": ["subscription"]}
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", **rule), "--as-of", "2026-11-20")
    assert done.code == 2 and "no offers with prices for subscription" in done.stderr


@pytest.mark.parametrize("name", ["H20", "mi250"])
def test_a_known_accelerator_that_nobody_sells_is_not_unknown(run_cli: Run, name: str) -> None:
    done = run_cli("catalog", "list", "--accelerator", name, "--as-of", "2026-11-20")
    assert done.code == 2 and f"no offers with prices for {name.lower()}-" in done.stderr


def test_the_prefix_of_a_cloud_may_be_left_out(run_cli: Run) -> None:
    asked = ("--instance-type", "gn7", "--as-of", "2026-11-20", "-o", "csv", "--max-results", "0")
    done = run_cli("catalog", "list", *asked)
    assert done.code == 0 and "ecs.gn7-c12g1.3xlarge" in done.stdout
    assert "gn7i" not in done.stdout and "gn7e" not in done.stdout


def test_a_retired_machine_is_used_only_where_it_is_named(run_cli: Run, tmp_path: Path) -> None:
    path = _workload(tmp_path / "w.yaml", instance_types={"allow": ["p3.2xlarge"]})
    done = run_cli("optimize", path, "--as-of", "2026-11-20")
    assert done.code == 0 and "p3.2xlarge: the type is retired" in " ".join(done.stdout.split())
    family = _workload(tmp_path / "f.yaml", instance_types={"allow": ["p3.2*"]})
    refused = run_cli("optimize", family, "--as-of", "2026-11-20")
    says = "p3.2* fits retired types alone, used only by name: p3.2xlarge"
    assert refused.code == 3 and says in " ".join(refused.stdout.split())


def test_a_price_without_a_place_is_said_on_the_plan(run_cli: Run, tmp_path: Path) -> None:
    done = run_cli("optimize", _workload(tmp_path / "w.yaml", providers=["lambda"]), "--as-of", "2026-11-20")
    assert done.code == 0 and "place and stock not known" in done.stdout
