"""Machines that are not bought on demand: what an hour of them costs, and what the answer says of it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from planner.inputs.serving_schema import Machine
from planner.judge.serving import _price as judged_price
from planner.serving.answer import _offer_price
from tests.conftest import Run
from tests.planner.spine_catalogs import A100X8, Offer, make_catalog

TERM = {"purchase_option": "reserved_1y", "term_hours": 8760.0}
TEXT = """version: 1
kind: serving
name: small
buckets: [{name: all, requests_per_s: 10}]
machines:
  - {name: one, usd_per_hour: 2, requests_per_s: {all: 4}, purchase_option: OPTION}
"""


def test_what_is_paid_at_the_start_is_in_the_price_of_an_hour() -> None:
    """8,760 dollars at the start and 4 an hour are 5 an hour for a year: more than 4.50 without any upfront."""
    catalog = make_catalog([
        Offer(A100X8, "us-east-1", "4.00", upfront_per_instance="8760", option_variant="partial", **TERM),
        Offer(A100X8, "us-east-1", "4.50", option_variant="none", **TERM),
        Offer(A100X8, "us-west-2", "4.00", upfront_per_instance="8760", option_variant="partial", **TERM),
    ])  # fmt: skip
    for region, usd in (("us-east-1", "4.5"), ("us-west-2", "5")):
        machine = Machine(
            name="m",
            provider="aws",
            region=region,
            instance_type="p4d.24xlarge",
            purchase_option="reserved_1y",
        )
        price = _offer_price(machine, catalog, date(2026, 11, 20))
        assert price is not None and price.usd_per_hour == Decimal(usd)
        judged = judged_price(machine, catalog, date(2026, 11, 20))
        assert judged is not None and judged[0] == Fraction(usd)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("spot", "one on spot: may be taken away while it answers, and the cost holds no fall-back"),
        ("reserved_1y", "one: the whole term is owed, used or not"),
        ("capacity_block", "one: the whole term is owed, used or not"),
        ("future_reservation", "one: the whole term is owed, used or not"),
        ("on_demand", ""),
    ],
)
def test_what_follows_from_the_way_it_is_bought_is_said(
    option: str, said: str, tmp_path: Path, run_cli: Run
) -> None:
    path = tmp_path / "serving.yaml"
    path.write_text(TEXT.replace("OPTION", option))
    shown = run_cli("serving", path)
    assert ("BOUGHT" in shown.stdout) is bool(said) and said in shown.unwrapped
    answer = tmp_path / "answer.json"
    assert run_cli("serving", path, "-o", "json", "--out", answer).code == 0
    assert json.loads(answer.read_text())["machines"][0]["purchase_option"] == option
    assert run_cli("verify", answer, "--workload", path).code == 0


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("provider: aws, region: ap-east-1", "aws/ap-east-1"),
        ("provider: aws", "aws"),
        ("region: ap-east-1", "ap-east-1"),
        ("max_nodes: 9", ""),
    ],
)
def test_a_machine_with_its_own_price_keeps_its_provider(
    where: str, place: str, tmp_path: Path, run_cli: Run
) -> None:
    path, answer = tmp_path / "serving.yaml", tmp_path / "answer.json"
    path.write_text(TEXT.replace("OPTION", "spot, " + where))
    shown = run_cli("serving", path)
    assert not place or place in shown.stdout.split()
    assert ("ap-east-1 is off by default" in shown.unwrapped) is (place == "aws/ap-east-1")
    assert run_cli("serving", path, "-o", "json", "--out", answer).code == 0
    assert json.loads(answer.read_text())["machines"][0]["place"] == place
    assert run_cli("verify", answer, "--workload", path).code == 0


def test_machines_that_are_busy_alike_have_one_share(tmp_path: Path, run_cli: Run) -> None:
    """Both take all the room that they have: "85 % to 85 % busy" is no range."""
    path = tmp_path / "serving.yaml"
    path.write_text(
        "version: 1\nkind: serving\nname: two\nheadroom_ratio: 0.15\n"
        "buckets: [{name: a, requests_per_s: 8.499}, {name: b, requests_per_s: 8.4999}]\n"
        "machines:\n"
        "  - {name: x, usd_per_hour: 1, requests_per_s: {a: 10}}\n"
        "  - {name: y, usd_per_hour: 1, requests_per_s: {b: 10}}\n"
    )
    assert "  machines are 85 % busy at the rates given" in run_cli("serving", path).stdout
