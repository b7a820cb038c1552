"""Every fault of every interface of AWS: what the user sees, and that yesterday's prices still load."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.providers.aws import AwsProvider
from catalogs.providers.aws_client import API_CALLS, AwsClients
from catalogs.providers.base import FetchLog, FetchOptions
from catalogs.refresh.report import Outcome
from catalogs.refresh.run import refresh
from tests.catalogs.stored import stored
from tests.fakes.aws import NOW, SECRETS, World, environment, fake_aws
from tests.fakes.aws_clients import SharedClients
from tests.fakes.http_base import KINDS, LATE_S, LIMIT_S

HARMLESS = ("throttle_then_ok", "http_500_once", "duplicate_rows")
# Without these nothing can be known; the others cost a part.
FATAL = {"regions": "ec2:DescribeRegions", "types": "ec2:DescribeInstanceTypes"}
PARTS = {
    "zones": "ec2:DescribeAvailabilityZones",
    "offerings": "ec2:DescribeInstanceTypeOfferings",
    "spot": "ec2:DescribeSpotPriceHistory",
    "blocks": "ec2:DescribeCapacityBlockOfferings",
    "pricing": "pricing:GetProducts",
    "savings": "savingsplans:DescribeSavingsPlansOfferingRates",
}
PUBLIC = ("bulk_index", "bulk")
OFFERS_IN_IRELAND = 9 * (1 + 12 + 8) + 4 + 1  # listed, reserved and savings of 9 machines; spot; one block
REGIONS = ("us-east-1", "eu-west-1")
ON_A_PAGE = 100  # an interface fails alike on any page, and each page is a call
QUICK: dict[str, Any] = {
    "regions": REGIONS,
    "retries": 1,
    "timeout_s": 10.0,
    "backoff_s": 0.01,
    "max_wait_s": 0.05,
    "max_workers": 4,
}


def quick(faults: Any) -> dict[str, Any]:
    """Options of a fetch: only a fault that answers late may run into the limit, however busy the machine is."""
    return {**QUICK, "timeout_s": 4 * LIMIT_S, "retries": 0} if "slow" in str(faults) else QUICK


@pytest.fixture(autouse=True)
def _no_pauses_and_own_store(small_bundle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))


def run(monkeypatch: pytest.MonkeyPatch, faults: Any = None, *, account: bool = True, **more: Any) -> Outcome:
    with fake_aws(faults, World(page_size=ON_A_PAGE), slow_s=LATE_S) as fake:
        for name, value in environment(fake, account=account).items():
            monkeypatch.setenv(name, value)

        def create(name: str, given: FetchOptions) -> AwsProvider:
            clients = SharedClients(given) if account else AwsClients(given)
            return AwsProvider(given, clients, now=lambda: NOW)

        return refresh(["aws"], FetchOptions(**{**quick(faults), **more}), create=create).outcomes[0]


def shown(outcome: Outcome) -> str:
    return json.dumps(dataclasses.asdict(outcome), default=str)


def assert_no_secret(outcome: Outcome) -> None:
    assert not [secret for secret in SECRETS if secret in shown(outcome)]


# Every fault at one interface of each kind (fatal, asked per region, public), every interface with a fault of each kind
# of error: what a fault is called depends on the fault alone, and what it costs on the interface alone.
PASSING = [fault for fault in KINDS if fault != "expired_credentials"]
ONE_PER_KIND = ("throttle_forever", "connection_reset", "changed_schema", "access_denied")


@pytest.mark.parametrize(
    ("api", "fault"),
    [
        (api, fault)
        for api in FATAL
        for fault in (KINDS if api == "types" else (*ONE_PER_KIND, "expired_credentials"))
    ],
)
def test_without_regions_or_machines_yesterday_stays(
    api: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored("aws").sha256["aws"]
    outcome = run(monkeypatch, {api: fault})
    assert outcome.status == ("skipped" if fault == "expired_credentials" else "failed")
    failure = outcome.failures[0]
    assert (failure.kind, failure.api) == (KINDS[fault], FATAL[api])
    if fault == "access_denied":
        assert f"missing permission: {FATAL[api]}" in failure.message
    if fault == "expired_credentials":
        assert "aws configure" in failure.message
    assert outcome.last_good_as_of
    assert stored("aws").sha256["aws"] == before
    assert_no_secret(outcome)


def ask(
    monkeypatch: pytest.MonkeyPatch, faults: Any, regions: Sequence[str], page_size: int = ON_A_PAGE
) -> tuple[int, FetchLog]:
    """Ask the provider itself for offers, without a store: their number, and what was recorded."""
    with fake_aws(faults, World(page_size=page_size), slow_s=LATE_S) as fake:
        for name, value in environment(fake).items():
            monkeypatch.setenv(name, value)
        options = FetchOptions(**quick(faults), log=FetchLog())
        provider = AwsProvider(options, SharedClients(options), now=lambda: NOW)
        return len(provider.fetch_offers(regions, provider.info.purchase_options)), options.log


@pytest.mark.parametrize(
    ("api", "fault"),
    [  # one that is throttled: below
        (api, fault)
        for api in PARTS
        for fault in (PASSING if api == "spot" else ONE_PER_KIND)
        if fault != "throttle_forever"
    ],
)
def test_one_interface_costs_its_own_part_only(api: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n_offers, log = ask(monkeypatch, {api: fault}, REGIONS)
    assert n_offers > 50
    assert not [secret for secret in SECRETS if secret in f"{log.failures} {log.remarks}"]
    if (api, fault) == ("pricing", "access_denied"):  # the public list has the same prices
        assert not log.failures
        assert [text for text in log.remarks if "missing permission: pricing:GetProducts" in text]
        return
    assert {(one.kind, one.api) for one in log.failures} == {(KINDS[fault], PARTS[api])}
    assert sorted(one.region for one in log.failures) == ([""] if api == "pricing" else sorted(REGIONS))
    if fault == "access_denied":
        assert f"missing permission: {PARTS[api]}" in str(log.failures[0])


@pytest.mark.parametrize("api", PARTS)
def test_what_one_interface_lost_stays_as_it_was(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {api: "throttle_forever"})
    assert outcome.status == "added"
    assert {(one.kind, one.api) for one in outcome.failures} == {("rate_limited", PARTS[api])}
    assert sorted(one.region for one in outcome.failures) == ([""] if api == "pricing" else sorted(REGIONS))
    assert outcome.n_kept_offers
    assert stored("aws").sha256["aws"] == outcome.sha256
    assert_no_secret(outcome)


@pytest.mark.parametrize("api", PARTS)
def test_expired_credentials_end_the_refresh(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {api: "expired_credentials"})
    assert (outcome.status, outcome.failures[0].kind) == ("skipped", "credentials_missing")
    assert "aws sso login" in outcome.failures[0].message
    assert_no_secret(outcome)


@pytest.mark.parametrize(
    ("api", "fault"),
    [(api, fault) for api in PUBLIC for fault in (PASSING if api == "bulk" else ONE_PER_KIND)],
)
def test_public_lists_fail_by_name(api: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored("aws").sha256["aws"]
    outcome = run(monkeypatch, {api: fault}, account=False)
    assert (outcome.status, outcome.failures[0].kind) == ("failed", KINDS[fault])
    assert outcome.failures[0].api == "bulk price list"
    assert stored("aws").sha256["aws"] == before


@pytest.mark.parametrize("fault", ONE_PER_KIND)
def test_without_the_advisor_bands_are_left_out(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n_offers, log = ask(monkeypatch, {"advisor": fault}, ["eu-west-1"])
    assert (n_offers, log.failures) == (OFFERS_IN_IRELAND, [])
    assert [text for text in log.remarks if text.startswith("interruption bands left out: aws")]


@pytest.mark.parametrize("fault", HARMLESS)
def test_a_passing_fault_changes_nothing(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every interface of one refresh: each call fails once, or tells every row twice."""
    n_offers, log = ask(
        monkeypatch, dict.fromkeys((*FATAL, *PARTS, "advisor"), fault), ["eu-west-1"], page_size=4
    )
    assert (n_offers, log.failures) == (OFFERS_IN_IRELAND, [])


@pytest.mark.parametrize(
    "api, kept",
    [("types", False), ("zones", True), ("offerings", True), ("pricing", True), ("savings", True)],
)
def test_an_empty_answer_is_no_answer(api: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {api: "empty_page"})
    assert {one.kind for one in outcome.failures} == {"schema_changed"}
    assert outcome.status == ("added" if kept else "failed")


def test_an_empty_spot_history_is_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {"spot": "empty_page"})
    assert outcome.status == "added"
    assert "us-east-1: no spot price of any machine in the past week" in outcome.remarks


def test_no_credentials_means_the_public_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, account=False)
    assert outcome.status == "added"
    assert not outcome.failures
    assert [text for text in outcome.remarks if "no AWS credentials" in text and "aws configure" in text]


def test_every_permission_a_fault_may_name_is_in_the_table_of_calls() -> None:
    permissions = {call.permission for call in API_CALLS}
    assert {*FATAL.values(), *PARTS.values()} <= permissions
    assert "servicequotas:ListServiceQuotas" in permissions
