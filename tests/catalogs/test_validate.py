"""Validation refuses a wrong row with its place; it repairs nothing."""

from __future__ import annotations

import pytest

from catalogs.store.validate import References, validate_rows

TYPE = {
    "provider": "aws",
    "instance_type": "p4d.24xlarge",
    "family": "p4d",
    "accelerator": "a100-40gb-sxm",
    "accelerator_count": "8",
    "accelerator_memory_gib": "40",
    "arch": "x86_64",
    "intra_node": "nvswitch",
    "status": "current",
    "source": "test",
    "as_of": "2026-01",
}
OFFER = {
    "provider": "aws",
    "region": "us-east-1",
    "instance_type": "p4d.24xlarge",
    "purchase_option": "on_demand",
    "price_per_hour": "21.957642",
    "currency": "USD",
    "basis": "list",
    "source": "test",
    "as_of": "2026-01-21",
}
REFERENCES = References.of([{"accelerator": "a100-40gb-sxm"}], [TYPE], {"CNY": 0.15})


def faults_of(table: str, row: dict[str, str]) -> list[str]:
    return [str(fault) for fault in validate_rows(table, [row], REFERENCES)[1]]


def test_good_rows_pass() -> None:
    assert not faults_of("offers", OFFER)
    assert not faults_of("instance_types", TYPE)


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("price_per_hour", "", "is missing"),
        ("price_per_hour", "0", "below"),
        ("price_per_hour", "-3", "below"),
        ("price_per_hour", "nan", "not a finite number"),
        ("price_per_hour", "inf", "not a finite number"),
        ("price_per_hour", "3.06 USD", "not a finite number"),
        ("price_per_hour", "0.02", "implausible"),
        ("price_per_hour", "2195.76", "implausible"),
        ("currency", "XYZ", "no exchange rate"),
        ("currency", "", "is missing"),
        ("region", "us-east-99", "unknown region"),
        ("instance_type", "p99.large", "unknown instance type"),
        ("purchase_option", "borrowed", "not one of"),
        ("interruption_band", "often", "not one of"),
        ("as_of", "2026-04 or later", "not an ISO date"),
        ("as_of", "2026-13", "not an ISO date"),
        ("as_of", "", "is missing"),
        ("source", "", "is missing"),
        ("flags", "made_up", "unknown flag"),
        ("term_hours", "-1", "below"),
    ],
)
def test_a_wrong_cell_of_an_offer_is_named(column: str, text: str, reason: str) -> None:
    found = faults_of("offers", {**OFFER, column: text})
    assert len(found) == 1
    assert f": {column}: " in found[0]
    assert reason in found[0]
    assert found[0].startswith("offers: aws/")


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("accelerator", "a100", "unknown accelerator"),
        ("accelerator_count", "0", "below"),
        ("arch", "x86", "not one of"),
        ("intra_node", "", "is missing"),
        ("status", "gone", "not one of"),
    ],
)
def test_a_wrong_cell_of_a_type_is_named(column: str, text: str, reason: str) -> None:
    found = faults_of("instance_types", {**TYPE, column: text})
    assert len(found) == 1
    assert reason in found[0]


def test_all_faults_are_collected_and_good_rows_kept() -> None:
    bad = {**OFFER, "zone": "z", "price_per_hour": "0", "as_of": "soon"}
    kept, faults = validate_rows("offers", [OFFER, bad, OFFER], REFERENCES)
    assert kept == [OFFER]
    assert [fault.column for fault in faults] == ["price_per_hour", "as_of", ""]
    assert "is listed twice" in faults[-1].reason


def test_plausibility_is_per_accelerator_and_in_usd() -> None:
    assert not faults_of("offers", {**OFFER, "currency": "CNY", "price_per_hour": "150"})
    assert "implausible" in faults_of("offers", {**OFFER, "currency": "CNY", "price_per_hour": "2"})[0]
