"""Every listed preset can be planned, and so estimated, however it is spelt; none is refused once it is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalogs.tables.model import Catalog
from planner.inputs.presets import load_presets
from tests.planner.spine_catalogs import A100X8, Offer, bought_on, make_catalog

H100X8 = replace(
    A100X8, instance_type="p5.48xlarge", family="p5", accelerator="h100-80gb-sxm", accelerator_memory_gib=79.6,
    internode_gbps=3200.0,
)  # fmt: skip
# the largest need more than is obtained by asking
OBTAINABLE = [{"accelerator": "*", "purchase_option": "on_demand", "accelerators": 4096}]
PRESETS = load_presets()


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return make_catalog([Offer(H100X8, "us-east-1", "55")])


@pytest.mark.parametrize("name", PRESETS)
def test_a_listed_preset_is_planned(catalog: Catalog, name: str) -> None:
    values = PRESETS[name].values
    amount = {"tokens": 1e9} if values["family"] == "transformer" else {"samples": 1_000_000}
    nodes = 4 if int(values["params"]) < 20e9 else 16 if int(values["params"]) < 200e9 else 128
    sections: dict[str, Any] = {
        "version": 1, "name": "test", "model": {"preset": name.upper()},
        "training": {**amount, "global_batch": 512}, "data": {"size": "20GB"},
        "constraints": {"max_nodes": nodes, "obtainable": OBTAINABLE},
    }  # fmt: skip
    plan = bought_on(catalog, sections).plan
    assert plan.status == "planned", plan.filters
    assert plan.performance is not None and plan.performance.mfu is not None
    assert 0.0 < plan.performance.mfu < 0.8
