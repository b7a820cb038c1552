"""Names as people write them."""

from __future__ import annotations

import pytest

from catalogs.offers.naming import fits_name, fitting_names
from catalogs.store.load import load_catalog
from catalogs.tables.accelerators import load_accelerators

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
    "pattern", ["H100", "a100-80", "p4d", "*a100*", "standard_nc*", "ecs.gn7", "nothing", ""]
)
def test_names_of_a_kind_fit_together_as_one_by_one(pattern: str) -> None:
    names = (
        "h100-80gb-sxm",
        "a100-80gb-sxm",
        "p4d.24xlarge",
        "p4de.24xlarge",
        "Standard_NC96ads",
        "ecs.gn7",
        "ecs.gn7i-c8",
    )
    assert fitting_names(pattern, names) == [fits_name(pattern, name, names) for name in names]
