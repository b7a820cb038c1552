"""What the plan says of names in `allow` and `deny`: what they stand for, and what of it has no price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputError
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


def test_purchase_options_that_nothing_is_priced_by_are_refused_or_named() -> None:
    catalog = make_catalog(OFFERS)
    with pytest.raises(
        InputError, match=r"purchase_options: no offers with prices for flex_start, dedicated"
    ):
        plan_on(catalog, work(constraints={"purchase_options": ["flex_start", "dedicated"]}))
    warnings = plan_on(
        catalog, work(constraints={"purchase_options": ["flex_start", "on_demand"]})
    ).plan.warnings
    assert "no price of flex_start, so not considered (planner catalog refresh)" in warnings
    named = work(
        constraints={
            "purchase_options": ["flex_start", "on_demand"],
            "instance_types": {"allow": ["g5.2xlarge"]},
        }
    )
    assert not any("unpriced" in text for text in plan_on(catalog, named).plan.warnings)  # it is said once


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"regions": ["eu-*"]},
            "regions: eu-* fits no name of gcp; residency names countries and groups of all providers",
        ),
        ({"regions": ["eu*"]}, ""),
        ({"regions": ["eu-west-1"]}, ""),  # whoever names a region has chosen a provider
        ({"regions": ["aws/eu-*"]}, ""),
        ({"regions": ["eu-*"], "providers": ["aws"]}, ""),
        ({"regions": ["eu-*"], "residency": ["eu"]}, ""),
        ({}, ""),
    ],
)
def test_providers_that_write_regions_otherwise_are_named(limits: dict[str, list[str]], said: str) -> None:
    places = [(A10G, "us-east-1"), (A10G, "eu-west-1"), (L4, "europe-west4"), (L4, "us-central1")]
    catalog = make_catalog([Offer(machine, region, "1.0") for machine, region in places])
    notes = [
        text
        for text in plan_on(catalog, work(constraints=limits)).plan.warnings
        if text.startswith("regions:")
    ]
    assert notes == ([said] if said else [])
