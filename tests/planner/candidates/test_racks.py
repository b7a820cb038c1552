"""GB200 racks: bought in whole units, linked across machines, and refused by the judge where a unit is broken."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalogs.offers.racks import load_racks, with_racks
from catalogs.store.load import load_catalog
from catalogs.tables.columns import column_names, with_later_columns
from planner.judge.goods import Goods
from planner.judge.purchases import fault_of
from planner.performance.layouts import explicit
from planner.performance.search import estimate_layouts
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
from tests.planner.performance.test_performance import A100, machines
from tests.planner.spine_catalogs import A10G, Machine, Offer, bundled_tariffs, make_catalog, plan_on, work

NAN = float("nan")
TRAY = Machine(
    "aws", "p6e-gb200.36xlarge", "p6e-gb200", "gb200-186gb", 4.0, 185.0, 144.0, 960.0, arch="arm64",
    intra_node="nvswitch", intra_node_gb_per_s=1800.0, link_domain_accelerators=72.0, allocation_unit=9.0,
    internode_gbps=1600.0, rdma="efa",
)  # fmt: skip
TRAINING = {"samples": 50_000_000, "global_batch": 2304, "sequence_length": 512, "precision": "bf16"}
JOB = work(constraints={"include_arm64": True, "max_nodes": 40}, training=TRAINING)


def test_racks_are_bought_in_whole_units() -> None:
    answer = plan_on(make_catalog([Offer(TRAY, "us-east-1", "42.328", "capacity_block")]), JOB)
    assert answer.found is not None
    made = answer.found.candidates
    assert set(made.nodes[made.bits == 0].tolist()) <= {9, 18, 27, 36}
    assert answer.plan.lines[0].nodes == 9
    assert any(
        "72 accelerators (18 machines)" in text and "units of 9" in text for text in answer.plan.warnings
    )


@pytest.mark.parametrize(
    ("limits", "option", "found"),
    [
        ({}, "capacity_block", False),
        ({"accelerators": {"allow": ["gb200*"]}}, "capacity_block", True),
        ({"instance_types": {"allow": ["p6e-*"]}}, "capacity_block", True),
        ({"accelerators": {"allow": ["*"]}}, "capacity_block", False),  # names machines with other hosts too
        ({}, "owned", True),
    ],
)
def test_machines_that_are_named_or_owned_may_have_arm64_hosts(
    limits: dict[str, Any], option: str, found: bool
) -> None:
    offers = [Offer(TRAY, "us-east-1", "1", option), Offer(A10G, "us-east-1", "900")]
    plan = plan_on(
        make_catalog(offers), work(constraints={"max_nodes": 40, **limits}, training=TRAINING)
    ).plan
    assert any(line.instance_type == TRAY.instance_type for line in plan.lines) == found


def test_a_block_that_is_paid_for_may_have_arm64_hosts() -> None:
    paid = {"provider": "aws", "region": "us-east-1", "instance_type": TRAY.instance_type,
            "purchase_option": "capacity_block", "nodes": 9}  # fmt: skip
    offers = [Offer(TRAY, "us-east-1", "1", "capacity_block"), Offer(A10G, "us-east-1", "900")]
    job = work(constraints={"max_nodes": 40}, training=TRAINING) | {"commitments": [paid]}
    (line,) = plan_on(make_catalog(offers), job).plan.lines
    assert (line.instance_type, line.option_variant) == (TRAY.instance_type, "already_owned")


def test_machines_that_the_user_has_are_there_one_by_one() -> None:
    plan = plan_on(make_catalog([Offer(TRAY, "us-east-1", "42.328", "owned", capacity=2.0)]), JOB).plan
    assert plan.status == "planned"
    assert plan.lines[0].nodes <= 2


@pytest.mark.parametrize(("nodes", "sold"), [(9, True), (18, True), (10, False)])
def test_the_judge_refuses_a_part_of_a_unit(nodes: int, sold: bool) -> None:
    catalog = make_catalog([Offer(TRAY, "us-east-1", "42.328", "capacity_block")])
    goods = Goods(catalog, None, bundled_tariffs(), Path(), date(2026, 11, 20))
    buy = goods.offer("$", "aws/us-east-1/-/p6e-gb200.36xlarge/capacity_block/-"), nodes
    if sold:
        assert not fault_of([buy], in_turn=False)
    else:
        assert "units of 9" in fault_of([buy], in_turn=False)


def test_the_fast_link_reaches_across_the_machines_of_a_rack() -> None:
    """Tensor parallelism over eight accelerators: over two machines of a rack as fast as inside one machine."""
    model = ModelSpec(
        "dense", ModelFamily.TRANSFORMER, 8e9, layers=32, hidden=4096, heads=32, kv_heads=8, vocab=32000
    )
    training = TrainingSpec(64, 4096, "bf16")
    rows: list[dict[str, Any]] = [
        {**A100, "accelerator_count": count, "link_domain_accelerators": domain}
        for count, domain in ((8.0, NAN), (4.0, 72.0), (4.0, NAN))
    ]

    def step_s(at: int, tp: int) -> dict[str, Any]:
        count = rows[at]["accelerator_count"]
        layout = explicit(count, training, 32, 1, [{"nodes": int(16 / count), "tp": tp}])
        return estimate_layouts(model, training, machines(rows[at]), layout).row(0)

    inside, rack, apart = (step_s(at, 8) for at in range(3))
    assert rack["tp_comm_s"] == pytest.approx(inside["tp_comm_s"])
    assert apart["tp_comm_s"] > 1.3 * rack["tp_comm_s"]
    assert step_s(1, 4)["dp_comm_s"] < step_s(2, 4)["dp_comm_s"]


def test_racks_expose_more_of_their_traffic_than_a_machine_alone() -> None:
    """As measured on GB200 and GB300: computation hides less of what goes over the link of a rack."""
    model = ModelSpec(
        "dense", ModelFamily.TRANSFORMER, 8e9, layers=32, hidden=4096, heads=32, kv_heads=8, vocab=32000
    )
    training = TrainingSpec(64, 4096, "bf16")
    layouts = explicit(4.0, training, 32, 1, [{"nodes": 1, "tp": 1, "zero": 3}])
    alone, rack = (
        estimate_layouts(
            model,
            training,
            machines({**A100, "accelerator_count": 4.0, "link_domain_accelerators": joined}),
            layouts,
        ).row(0)
        for joined in (NAN, 72.0)
    )
    exposed = rack["dp_comm_s"] - alone["dp_comm_s"]
    assert rack["dp_comm_s"] > 2.0 * alone["dp_comm_s"] > 0.0
    assert rack["step_time_s"] - alone["step_time_s"] == pytest.approx(exposed)


def test_tables_of_racks_reach_fetched_machines_and_old_files() -> None:
    rows = [
        {"provider": "gcp", "instance_type": "a4x-highgpu-4g", "allocation_unit": ""},
        {"provider": "gcp", "instance_type": "a4-highgpu-8g"},
        {"provider": "aws", "instance_type": "p6e-gb200.36xlarge", "allocation_unit": "18"},
    ]
    fetched = with_racks(rows)
    assert [row.get("allocation_unit") for row in fetched] == ["18", None, "18"]
    assert all(rack.source and rack.as_of for rack in load_racks())
    names = list(column_names("instance_types"))
    later = {"link_domain_accelerators", "allocation_unit"}
    old = [name for name in names if name not in later]
    filled = with_later_columns("instance_types", [old, [f"of {name}" for name in old]])
    assert filled == [names, ["" if name in later else f"of {name}" for name in names]]
    broken = [[name for name in old if name != "rdma"], []]
    assert with_later_columns("instance_types", copy.deepcopy(broken)) == broken


def test_the_bundled_racks_are_sold_by_the_machine_of_four() -> None:
    catalog = load_catalog()
    types = catalog.instance_types
    racks = types.take(types.number("link_domain_accelerators") > 0)
    assert racks.n_rows >= 5
    assert (racks["link_domain_accelerators"] == 72).all()
    rows = catalog.offers.equals("instance_type", "p6e-gb200.36xlarge")
    assert catalog.offers.take(rows)["price_per_hour"].tolist() == ["42.328"]
    assert np.unique(racks["accelerator_count"]).tolist() == [4.0]
