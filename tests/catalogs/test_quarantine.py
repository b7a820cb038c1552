"""Quarantine: what moved too far waits for a person, whatever cloud it comes from."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from catalogs.errors import CatalogInputError
from catalogs.offers.flags import admit_offers
from catalogs.offers.suspicion import flag_suspicious
from catalogs.providers.base import FetchOptions, Provider
from catalogs.refresh.confirm import accept, quarantine
from catalogs.refresh.quarantine import set_aside
from catalogs.refresh.report import Outcome
from catalogs.refresh.run import refresh
from catalogs.store.load import load_catalog
from tests.catalogs.stored import stored
from tests.fakes.provider import FakeProvider, offer_row

OFFER = offer_row("aws", "us-east-1", "p4d.24xlarge")


def _at(price: float, **cells: str) -> dict[str, str]:
    return {**OFFER, "price_per_hour": f"{price:.6f}".rstrip("0").rstrip("."), **cells}


@pytest.mark.parametrize(
    ("option", "factor", "waits"),
    [
        ("spot", 0.5, True),
        ("spot", 0.51, False),
        ("spot", 1.99, False),
        ("spot", 2.0, True),
        ("on_demand", 0.56, True),  # p5 in 2025-06: true, and looked at all the same
        ("on_demand", 0.67, False),
        ("on_demand", 100.0, True),
    ],
)
def test_a_move_against_the_last_accepted_price_waits(option: str, factor: float, waits: bool) -> None:
    old, new = _at(10, purchase_option=option), _at(10 * factor, purchase_option=option, as_of="2026-11-22")
    (stored,), quotes = set_aside([new], [old])
    assert bool(quotes) == waits
    assert (stored["price_per_hour"], stored["as_of"]) == (
        ("10", old["as_of"]) if waits else (new["price_per_hour"], "2026-11-22")
    )
    assert ("price_kept" in stored["flags"]) == waits
    if waits:
        assert (quotes[0].accepted_price_per_hour, quotes[0].accepted_as_of) == ("10", old["as_of"])
        assert "times the last accepted price of 2026-11-20" in quotes[0].reason


def test_a_list_that_moved_together_waits_as_a_whole_also_what_is_new_in_it() -> None:
    old = [_at(10 + at, zone=f"use1-az{at}") for at in range(4)]
    new = [{**row, "price_per_hour": f"{float(row['price_per_hour']) * 0.5:g}"} for row in old]
    fresh = _at(1, region="us-west-2")
    stored, quotes = set_aside([*new, fresh], old)
    assert len(quotes) == 5 and "whole list" in quotes[-1].reason
    assert [row["flags"] for row in stored] == ["price_kept"] * 4 + ["quarantined"]


def test_derived_prices_are_no_evidence_against_quotes() -> None:
    stored, quotes = set_aside([_at(30, basis="observed")], [_at(3, basis="derived")])
    assert quotes == () and stored[0]["price_per_hour"] == "30"


def test_prices_at_the_end_of_their_source_and_far_from_neighbours_are_flagged() -> None:
    regions = ["us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-north-1"]
    listed = [_at(20, region=region) for region in regions]
    spot = [_at(8, region=region, purchase_option="spot", basis="observed") for region in regions[:3]]
    capped = _at(2, region=regions[3], purchase_option="spot", basis="derived")
    odd = _at(9.9, region=regions[4])
    flags = {
        (r["region"], r["purchase_option"]): r["flags"]
        for r in flag_suspicious([*listed[:4], odd, *spot, capped])
    }
    assert flags[regions[3], "spot"] == "at_feed_limit;far_from_neighbours"
    assert flags[regions[4], "on_demand"] == "far_from_neighbours"
    assert set(flags.values()) == {"", "at_feed_limit;far_from_neighbours", "far_from_neighbours"}


def test_the_bundled_snapshot_has_no_derived_price_at_the_end_of_its_scale_unflagged() -> None:
    offers = load_catalog().offers
    rows = [row for row in offers.rows() if row["provider"] == "aws"]
    listed = {
        (r["region"], r["instance_type"]): Decimal(r["price_per_hour"])
        for r in rows
        if r["purchase_option"] == "on_demand"
    }
    exact = [
        row
        for row in rows
        if row["purchase_option"] == "spot"
        and (base := listed.get((row["region"], row["instance_type"])))
        and abs(Decimal(row["price_per_hour"]) / base - Decimal("0.1")) < Decimal("0.00005")
    ]
    assert len(exact) == 23 and all("at_feed_limit" in row["flags"] for row in exact)
    assert (
        not admit_offers(offers, allow_flagged=False)
        .mask[[at for at, row in enumerate(offers.rows()) if "at_feed_limit" in row["flags"]]]
        .any()
    )


@pytest.mark.usefixtures("home")
def test_a_person_confirms_a_quote_and_it_stays_confirmed() -> None:
    def run(price: float) -> Outcome:
        one = FakeProvider()
        one.offers = [{**row, "price_per_hour": f"{price:g}"} for row in one.offers]
        return refresh(["aws"], FetchOptions(), create=lambda name, options: one).outcomes[0]

    def in_use() -> set[str]:
        return {r["price_per_hour"] for r in stored("aws").offers.rows() if r["provider"] == "aws"}

    run(20)
    _confirm_all("aws")
    first = in_use()
    moved = run(5)
    assert moved.quarantine and in_use() == first
    assert run(5).status == "unchanged" and len(quarantine()) >= len(moved.quarantine)
    with pytest.raises(CatalogInputError, match="no quote in quarantine fits"):
        accept(["aws/nowhere/*"])
    done = accept([quote.offer_id for quote in moved.quarantine])
    assert set(done) == {quote.offer_id for quote in moved.quarantine} and in_use() == {"5"}
    assert run(5.1).quarantine == () and in_use() == {"5.1"}
    assert run(2.5).quarantine and in_use() == {"5.1"}


# --- the fake servers of the four clouds, with every price of a list scaled


@contextmanager
def _alibaba(
    scale: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[FetchOptions], Provider]]:
    from tests.catalogs.providers.test_alibaba import provider
    from tests.fakes import alibaba as fake

    usual = dict(fake.ON_DEMAND)

    def routes() -> None:
        monkeypatch.setattr(fake, "ON_DEMAND", {name: price * scale["by"] for name, price in usual.items()})

    with fake.server() as server:

        def make(options: FetchOptions) -> Provider:
            routes()
            one = provider(server)
            one.options = options
            return one

        yield make


@contextmanager
def _gcp(
    scale: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[FetchOptions], Provider]]:
    from tests.catalogs.providers.gcp_setup import make
    from tests.fakes import gcp as fake

    def skus(request: Any) -> Any:
        page = copy.deepcopy(fake.ROUTES[fake.SKUS](request))
        for rate in (
            r
            for sku in page["skus"]
            for i in sku["pricingInfo"]
            for r in i["pricingExpression"]["tieredRates"]
        ):
            money = rate["unitPrice"]
            nanos = (int(money.get("units") or 0) * 10**9 + int(money.get("nanos") or 0)) * scale["by"]
            money |= {"units": str(int(nanos // 10**9)), "nanos": int(nanos % 10**9)}
        return page

    with fake.fake_gcp(routes={fake.SKUS: skus}) as server:
        for name, value in fake.endpoints(server).items():
            monkeypatch.setenv(
                {"gcp_compute": "PLANNER_GCP_ENDPOINT", "gcp_billing": "PLANNER_BILLING_ENDPOINT"}[name],
                value,
            )
        yield make


@contextmanager
def _azure(
    scale: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[FetchOptions], Provider]]:
    from tests.catalogs.providers.azure_setup import make
    from tests.fakes import azure as fake

    def retail(request: Any) -> Any:
        page = copy.deepcopy(fake.ROUTES[fake.RETAIL](request))
        for item in page["Items"]:
            item["retailPrice"] *= scale["by"]
            for plan in item.get("savingsPlan") or ():
                plan["retailPrice"] *= scale["by"]
        return page

    with fake.fake_azure(routes={fake.RETAIL: retail}) as server:
        monkeypatch.setenv("PLANNER_AZURE_ENDPOINT", server.url)
        monkeypatch.setenv("PLANNER_RETAIL_PRICES_URL", server.url)
        yield make


@contextmanager
def _aws(
    scale: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[FetchOptions], Provider]]:
    from catalogs.providers.aws import AwsProvider
    from tests.fakes import aws as fake
    from tests.fakes.aws_clients import SharedClients

    usual = fake.World.hourly

    def hourly(world: fake.World, name: str, region: str) -> Decimal | None:
        price = usual(world, name, region)
        return None if price is None else price * Decimal(str(scale["by"]))

    monkeypatch.setattr(fake.World, "hourly", hourly)
    with fake.fake_aws(world=fake.World(page_size=100)) as server:
        for name, value in fake.environment(server).items():
            monkeypatch.setenv(name, value)
        yield lambda options: AwsProvider(options, SharedClients(options), now=lambda: fake.NOW)


CLOUDS = {"alibaba": _alibaba, "gcp": _gcp, "azure": _azure, "aws": _aws}
FACTORS = (0.01, 0.1, 0.34, 0.5, 2.0, 10.0, 100.0)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_list_that_moved_never_wins_unseen(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = {"by": 1.0}
    options = FetchOptions(retries=1, backoff_s=0.001, max_wait_s=0.01, timeout_s=20.0)
    with CLOUDS[cloud](scale, monkeypatch) as make:

        def run() -> Outcome:
            return refresh([cloud], options, create=lambda name, given: make(given)).outcomes[0]

        assert run().is_stored
        _confirm_all(cloud)
        usual = _in_use(cloud)
        for factor in FACTORS:
            scale["by"] = factor
            outcome = run()
            waiting = {quote.offer_id for quote in outcome.quarantine}
            now = _in_use(cloud)
            moved = {key for key, price in now.items() if key in usual and abs(price / usual[key] - 1) > 0.4}
            assert not moved, (factor, moved)
            assert {key for key in now if key not in usual} == set(), factor
            if outcome.is_stored:
                assert waiting, factor
                assert all(quote.reason for quote in outcome.quarantine)
            json.dumps([quote.values() for quote in outcome.quarantine])


def _confirm_all(provider: str) -> None:
    if any(quote.offer_id.startswith(provider) for quote in quarantine()):
        accept([f"{provider}/*"])


def _in_use(provider: str) -> dict[str, float]:
    """Admitted prices of a provider by offer."""
    from catalogs.tables.model import OFFER_KEY, offer_id

    offers = stored(provider).offers
    kept = offers.take(admit_offers(offers, allow_flagged=False).mask & offers.equals("provider", provider))
    return {
        offer_id(tuple(row[name] for name in OFFER_KEY)): float(row["price_per_hour"]) for row in kept.rows()
    }
