"""What the plan says of names in `allow` and `deny`: what they stand for, and what of it has no price."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.spine_catalogs import A10G, L4, Offer, make_catalog, plan_on, work

OFFERS = [Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "1.0")]


def test_a_short_name_says_what_it_stands_for() -> None:
    limits = {"accelerators": {"allow": ["A10G", "l4-*", "l4-24gb-pcie", "L4"], "deny": ["T4"]}}
    machines = [replace(L4, instance_type="other", accelerator="t4-16gb-pcie")]
    plan = plan_on(make_catalog(OFFERS, machines), work(constraints=limits)).plan
    said = [text for text in plan.warnings if "stands for" in text]
    assert said == [
        "accelerators.allow: A10G stands for a10g-24gb-pcie; L4 stands for l4-24gb-pcie",
        "accelerators.deny: T4 stands for t4-16gb-pcie",
    ]


def test_a_machine_without_a_price_where_it_is_asked_for_is_named() -> None:
    unsold = replace(A10G, instance_type="g5.4xlarge")
    catalog = make_catalog(OFFERS, [unsold])
    asked = work(
        constraints={"instance_types": {"allow": ["g5.*", "g2-standard-8"]}, "regions": ["us-central*"]}
    )
    warnings = plan_on(catalog, asked).plan.warnings
    assert "no price in the requested regions, so not considered: g5.2xlarge, g5.4xlarge" in warnings
    anywhere = plan_on(catalog, work(constraints={"instance_types": {"allow": ["g5.*"]}})).plan.warnings
    assert "no price, so not considered: g5.4xlarge" in anywhere
    assert not any("no price" in text for text in plan_on(catalog, work()).plan.warnings)
