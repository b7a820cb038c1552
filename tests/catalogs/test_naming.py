"""Names as people write them."""

from __future__ import annotations

import csv

import pytest

from catalogs.offers.naming import fits_name, fitting_names
from catalogs.store.load import load_catalog
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.columns import DATA_DIRECTORY

ACCELERATORS = [str(one) for one in load_accelerators()["accelerator"]]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("H100", {"h100-80gb-sxm", "h100-96gb-sxm", "h100-80gb-pcie", "h100-94gb-nvl"}),
        ("a100-80", {"a100-80gb-sxm", "a100-80gb-pcie", "a100-80gb-unknown"}),
        ("L40S", {"l40s-48gb-pcie"}),
        ("l40", {"l40-48gb-pcie"}),
        ("A100-80GB-SXM", {"a100-80gb-sxm"}),
        ("h*-sxm", {"h100-80gb-sxm", "h100-96gb-sxm", "h200-141gb-sxm", "h20-96gb-sxm"}),
        ("h1", set()),
        ("", set()),
    ],
)
def test_accelerators(written: str, meant: set[str]) -> None:
    assert {name for name in ACCELERATORS if fits_name(written, name, ACCELERATORS)} == meant


def test_a_family_of_machines_and_a_name_that_is_one_itself() -> None:
    machines = {str(name) for name in load_catalog(cache=False).instance_types["instance_type"]}
    assert {name for name in machines if fits_name("p4d", name, machines)} == {"p4d.24xlarge"}
    assert {name for name in machines if fits_name("gpu_1x_a100", name, machines)} == {"gpu_1x_a100"}
    assert {name for name in machines if fits_name("a3-highgpu-8g", name, {*machines})} == {"a3-highgpu-8g"}


@pytest.mark.parametrize(
    "written", ["", "*", "H100", "a100-80", "A100-80GB-SXM", "?100*", "p4d", "ecs.gn7", "nothing"]
)
def test_the_names_that_fit_are_those_that_fit_one_by_one(written: str) -> None:
    machines = ("p4d.24xlarge", "p4de.24xlarge", "ecs.gn7-c12g1.3xlarge", "Standard_ND96asr_v4", "p4d")
    for known in (tuple(ACCELERATORS), machines):
        assert fitting_names(written, known) == {name for name in known if fits_name(written, name, known)}


def driver_names() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with (DATA_DIRECTORY / "driver_names.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["driver_name"], set()).add(row["accelerator"])
    return found


@pytest.mark.parametrize(("printed", "meant"), driver_names().items())
def test_what_a_driver_prints_is_exactly_that_card(printed: str, meant: set[str]) -> None:
    """The card alone, however its letters are written, also without the maker where the name has several words."""
    for written in (printed, printed.upper(), printed.lower()):
        assert fitting_names(written, tuple(ACCELERATORS)) == meant
        assert {name for name in ACCELERATORS if fits_name(written, name, ACCELERATORS)} == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("H100 80GB HBM3", {"h100-80gb-sxm"}),
        ("GH200 480GB", {"gh200-96gb"}),
        ("RTX 3080 Ti", {"rtx3080ti-12gb-pcie"}),
        ("RTX 3080", {"rtx3080-10gb-pcie"}),
        ("A100 80GB PCIe", {"a100-80gb-pcie"}),
        ("Instinct MI300X", {"mi300x-192gb-oam"}),
        ("MI300X", {"mi300x-192gb-oam"}),
        ("RTX 6000 Ada Generation", {"rtx6000ada-48gb-pcie"}),
        ("RTX 6000 Ada", {"rtx6000ada-48gb-pcie"}),
        ("NVIDIA RTX 6000 Ada", {"rtx6000ada-48gb-pcie"}),
        ("RTX PRO 6000 Blackwell", {"rtxpro6000-96gb-pcie"}),
        ("Quadro RTX 6000", {"rtx6000-24gb-pcie"}),
        ("H200", {"h200-141gb-sxm", "h200-141gb-nvl"}),
        ("Tesla T4", {"t4-16gb-pcie"}),
    ],
)
def test_a_driver_s_name_without_the_maker(written: str, meant: set[str]) -> None:
    assert fitting_names(written, tuple(ACCELERATORS)) == meant


def test_there_are_driver_s_names_of_most_cards() -> None:
    assert len(driver_names()) >= 40
    assert set().union(*driver_names().values()) <= set(ACCELERATORS)
