"""Contracts drawn down, their ends, and capacity reservations with their use."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

OCTOBER = date(2026, 10, 1)
CONTRACTS = [
    {"ContractCommitmentId": "edp", "ContractCommitmentCategory": "Spend", "ContractCommitmentDescription": "EDP 2026",
     "ContractCommitmentType": "EDP", "ContractCommitmentPeriodStart": "2026-09-01T00:00:00Z",
     "ContractCommitmentPeriodEnd": "2027-09-01T00:00:00Z", "ContractCommitmentCost": "36500"},
    {"ContractCommitmentId": "old", "ContractCommitmentCategory": "Spend", "ContractCommitmentDescription": "MACC",
     "ContractCommitmentType": "MACC", "ContractCommitmentPeriodStart": "2025-01-01T00:00:00Z",
     "ContractCommitmentPeriodEnd": "2027-01-01T00:00:00Z", "ContractCommitmentCost": "1000"},
    {"ContractCommitmentId": "ri", "ContractCommitmentCategory": "Usage", "ContractCommitmentDescription": "RI",
     "ContractCommitmentType": "Reserved Instance", "ContractCommitmentPeriodStart": "2026-01-01T00:00:00Z",
     "ContractCommitmentPeriodEnd": "2026-11-15T00:00:00Z", "ContractCommitmentCost": "500"},
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Review:
    """50 a day applied to the contract since it began: half of its pace."""
    folder = tmp_path_factory.mktemp("contracts")
    applied = json.dumps({"Elements": [{"ContractCommitmentId": "edp", "ContractCommitmentAppliedCost": 50}]})
    rows = each_day(date(2026, 9, 1), date(2026, 10, 31), 50, ContractApplied=applied)
    rows += [
        charge(OCTOBER, 30, CapacityReservationId="cr-1", CapacityReservationStatus="Used"),
        charge(OCTOBER, 10, CapacityReservationId="cr-1", CapacityReservationStatus="Unused"),
    ]
    bill = write_bill(folder / "bill.csv", rows)
    with (folder / "contracts.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, [*CONTRACTS[0], "ContractId", "BillingCurrency"])
        out.writeheader()
        out.writerows([row | {"ContractId": "k", "BillingCurrency": "USD"} for row in CONTRACTS])
    with open_bill([bill, folder / "contracts.csv"]) as opened:
        return review_bill(opened, month=OCTOBER, forecast=False)


def test_what_charges_do_not_say_is_not_nothing_drawn(tmp_path: Path) -> None:
    """Charges that name the contract and no amount: it said "0.0 % of 36,500 USD is drawn", 36,500 not drawn."""
    applied = json.dumps(
        {"Elements": [{"ContractCommitmentId": "edp", "ContractCommitmentAppliedUnit": "Hours"}]}
    )
    rows = each_day(date(2026, 9, 1), date(2026, 10, 31), 50, ContractApplied=applied)
    path = tmp_path / "contracts.csv"
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, [*CONTRACTS[0], "ContractId", "BillingCurrency"])
        out.writeheader()
        out.writerow(CONTRACTS[0] | {"ContractId": "k", "BillingCurrency": "USD"})
    with open_bill([write_bill(tmp_path / "bill.csv", rows), path]) as opened:
        shown = review_bill(opened, month=OCTOBER, forecast=False)
    (edp,) = rows_of(shown, "contracts", "contracts")
    assert [edp[name] for name in ("drawn", "drawn_ratio", "month", "landing")] == [None] * 4
    assert "ContractCommitmentAppliedCost" in edp["remark"]
    assert figures(shown)["contracts_gap_money"].status == "withheld"
    assert "how much of 36,500 USD is drawn is not known" in section(shown, "contracts").sentences[0]


def test_a_spend_commitment_is_drawn_down(made: Review) -> None:
    rows = {row["id"]: row for row in rows_of(made, "contracts", "contracts")}
    edp = rows["edp"]
    assert (edp["drawn"], edp["month"], edp["end"]) == (61 * 50, 31 * 50, "2027-09-01")
    assert edp["elapsed_ratio"] == pytest.approx(61 / 365)
    assert edp["landing"] == pytest.approx(365 * 50)
    assert figures(made)["contracts_gap_money"].value == pytest.approx(36500 - 18250)
    assert "18,250 USD is not drawn by 2027-09-01" in " ".join(section(made, "contracts").sentences)


def test_a_contract_older_than_the_bill_has_no_pace(made: Review) -> None:
    rows = {row["id"]: row for row in rows_of(made, "contracts", "contracts")}
    assert rows["old"]["landing"] is None and "drawn before is not known" in rows["old"]["remark"]


def test_ends_are_a_calendar(made: Review) -> None:
    rows = rows_of(made, "contracts", "contract_ends")
    assert [(row["end"], row["days"]) for row in rows] == [
        ("2026-11-15", 14),
        ("2027-01-01", 61),
        ("2027-09-01", 304),
    ]


def test_contracts_of_one_description_are_told_apart(tmp_path: Path) -> None:
    """Savings plans of one kind were two equal sentences and rows."""
    applied = [
        {"ContractCommitmentId": f"arn:sp/{at}", "ContractCommitmentAppliedCost": 5} for at in range(2)
    ]
    rows = each_day(
        date(2026, 9, 1), date(2026, 10, 31), 50, ContractApplied=json.dumps({"Elements": applied})
    )
    path = tmp_path / "contracts.csv"
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, [*CONTRACTS[0], "ContractId", "BillingCurrency"])
        out.writeheader()
        out.writerow(CONTRACTS[1] | {"ContractId": "k", "BillingCurrency": "USD"})
        for at in range(2):
            own = {"ContractId": "k", "BillingCurrency": "USD", "ContractCommitmentId": f"arn:sp/{at}"}
            out.writerow(CONTRACTS[0] | own)
    with open_bill([write_bill(tmp_path / "bill.csv", rows), path]) as opened:
        shown = review_bill(opened, month=OCTOBER, forecast=False)
    said = section(shown, "contracts").sentences
    assert [one.partition(":")[0] for one in said[:2]] == ["EDP 2026 (0)", "EDP 2026 (1)"]
    names = {
        str(row["name"]) for key in ("contracts", "contract_ends") for row in rows_of(shown, "contracts", key)
    }
    assert names == {"EDP 2026 (0)", "EDP 2026 (1)", "MACC"}


def test_reservations_have_their_use(made: Review) -> None:
    (row,) = rows_of(made, "contracts", "reservations")
    assert (row["used"], row["unused"], row["use"]) == (30, 10, 0.75)


def test_a_bill_without_them_has_no_section(tmp_path: Path) -> None:
    made = review_of(write_bill(tmp_path / "b.csv", [charge(OCTOBER, 5)]))
    assert "contracts" not in {one.key for one in made.sections}
