"""Refresh: nobody's failure is shared, nothing is dropped unseen, the last good prices stay."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path

import pytest

from catalogs.errors import CatalogInputError
from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    Provider,
    ProviderError,
    RateLimited,
    SchemaChanged,
    Unreachable,
    map_regions,
)
from catalogs.refresh.checking import check_fetched, flag_dear_spot
from catalogs.refresh.report import RefreshReport
from catalogs.refresh.run import refresh
from catalogs.store.load import load_catalog
from tests.catalogs.stored import stored
from tests.fakes.provider import AS_OF, FakeProvider, offer_row, type_row

OPTIONS = FetchOptions(max_workers=4)


@pytest.fixture(autouse=True)
def _own_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_CATALOG_DIR", raising=False)


def _refresh(*providers: FakeProvider, options: FetchOptions = OPTIONS, **kwargs: object) -> RefreshReport:
    by_name = {provider.name: provider for provider in providers}

    def create(name: str, given: FetchOptions) -> Provider:
        return by_name[name].with_options(given)

    return refresh(list(by_name), options, create=create, **kwargs)  # type: ignore[arg-type]


def test_a_refresh_is_stored_and_the_same_again_adds_nothing() -> None:
    first, second = _refresh(FakeProvider()), _refresh(FakeProvider())
    assert [o.status for o in (*first.outcomes, *second.outcomes)] == ["added", "unchanged"]
    (outcome,) = first.outcomes
    assert (outcome.n_instance_types, outcome.n_offers, outcome.refused) == (2, 2, {})
    assert first.is_good and set(outcome.seconds) == {"regions", "instance_types", "offers", "check", "store"}
    offers = stored("aws").offers
    own = offers.take(offers.equals("provider", "aws"))
    assert own.n_rows == 2 and set(own["as_of"]) == {AS_OF}


def test_one_failing_provider_does_not_hide_the_others() -> None:
    down = FakeProvider("gcp", boom=Unreachable("no answer in time", provider="gcp", api="compute"))
    defect = FakeProvider("azure", boom=KeyError("secret-value"))
    report = _refresh(down, FakeProvider(), defect)
    status = {o.provider: o.status for o in report.outcomes}
    assert status == {"gcp": "failed", "aws": "added", "azure": "failed"}
    gcp, _, azure = report.outcomes
    assert gcp.failures[0].kind == "unreachable" and "no answer in time" in gcp.failures[0].message
    assert (
        gcp.last_good_as_of and gcp.age_days(date(2026, 11, 20)) is not None
    )  # the bundled one stays in use
    assert azure.failures[0].kind == "defect" and "KeyError" in azure.failures[0].message
    assert "secret-value" not in azure.failures[0].message and not report.is_good
    assert {"gcp", "azure"} <= set(load_catalog(cache=False).sha256)


def test_a_failing_region_keeps_its_last_good_rows_with_their_age() -> None:
    cells = {"as_of": "2026-11-01", "price_per_hour": "31"}
    old = [offer_row("aws", r, "p4d.24xlarge", **cells) for r in ("us-east-1", "us-west-2")]
    _refresh(FakeProvider(offers=old))
    error = RateLimited("still throttled", provider="aws", api="ec2:DescribeSpotPriceHistory")
    (outcome,) = _refresh(FakeProvider(broken={"us-west-2": error})).outcomes
    assert (outcome.status, outcome.n_offers, outcome.n_kept_offers) == ("added", 2, 1)
    assert outcome.kept_regions == {"us-west-2": "2026-11-01"}
    assert [(f.kind, f.region) for f in outcome.failures] == [("rate_limited", "us-west-2")]
    offers = stored("aws").offers
    dates = {row["region"]: row["as_of"] for row in offers.take(offers.equals("provider", "aws")).rows()}
    assert dates == {"us-east-1": AS_OF, "us-west-2": "2026-11-01"}


def test_a_failing_interface_keeps_only_its_own_purchase_option() -> None:
    spot = offer_row("aws", "us-east-1", "p4d.24xlarge", purchase_option="spot", price_per_hour="12")
    gone = offer_row("aws", "us-west-2", "p4d.24xlarge")
    both = frozenset({"on_demand", "spot"})
    first = offer_row("aws", "us-east-1", "p4d.24xlarge")
    _refresh(FakeProvider(sells=both, offers=[first, gone, spot]))

    class NoSpot(FakeProvider):
        def fetch_offers(self, regions, options):  # type: ignore[no-untyped-def]
            self.options.log.failed(PermissionDenied("denied", permission="ec2:Spot"), {"spot"})
            return super().fetch_offers(regions, options)

    (outcome,) = _refresh(NoSpot(sells=both, offers=[first])).outcomes
    offers = stored("aws").offers
    own = offers.take(offers.equals("provider", "aws"))
    assert sorted(zip(own["region"], own["purchase_option"], strict=True)) == [
        ("us-east-1", "on_demand"),
        ("us-east-1", "spot"),
    ]
    assert outcome.n_kept_offers == 1 and "ec2:Spot" in outcome.failures[0].message


def test_all_regions_failing_is_a_failure_of_the_provider() -> None:
    errors: dict[str, ProviderError] = {
        r: Unreachable("down", provider="aws") for r in ("us-east-1", "us-west-2")
    }
    (outcome,) = _refresh(FakeProvider(broken=errors)).outcomes
    assert outcome.status == "failed" and outcome.failures[0].region == "us-east-1"


def test_missing_credentials_are_a_skip_that_says_how_to_log_in() -> None:
    error = CredentialsMissing("no credentials; run `aws sso login`", provider="aws")
    (outcome,) = _refresh(FakeProvider(boom=error)).outcomes
    assert outcome.status == "skipped" and "aws sso login" in outcome.failures[0].message


@pytest.mark.parametrize(
    ("types", "offers", "says"),
    [([], [], "not one instance type"), (None, [], "not one price")],
    ids=["nothing", "no prices"],
)
def test_an_empty_answer_never_replaces_good_data(
    types: list[dict[str, str]] | None, offers: list[dict[str, str]], says: str
) -> None:
    _refresh(FakeProvider())
    provider = FakeProvider()
    provider.types, provider.offers = provider.types if types is None else types, offers
    (outcome,) = _refresh(provider).outcomes
    assert outcome.status == "failed" and says in outcome.failures[0].message
    assert stored("aws").offers.equals("provider", "aws").sum() == 2


def test_a_purchase_option_that_vanishes_everywhere_is_kept() -> None:
    both = frozenset({"on_demand", "spot"})
    names = [f"p4d.{at}xlarge" for at in range(12)]
    types = [type_row("aws", name) for name in names]
    listed = [offer_row("aws", "us-east-1", name) for name in names]
    spot = [{**row, "purchase_option": "spot", "price_per_hour": "12"} for row in listed]
    _refresh(FakeProvider(sells=both, types=types, offers=[*listed, *spot]))
    (outcome,) = _refresh(FakeProvider(sells=both, types=types, offers=listed)).outcomes
    assert (outcome.n_offers, outcome.n_kept_offers) == (24, 12)
    assert "no spot price in the answer, 12 before" in outcome.failures[0].message
    only = FetchOptions(purchase_options=frozenset({"on_demand"}))
    (outcome,) = _refresh(FakeProvider(sells=both, types=types, offers=listed), options=only).outcomes
    assert outcome.failures == () and outcome.n_offers == 24  # what was not requested stays


def test_refused_rows_are_counted_by_reason_and_the_others_stored() -> None:
    good = offer_row("aws", "us-east-1", "p4d.24xlarge")
    bad = [
        offer_row("aws", "us-west-2", "p4d.24xlarge", price_per_hour="0"),
        offer_row("aws", "us-west-1", "p4d.24xlarge", price_per_hour="0.0"),
        offer_row("aws", "us-east-1", "p4d.24xlarge", zone="use1-az1", price_per_hour="99999"),
        offer_row("aws", "mars-north-1", "p4d.24xlarge"),
        offer_row("aws", "us-east-1", "p4d.24xlarge"),
    ]
    regions = ("us-east-1", "us-west-1", "us-west-2", "mars-north-1")
    (outcome,) = _refresh(FakeProvider(regions=regions, offers=[good, *bad])).outcomes
    # of the zone in us-east-1 the price accepted before stays; none is known of the others
    assert outcome.n_offers == 2
    assert [quote.offer_id.split("/")[2] for quote in outcome.quarantine] == ["use1-az1"]
    assert sum(outcome.refused.values()) == 5
    assert outcome.refused["offers.price_per_hour: ... is below ..."] == 2
    assert any("implausible" in reason for reason in outcome.refused)
    assert any("unknown region" in reason for reason in outcome.refused)
    assert any("is listed twice" in reason for reason in outcome.refused)


def test_machines_without_an_accelerator_are_left_out_and_unknown_ones_refused() -> None:
    plain = {
        **type_row("aws", "m5.large"),
        "accelerator": "",
        "accelerator_name": "",
        "accelerator_count": "0",
    }
    strange = type_row("aws", "x9.large", accelerator="", accelerator_name="QPU")
    offers = [offer_row("aws", "us-east-1", name) for name in ("m5.large", "x9.large", "p4d.24xlarge")]
    checked = check_fetched([plain, strange, type_row("aws", "p4d.24xlarge")], offers)
    assert checked.n_without_accelerator == 1
    assert [row["instance_type"] for row in checked.instance_types] == ["p4d.24xlarge"]
    assert [row["instance_type"] for row in checked.offers] == ["p4d.24xlarge"]
    assert set(checked.refused) == {
        "instance_types.accelerator: is missing",
        "offers.instance_type: unknown instance type ...",
    }


def test_spot_above_on_demand_is_flagged() -> None:
    spot = {"purchase_option": "spot", "flags": "restricted_region"}
    rows = [
        offer_row("aws", "us-east-1", "a", price_per_hour="10"),
        offer_row("aws", "us-east-1", "a", **spot, price_per_hour="10"),
        offer_row("aws", "us-east-1", "a", **spot, zone="use1-az1", price_per_hour="9"),
        offer_row("aws", "us-west-2", "a", **spot, price_per_hour="11"),
    ]
    flags = [row.get("flags", "") for row in flag_dear_spot(rows)]
    assert flags == ["", "restricted_region;spot_equals_on_demand", "restricted_region", "restricted_region"]


def test_a_provider_we_have_no_regions_of_may_list_its_own() -> None:
    provider = FakeProvider("newcloud", regions=("moon-1",))
    (outcome,) = _refresh(provider).outcomes
    assert (outcome.status, outcome.n_offers) == ("added", 1)


def test_regions_are_chosen_by_glob_and_the_others_kept() -> None:
    _refresh(FakeProvider())
    dearer = [offer_row("aws", r, "p4d.24xlarge", price_per_hour="33") for r in ("us-east-1", "us-west-2")]
    options = FetchOptions(regions=("aws/us-e*",))
    (outcome,) = _refresh(FakeProvider(offers=dearer), options=options).outcomes
    offers = stored("aws").offers
    own = offers.take(offers.equals("provider", "aws"))
    prices = dict(zip(own["region"], own["price_per_hour"], strict=True))
    assert prices == {"us-east-1": "33", "us-west-2": "32.7726"} and outcome.n_kept_offers == 1


def test_a_region_nobody_has_is_an_input_error_with_a_suggestion() -> None:
    (outcome,) = _refresh(FakeProvider(), options=FetchOptions(regions=("us-eats-1",))).outcomes
    assert outcome.failures[0].kind == "input" and "did you mean us-east-1" in outcome.failures[0].message


def test_an_unknown_provider_is_an_input_error_with_a_suggestion() -> None:
    with pytest.raises(CatalogInputError, match="did you mean azure"):
        refresh(["azur"], OPTIONS)


def test_providers_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=60)  # breaks unless all three are there at once
    providers = [
        FakeProvider(name, before=lambda: (barrier.wait(), None)[1]) for name in ("aws", "gcp", "azure")
    ]
    assert len(_refresh(*providers).outcomes) == 3
    assert not barrier.broken


def test_regions_run_in_bounded_parallel_and_in_order() -> None:
    active, most = 0, 0
    lock, three = (
        threading.Lock(),
        threading.Barrier(3, timeout=60),
    )  # breaks unless three are at work at once

    def fetch(region: str) -> str:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        three.wait()
        with lock:
            active -= 1
        return region.upper()

    regions = [f"r{i}" for i in range(12)]
    assert map_regions(regions, fetch, FetchOptions(max_workers=3)) == {r: r.upper() for r in regions}
    assert most == 3


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (Unreachable("no connection in time"), 4),
        (CredentialsMissing("expired"), 1),
        (RateLimited("slow down"), 12),
        (PermissionDenied("denied", permission="x"), 12),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_a_dead_network_does_not_cost_all_retries_of_all_regions(error: ProviderError, tries: int) -> None:
    asked: list[str] = []

    def fetch(region: str) -> str:
        asked.append(region)
        raise error

    with pytest.raises(type(error)):
        map_regions([f"r{at}" for at in range(12)], fetch, FetchOptions(max_workers=1))
    assert len(asked) == tries


def test_one_error_for_many_regions_fails_each_of_them() -> None:
    """A call that always goes to one place (a price list) fails for the region it was made for."""
    shared = SchemaChanged("odd", where="x", provider="aws", region="us-east-1")

    def fetch(region: str) -> str:
        if region == "r0":
            return "good"
        raise shared

    options = FetchOptions(max_workers=2)
    map_regions(["r0", "r1", "r2"], fetch, options)
    assert [str(error) for error in options.log.failures] == ["aws r1: odd (at x)", "aws r2: odd (at x)"]


def test_one_region_that_answers_keeps_hope() -> None:
    def fetch(region: str) -> str:
        if region == "r0":
            return "good"
        raise Unreachable("down")

    options = FetchOptions(max_workers=1)
    assert map_regions([f"r{at}" for at in range(9)], fetch, options) == {"r0": "good"}
    assert options.log.failed_regions == {f"r{at}" for at in range(1, 9)}


def test_progress_is_told_per_provider_and_region() -> None:
    seen: list[tuple[str, str, str, int]] = []
    _refresh(FakeProvider(), on_progress=lambda *event: seen.append(event))
    assert ("aws", "us-east-1", "fake:ListPrices", 1) in seen
    assert ("aws", "us-west-2", "fake:ListPrices", 1) in seen


def test_refreshes_at_once_and_readers_between_them_do_no_harm() -> None:
    """Each refresh has its own price; a reader sees one of them, in all regions the same."""
    prices = ("31", "32", "33", "34")
    done: list[str] = []

    def work(price: str) -> None:
        offers = [
            offer_row("aws", r, "p4d.24xlarge", price_per_hour=price) for r in ("us-east-1", "us-west-2")
        ]
        done.extend(o.status for o in _refresh(FakeProvider(offers=offers)).outcomes)

    work(prices[0])
    threads = [threading.Thread(target=work, args=(price,)) for price in prices]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert len(_own_prices() & set(prices)) == 1
    for thread in threads:
        thread.join()
    assert len(done) == 5 and set(done) <= {"added", "unchanged"}
    assert len(_own_prices()) == 1


def _own_prices() -> set[str]:
    offers = stored("aws").offers
    return set(offers.take(offers.equals("provider", "aws"))["price_per_hour"])
