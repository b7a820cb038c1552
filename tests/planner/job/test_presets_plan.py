"""Every listed preset can be planned, and so estimated, however it is spelt; none is refused once it is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from catalogs.tables.model import Catalog
from planner.asked.options import Options
from planner.candidates.prepare import prepare
from planner.candidates.sizes import estimate_all
from planner.inputs.presets import load_presets
from tests.planner.spine_catalogs import A100X8, NOW, Offer, bought_on, loaded, make_catalog

H100X8 = replace(
    A100X8, instance_type="p5.48xlarge", family="p5", accelerator="h100-80gb-sxm", accelerator_memory_gib=79.6,
    internode_gbps=3200.0,
)  # fmt: skip
# the largest need more than is obtained by asking
OBTAINABLE = [{"accelerator": "*", "purchase_option": "on_demand", "accelerators": 4096}]
PRESETS = load_presets()


def ends() -> list[str]:
    """The smallest and the largest preset of each family and set of stated sizes: all ways of sizing a model."""
    alike: dict[str, list[str]] = {}
    for name in sorted(PRESETS, key=lambda name: (int(PRESETS[name].values["params"]), name)):
        values = PRESETS[name].values
        alike.setdefault(f"{values['family']} {sorted(values)}", []).append(name)
    return [name for found in alike.values() for name in dict.fromkeys((found[0], found[-1]))]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return make_catalog([Offer(H100X8, "us-east-1", "55")])


def job_of(name: str) -> dict[str, Any]:
    values = PRESETS[name].values
    amount = {"tokens": 1e9} if values["family"] == "transformer" else {"samples": 1_000_000}
    nodes = 4 if int(values["params"]) < 20e9 else 16 if int(values["params"]) < 200e9 else 128
    return {
        "version": 1, "name": "test", "model": {"preset": name.upper()},
        "training": {**amount, "global_batch": 512}, "data": {"size": "20GB"},
        "constraints": {"max_nodes": nodes, "obtainable": OBTAINABLE},
    }  # fmt: skip


def test_every_listed_preset_can_be_estimated(catalog: Catalog) -> None:
    for name in PRESETS:
        job = job_of(name)
        given = loaded(job)
        context = prepare(given, given.workload, catalog, Options(NOW))
        assert context.asked.job.model.params == float(PRESETS[name].values["params"]), name
        shape = estimate_all(context.asked, context.market, [job["constraints"]["max_nodes"]]).row(0)
        assert shape["fits"] and 0.0 < shape["mfu"] < 0.8, (name, shape["reason"])


@pytest.mark.parametrize("name", ends())
def test_a_listed_preset_is_planned(catalog: Catalog, name: str) -> None:
    plan = bought_on(catalog, job_of(name)).plan
    assert plan.status == "planned", plan.filters
    assert plan.performance is not None and plan.performance.mfu is not None
    assert 0.0 < plan.performance.mfu < 0.8
