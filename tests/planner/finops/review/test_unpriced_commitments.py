"""Commitments whose use has no contracted price, as Azure exports reservations (ListCost and ContractedCost 0)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import each_day, review_of, rows_of, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)


def committed(status: str, cost: float, price: float, name: str) -> list[dict[str, str]]:
    return each_day(OCTOBER, LAST, cost, BilledCost=0, ListCost=price, ContractedCost=price, CommitmentDiscountId=name,
                    CommitmentDiscountStatus=status, CommitmentDiscountType="Reservation",
                    PricingCategory="Committed")  # fmt: skip


def test_no_net_saving_is_made_up_where_the_use_has_no_price(tmp_path: Path) -> None:
    """A reservation was said to lose all that it cost, 1,240 USD."""
    rows = [
        *committed("Used", 30, 0, "unpriced"), *committed("Unused", 10, 0, "unpriced"),
        *committed("Used", 30, 50, "priced"), *committed("Unused", 10, 0, "priced"),
        *committed("Unused", 10, 0, "idle"),
    ]  # fmt: skip
    review = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("commitments",))
    net = {row["id"]: row["net"] for row in rows_of(review, "commitments", "commitments")}
    assert net["unpriced"] is None
    assert net["priced"] == pytest.approx(31 * (50 - 30 - 10))
    assert net["idle"] == pytest.approx(-31 * 10)
    table = next(one for one in review.sections[0].tables if one.key == "commitments")
    assert "Empty where the bill has no contracted prices of the use." in table.note


def test_unused_parts_of_commitments_whose_use_has_no_price_are_told(tmp_path: Path) -> None:
    """The bill was said to cost more than at contracted prices, and commitments to have lost what was not used."""
    half = "310 USD of unused commitments count as a cost, but what their use saved has no price"
    for name, price, told in (("unpriced", 0, True), ("priced", 50, False)):
        rows = [
            *each_day(OCTOBER, LAST, 500),
            *committed("Used", 30, price, "r"),
            *committed("Unused", 10, 0, "r"),
        ]
        review = review_of(write_bill(tmp_path / f"{name}.csv", rows), month=OCTOBER, only=("commitments",))
        figures = {one.key: one for one in review.sections[0].figures}
        for key in ("esr_list_ratio", "esr_contract_ratio", "savings_commitment_money"):
            assert (half in figures[key].reason) == told, key
        assert half not in figures["savings_negotiated_money"].reason
        assert (half in review.sections[0].sentences[0]) == told


def test_use_without_a_price_says_nothing_of_a_discount(tmp_path: Path) -> None:
    """Its cost was held against the prices of the rest: 40 % saved became a loss, so no saving was known."""
    rows = [
        *each_day(OCTOBER, LAST, 500),
        *committed("Used", 30, 50, "priced"),
        *committed("Used", 40, 0, "unpriced"),
    ]
    review = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("actions",))
    more = rows_of(review, "actions", "actions")[0]
    assert more["saves"] == pytest.approx(31 * 500 * 0.4)
    assert "your AWS commitments save 40 %" in more["why"]


def test_commit_more_looks_closer_at_what_the_bill_states(tmp_path: Path) -> None:
    """Only FOCUS 1.4 says what is eligible: for other bills that question shows no uncovered use at all."""
    for eligible, use_case in (("", "compute_effective"), ('{"x":1}', "commitment_opportunities")):
        rows = [*each_day(OCTOBER, LAST, 500), *committed("Used", 30, 50, "priced")]
        rows = [row | {"CommitmentProgramEligibilityDetails": eligible} for row in rows]
        path = write_bill(tmp_path / f"{use_case}.csv", rows)
        review = review_of(path, month=OCTOBER, only=("actions",))
        assert rows_of(review, "actions", "actions")[0]["command"].endswith(f"--use-case {use_case}")


def test_no_savings_rate_of_a_provider_whose_prices_are_hardly_known(tmp_path: Path) -> None:
    """Next to a large provider, one that reserves without prices was said to cost 114 % more than at list prices."""
    rows = [
        *each_day(OCTOBER, LAST, 900, ListCost=1000),
        *each_day(OCTOBER, LAST, 20, ProviderName="Microsoft", ListCost=25),
        *(row | {"ProviderName": "Microsoft"} for row in committed("Used", 40, 0, "r")),
        *(row | {"ProviderName": "Microsoft"} for row in committed("Unused", 10, 0, "r")),
    ]
    review = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("commitments",))
    found = {row["provider"]: row for row in rows_of(review, "commitments", "savings")}
    assert found["AWS"]["esr_list"] == pytest.approx(0.1)
    assert found["Microsoft"]["esr_list"] is found["Microsoft"]["esr_contract"] is None
    table = next(one for one in review.sections[0].tables if one.key == "savings")
    assert (
        table.note
        == "Empty where savings are withheld, or prices are known of less than 80 % of a provider's use cost."
    )


def test_use_that_costs_nothing_says_nothing_of_a_discount(tmp_path: Path) -> None:
    """Without EffectiveCost "your commitments save 100 %": all of the other use was to be saved."""
    rows = [
        *each_day(OCTOBER, LAST, 500),
        *committed("Used", 30, 50, "sp"),
        *committed("Unused", 10, 0, "sp"),
    ]
    path = write_bill(tmp_path / "bill.csv", rows, leave=("EffectiveCost",))
    review = review_of(path, month=OCTOBER, only=("actions", "commitments"))
    assert not [row for row in rows_of(review, "actions", "actions") if row["saves"]]
    utilisation = figures(review)["commitment_utilisation_ratio"]
    assert (
        utilisation.reason == "no charge of the month says what the used or unused part of a commitment costs"
    )
