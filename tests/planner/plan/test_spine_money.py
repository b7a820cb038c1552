"""Money as the user pays it: commitments, blocks, granularity, currencies, overlays, own machines, months."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from planner.asked.assumptions import load_assumptions
from planner.plan.model import Plan
from tests.planner.spine_catalogs import (
    A10,
    A10G,
    A100X8,
    L4,
    NAN,
    NOW,
    V100,
    Machine,
    Offer,
    bundled_tariffs,
    chosen,
    make_catalog,
    plan_on,
    work,
)

RESERVED = Offer(A10G, "us-east-1", "0.002", "reserved_1y", term_hours=8760.0)
DEAR = Offer(A10G, "us-east-1", "99")


def of_kind(plan: Plan, kind: str) -> list[Any]:
    return [cost for line in plan.lines for cost in line.costs if cost.kind == kind]


def one(plan: Plan, kind: str = "compute") -> Any:
    (cost,) = of_kind(plan, kind)
    return cost


def cash(plan: Plan) -> Decimal:
    return sum((month.amount_usd for month in plan.cash), Decimal(0))


def days(samples: float, **changes: Any) -> dict[str, Any]:
    training = {"samples": int(samples), "global_batch": 256, "sequence_length": 128, "precision": "fp16"}
    return work(training=training, **changes)


def test_a_new_commitment_is_billed_for_its_whole_term() -> None:
    plan = plan_on(make_catalog([RESERVED, DEAR]), work(constraints={"max_nodes": 1})).plan
    assert plan.lines[0].billed_hours == 8760
    assert one(plan).amount_usd == Decimal("0.002") * 8760
    assert cash(plan) == plan.total_usd
    assert len(plan.cash) >= 12  # paid month by month over the year


def test_an_upfront_part_is_paid_at_the_start() -> None:
    offer = replace(RESERVED, option_variant="standard.partial_upfront", upfront_per_instance="5")
    plan = plan_on(make_catalog([offer, DEAR]), work(constraints={"max_nodes": 1})).plan
    assert one(plan, "upfront").amount_usd == 5
    assert plan.cash[0].month == "2026-11"
    assert plan.cash[0].amount_usd >= 5
    all_upfront = replace(RESERVED, option_variant="standard.all_upfront")
    paid = plan_on(make_catalog([all_upfront, DEAR]), work(constraints={"max_nodes": 1})).plan
    assert [month.month for month in paid.cash] == ["2026-11"]


def test_the_declared_share_of_a_commitment_is_the_cost_and_the_whole_is_the_cash() -> None:
    job = work(constraints={"max_nodes": 1}, prices={"commitment_share": 0.25})
    plan = plan_on(make_catalog([RESERVED, DEAR]), job).plan
    assert one(plan).amount_usd == Decimal("0.002") * 8760 / 4
    assert cash(plan) > plan.total_usd
    assert cash(plan) - plan.total_usd == pytest.approx(Decimal("0.002") * 8760 * Decimal("0.75"))


def test_the_budget_is_tested_against_the_whole_obligation() -> None:
    catalog = make_catalog([RESERVED, DEAR])
    share = {"commitment_share": 0.25}
    assert plan_on(catalog, work(constraints={"budget_usd": 17}, prices=share)).plan.status == "infeasible"
    assert plan_on(catalog, work(constraints={"budget_usd": 18}, prices=share)).plan.status == "planned"


def owning(nodes: int, **changes: Any) -> dict[str, Any]:
    return {
        "provider": "aws", "region": "us-east-1", "instance_type": "g5.2xlarge", "purchase_option": "reserved_1y",
        "nodes": nodes, **changes,
    }  # fmt: skip


def test_an_owned_commitment_costs_nothing_more() -> None:
    plan = plan_on(make_catalog([DEAR]), work(commitments=[owning(3)])).plan
    assert plan.lines[0].option_variant == "already_owned"
    assert one(plan).amount_usd == 0
    assert plan.lines[0].nodes <= 3
    assert plan.total_usd < 1  # storage only


@pytest.mark.parametrize(("commitment", "most"), [(owning(2), 2), (owning(5, share=0.5), 2), (owning(1), 1)])
def test_an_owned_commitment_ends_at_its_capacity(commitment: dict[str, Any], most: int) -> None:
    job = work(commitments=[commitment], preferences={"objective": "time"})
    owned = plan_on(make_catalog([replace(DEAR, region="eu-west-1"), DEAR]), job).found
    assert owned is not None
    hours = {"deadline": "2h"}
    tight = plan_on(make_catalog([DEAR]), work(commitments=[commitment], constraints=hours)).plan
    assert all(line.option_variant != "already_owned" or line.nodes <= most for line in tight.lines)
    free = plan_on(make_catalog([DEAR]), work(commitments=[commitment])).plan
    assert free.lines[0].nodes <= most


def test_owning_what_is_too_small_is_topped_up() -> None:
    job = work(commitments=[owning(1)], constraints={"deadline": "6h", "deadline_confidence": 0.5})
    plan = plan_on(make_catalog([DEAR]), job).plan
    nodes = {line.option_variant: line.nodes for line in plan.lines}
    assert nodes["already_owned"] == 1 and nodes[""] >= 1


@pytest.mark.parametrize("samples", [10e6, 18e6, 45e6, 700e6, 1000e6])
def test_capacity_blocks_are_bought_whole(samples: float) -> None:
    """Whole days up to two weeks, then whole weeks: the shortest block for the hours in use; slow runs buy more."""
    block = Offer(A10G, "us-east-1", "0.5", "capacity_block")
    plan = plan_on(make_catalog([block]), days(samples, constraints={"max_nodes": 1})).plan
    lengths = [24 * day for day in range(1, 15)] + [168 * week for week in range(3, 27)]
    in_use = sum(part.hours for part in plan.timeline if part.id not in ("data_staging", "provisioning"))
    block_hours = next(length for length in lengths if length >= in_use)
    billed = plan.lines[0].billed_hours
    assert in_use <= block_hours <= billed
    assert one(plan).amount_usd == Decimal("0.5") * billed
    # a slow run buys the next length: the mean over equally likely speeds
    speed = plan.performance
    assert speed is not None
    steps = math.log(speed.throughput_high_per_s / speed.throughput_low_per_s) / 2 / NormalDist().inv_cdf(0.9)
    sigma = math.hypot(steps, load_assumptions().whole_run_log_sd)
    course = ("training_steps", "evaluation", "beside_steps", "checkpoints", "interruptions")
    work = sum(part.hours for part in plan.timeline if part.id in course)
    runs = [
        in_use - work + work * math.exp(sigma * NormalDist().inv_cdf((at + 0.5) / 4000)) for at in range(4000)
    ]
    mean = sum(next(length for length in lengths if length >= max(run, in_use)) for run in runs) / len(runs)
    assert float(billed) == pytest.approx(mean, rel=0.01)
    told = [text for text in plan.warnings if "outlives its block" in text]
    assert bool(told) == (billed - block_hours > Decimal("0.05"))
    for text in told:  # how likely that is, and a block that holds nine runs in ten
        late = sum(run > block_hours for run in runs) / len(runs)
        found = re.match(r"the run outlives its block of ([\d,]+) h with (\d+) %", text)
        assert found and int(found[1].replace(",", "")) == block_hours
        assert int(found[2]) / 100 == pytest.approx(late, abs=0.01)
        enough = next(length for length in lengths if sum(run <= length for run in runs) >= 0.9 * len(runs))
        priced = re.search(r"; ([\d,]+) h, for \$([\d,]+) more on average, would hold 90 % of runs", text)
        assert (
            ("would hold" in text) == (priced is not None) == (enough > block_hours)
        )  # what is bought is no remedy
        if priced is not None:
            most = sum(
                next(length for length in lengths if length >= max(run, enough)) for run in runs
            ) / len(runs)
            assert int(priced[1].replace(",", "")) == enough
            assert int(priced[2].replace(",", "")) == pytest.approx(0.5 * (most - float(billed)), rel=0.06)


def test_a_block_that_is_owned_costs_nothing_and_is_not_to_be_extended() -> None:
    block = Offer(A10G, "us-east-1", "0.5", "capacity_block")
    owned = [owning(1, purchase_option="capacity_block")]
    plan = plan_on(make_catalog([block]), days(30e6, constraints={"max_nodes": 1}, commitments=owned)).plan
    assert plan.lines[0].option_variant == "already_owned" and one(plan).amount_usd == 0
    assert not any("outlives its block" in text for text in plan.warnings)


def test_no_capacity_block_is_longer_than_the_longest() -> None:
    block = Offer(A10G, "us-east-1", "0.5", "capacity_block")
    plan = plan_on(make_catalog([block]), days(10_000e6, constraints={"max_nodes": 1})).plan
    assert plan.status == "infeasible"
    assert "term" in {count.name for count in plan.filters}


def test_flex_start_ends_after_its_longest_run() -> None:
    flex = Offer(L4, "us-central1", "0.3", "flex_start")
    short = plan_on(make_catalog([flex]), days(100e6, constraints={"max_nodes": 1})).plan
    assert short.status == "planned"
    assert short.lines[0].billed_hours < 168
    plan = plan_on(make_catalog([flex]), days(400e6, constraints={"max_nodes": 1})).plan
    assert plan.status == "infeasible"
    assert "term" in {count.name for count in plan.filters}


def test_an_instance_limit_of_a_purchase_holds() -> None:
    block = Offer(replace(A10G, internode_gbps=400.0), "us-east-1", "0.5", "capacity_block")
    plan = plan_on(
        make_catalog([block]), days(9_000e6, constraints={"max_nodes": 128, "deadline": "40h"})
    ).plan
    assert all(line.nodes <= 64 for line in plan.lines)


def test_seconds_and_hours_are_billed_as_each_provider_does() -> None:
    elsewhere = Machine("small-cloud", "gpu-1", "gpu", "a10g-24gb-pcie")
    by_second = plan_on(
        make_catalog([Offer(A10G, "us-east-1", "1")]), work(constraints={"max_nodes": 1})
    ).plan
    by_hour = plan_on(make_catalog([Offer(elsewhere, "x-1", "1")]), work(constraints={"max_nodes": 1})).plan
    assert by_second.hours == by_hour.hours
    seconds = by_second.lines[0].billed_hours * 3600
    assert abs(seconds - round(seconds)) < Decimal("1e-5")
    assert by_second.lines[0].billed_hours != round(by_second.lines[0].billed_hours)
    assert by_hour.lines[0].billed_hours == math.ceil(by_second.lines[0].billed_hours)


def test_yuan_prices_carry_their_rate_and_the_system_disk_its_own_line() -> None:
    offer = Offer(A10, "ap-southeast-1", "10.5", currency="CNY", flags="system_disk_separate")
    line = plan_on(make_catalog([offer]), work(constraints={"max_nodes": 1})).plan.lines[0]
    rate = bundled_tariffs().usd_per("CNY", NOW.date()).rate
    assert Decimal("0.1") < rate < Decimal("0.2")
    assert (line.currency, line.price_per_hour, line.usd_per_currency) == ("CNY", Decimal("10.5"), rate)
    kinds = {cost.kind: cost for cost in line.costs}
    assert kinds["compute"].amount_usd == pytest.approx(kinds["compute"].quantity * Decimal("10.5") * rate)
    assert kinds["system_disk"].amount_usd > 0
    assert kinds["system_disk"].quantity == kinds["compute"].quantity
    without = plan_on(make_catalog([replace(offer, flags="system_disk_included")]), work()).plan
    assert not of_kind(without, "system_disk")


@pytest.mark.parametrize(
    ("change", "price"), [("-12%", "0.88"), ("+0.40", "1.4"), ("-0.25", "0.75"), ("3.20", "3.20")]
)
def test_overlays_change_the_price_that_is_paid(change: str, price: str) -> None:
    overlay = {"provider": "aws", "family": "g5", "change": change, "note": "agreement"}
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.00"), Offer(V100, "us-east-1", "50")])
    plan = plan_on(catalog, work(prices={"overlays": [overlay]})).plan
    assert plan.lines[0].price_per_hour == Decimal(price)
    assert one(plan).unit_price == Decimal(price)
    assert "overlay" in plan.lines[0].flags
    assert any(item.key == "prices.overlays" and "agreement" in item.value for item in plan.assumptions)
    assert not any("overlay" in warning for warning in plan.warnings)


def test_an_overlay_that_matches_nothing_is_told(tmp_path: Path) -> None:
    overlay = {"provider": "aws", "family": "p9", "change": "-12%"}
    plan = plan_on(
        make_catalog([Offer(A10G, "us-east-1", "1.00")]), work(prices={"overlays": [overlay]})
    ).plan
    assert "matches no offer" in " ".join(plan.warnings)


OWN = """
version: 1
machines:
  - instance_type: desk
    provider: onprem
    region: onprem
    accelerator: a10g-24gb-pcie
    accelerator_count: 1
    accelerator_memory_gib: 22.5
    vcpus: 16
    memory_gib: 64
    intra_node: single
    nodes: 2
    price_per_hour: 0.05
    currency: USD
    purchase_option: owned
"""


def test_own_machines_compete_and_end_at_their_number(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.00")])
    job = work(prices={"offers": ["own.yaml"]}, data={"size": "20GB", "location": "onprem"})
    plan = plan_on(catalog, job, folder=tmp_path).plan
    assert chosen(plan_on(catalog, job, folder=tmp_path)) == [("onprem/onprem/-/desk/owned/-", 1)]
    assert plan.lines[0].price_basis == "declared"
    assert any(other.provider == "aws" for other in plan.alternatives)
    hurry = {**job, "constraints": {"max_nodes": 8, "deadline": "7h", "deadline_confidence": 0.5}}
    assert plan_on(catalog, hurry, folder=tmp_path).plan.lines[0].provider == "aws"


PAID = OWN.replace(
    "    price_per_hour: 0.05\n",
    "    purchase_price_usd: 8760\n    lifetime_years: 1\n    power_kw: 0.2\n    usd_per_kwh: 0.25\n"
    "    hosting_usd_per_month: 36.5\n",
)  # an hour: power 0.05, hosting 0.05, purchase 1 USD


def own_plan(folder: Path, text: str, **limits: Any) -> Plan:
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    job = work(
        prices={"offers": ["own.yaml"]}, data={"size": "20GB", "location": "onprem"},
        constraints={"max_nodes": 1, "providers": ["onprem"], **limits},
    )  # fmt: skip
    return plan_on(make_catalog([Offer(A10G, "us-east-1", "9")]), job, folder=folder).plan


def test_a_machine_that_is_paid_costs_power_and_hosting_and_owes_no_more(tmp_path: Path) -> None:
    plan = own_plan(tmp_path, PAID)
    compute = one(plan)
    assert (compute.unit_price, plan.lines[0].option_variant) == (Decimal("0.1"), "marginal")
    assert cash(plan) == plan.total_usd
    assert (plan.lines[0].marginal_usd_per_hour, plan.lines[0].full_usd_per_hour) == (
        Decimal("0.1"),
        Decimal("1.1"),
    )


def test_at_full_cost_the_purchase_counts_and_never_falls_due(tmp_path: Path) -> None:
    marginal, full = (own_plan(tmp_path, PAID + extra) for extra in ("", "    cost_basis: full\n"))
    hours = one(full).quantity
    assert one(full).unit_price == Decimal("1.1")
    assert full.total_usd - marginal.total_usd == hours
    assert cash(full) == cash(marginal) == marginal.total_usd
    between = (full.total_usd + marginal.total_usd) / 2
    kept = own_plan(tmp_path, PAID + "    cost_basis: full\n", budget_usd=float(between))
    assert (kept.status, kept.total_usd) == ("planned", full.total_usd)


def test_both_costs_of_own_machines_are_shown_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(PAID, encoding="utf-8")
    sections = {"prices": {"offers": ["own.yaml"]}, "data": {"size": "20GB", "location": "onprem"}}
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "0.01")]), work(**sections), folder=tmp_path).plan
    own = next(item for item in plan.alternatives if item.provider == "onprem")
    other = next(
        item for item in (*plan.alternatives, plan.savings.baseline) if item and item.provider == "aws"
    )
    assert own.marginal_cost_usd == own.cost_usd
    assert own.full_cost_usd is not None and own.full_cost_usd > own.marginal_cost_usd
    assert (other.marginal_cost_usd, other.full_cost_usd) == (None, None)


def test_a_price_of_ones_own_is_due_as_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(PAID + "    cost_basis: full\n", encoding="utf-8")
    overlay = {"provider": "onprem", "change": "3.00"}
    job = work(
        prices={"offers": ["own.yaml"], "overlays": [overlay]},
        constraints={"max_nodes": 1, "providers": ["onprem"]},
    )
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "9")]), job, folder=tmp_path).plan
    assert plan.lines[0].marginal_usd_per_hour is None
    assert cash(plan) == plan.total_usd


def test_savings_are_counted_from_the_cheapest_on_demand_plan_or_the_users_cluster() -> None:
    catalog = make_catalog(
        [
            Offer(A10G, "us-east-1", "0.3", "spot"),
            Offer(A10G, "us-east-1", "1.0"),
            Offer(V100, "us-east-1", "7.0"),
        ]
    )
    plan = plan_on(catalog, work()).plan
    assert plan.savings is not None
    assert plan.savings.baseline is not None
    assert plan.lines[0].purchase_option == "spot"
    assert plan.savings.baseline.purchase_option == "on_demand"
    assert plan.savings.saved_usd == plan.savings.baseline.cost_usd - plan.total_usd
    present = {"provider": "aws", "region": "us-east-1", "instance_type": "p3.2xlarge", "nodes": 2}
    with_own = plan_on(catalog, work(baseline=present)).plan.savings
    assert with_own is not None
    assert with_own.baseline is not None
    assert (with_own.baseline.instance_type, with_own.baseline.nodes) == ("p3.2xlarge", 2)
    at_price = plan_on(catalog, work(baseline={**present, "price_per_hour_usd": 14})).plan.savings
    assert at_price is not None
    assert at_price.baseline is not None
    assert float(at_price.baseline.cost_usd) == pytest.approx(2 * float(with_own.baseline.cost_usd), rel=1e-3)


def test_there_is_no_baseline_where_nothing_on_demand_fits() -> None:
    catalog = make_catalog([Offer(A10G, "us-east-1", "0.3", "spot"), DEAR])
    savings = plan_on(catalog, work(constraints={"budget_usd": 30})).plan.savings
    assert savings is not None
    assert savings.baseline is None
    assert "no on-demand" in savings.note


def test_known_and_unknown_transfer_prices() -> None:
    job = work(data={"size": "500GB", "location": "aws/us-east-1"})
    here = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.0")]), job).plan
    assert not of_kind(here, "data_transfer")
    away = plan_on(
        make_catalog([Offer(A10G, "eu-west-1", "1.0")]),
        {**job, "constraints": {"max_nodes": 8}},
    )
    assert away.plan.status == "planned"
    moved = of_kind(away.plan, "data_transfer")
    assert sum(cost.quantity for cost in moved) == pytest.approx(Decimal(500), rel=Decimal("0.1"))
    assert all(cost.unit_price > 0 for cost in moved)


def test_an_unknown_interruption_rate_is_pessimistic_and_the_spread_of_a_band_matters() -> None:
    cautious = replace(A100X8, family="unheard-of")
    unknown = Offer(cautious, "us-east-1", "1.0", "spot", capacity=NAN)
    low = replace(unknown, interruption_band="<5%")
    worst = plan_on(make_catalog([unknown]), work(constraints={"max_nodes": 1})).plan
    best = plan_on(make_catalog([low]), work(constraints={"max_nodes": 1})).plan
    assert worst.risk is not None
    assert best.risk is not None
    assert worst.risk.expected_interruptions > best.risk.expected_interruptions > 0
    assert "prior" in worst.risk.basis
    assert worst.hours > best.hours
