"""The AWS provider against the fake cloud: paging, concurrency, what is skipped and said, sameness of answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from catalogs.providers.aws import AwsProvider, create
from catalogs.providers.aws_client import API_CALLS, AwsClients
from catalogs.providers.base import CredentialsMissing, FetchOptions, ProviderError, SchemaChanged, frame_rows
from tests.fakes.aws import NOW, SECRETS, TARGETS, World, environment, fake_aws, region_of
from tests.fakes.aws_clients import SharedClients
from tests.fakes.http_base import FakeServer

REGIONS = ["ap-east-1", "eu-west-1", "us-east-1"]


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Any]:
    """Start a fake and make a provider that talks to it."""
    servers: list[FakeServer] = []
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))

    def start(
        *, account: bool = True, world: World | None = None, options: FetchOptions | None = None, **more: Any
    ) -> Any:
        fake = fake_aws(None, world, **more)
        fake.__enter__()
        servers.append(fake)
        for name, value in environment(fake, account=account).items():
            monkeypatch.setenv(name, value)
        chosen = options or FetchOptions(retries=1, timeout_s=10.0, backoff_s=0.01)
        clients = SharedClients(chosen) if account else AwsClients(chosen)
        return AwsProvider(chosen, clients, now=lambda: NOW), fake

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def test_making_a_provider_calls_nothing(enter: Any) -> None:
    _, fake = enter()
    assert create(FetchOptions()).info.name == "aws"
    assert fake.requests == []


def test_all_pages_of_all_regions_are_read(enter: Any) -> None:
    provider, fake = enter()
    assert provider.fetch_regions() == REGIONS
    assert len(provider.fetch_instance_types([])) == 12
    assert fake.count("DescribeInstanceTypes") == 4 + 3 + 4  # pages of four: 13 machines, in Ireland 11
    assert {region_of(one) for one in fake.requests if one.target == "DescribeInstanceTypes"} == set(REGIONS)
    assert provider.log.remarks == ["left out, the account has not opted in: me-south-1"]


def test_the_size_of_pages_changes_nothing(enter: Any) -> None:
    def rows(size: int) -> list[dict[str, str]]:
        provider, _ = enter(world=World(page_size=size))
        return frame_rows(provider.fetch_offers(["eu-west-1"], provider.info.purchase_options))

    assert rows(1) == rows(3) == rows(1000)


def test_offers_have_every_option_and_unique_keys(enter: Any) -> None:
    provider, _ = enter()
    rows = frame_rows(provider.fetch_offers([], provider.info.purchase_options))
    assert {row["purchase_option"] for row in rows} == provider.info.purchase_options
    keys = [
        (r["region"], r["zone"], r["instance_type"], r["purchase_option"], r["option_variant"]) for r in rows
    ]
    assert len(keys) == len(set(keys))
    assert keys == sorted(keys)
    assert provider.log.failures == []


def test_only_what_is_asked_for_is_called(enter: Any) -> None:
    provider, fake = enter()
    rows = frame_rows(provider.fetch_offers(["eu-west-1"], {"on_demand"}))
    assert {(row["region"], row["purchase_option"]) for row in rows} == {("eu-west-1", "on_demand")}
    for api in ("spot", "savings", "blocks", "quotas", "advisor", "zones"):
        assert fake.count(TARGETS[api]) == 0, api


def test_machines_are_described_once(enter: Any) -> None:
    provider, fake = enter()
    provider.fetch_instance_types(REGIONS)
    provider.fetch_offers(REGIONS, {"on_demand"})
    assert fake.count("DescribeInstanceTypes") == 11
    assert fake.count("DescribeRegions") == 1


def test_a_region_not_opted_in_is_skipped_and_said(enter: Any) -> None:
    provider, fake = enter()
    rows = frame_rows(provider.fetch_offers(["us-east-1", "me-south-1", "xx-north-9"], {"on_demand"}))
    assert {row["region"] for row in rows} == {"us-east-1"}
    said = {error.region: str(error) for error in provider.log.failures}
    assert "has not opted in" in said["me-south-1"]
    assert "does not know" in said["xx-north-9"]
    assert "me-south-1" not in {region_of(one) for one in fake.requests}


def test_only_regions_that_cannot_be_used_is_an_error(enter: Any) -> None:
    provider, _ = enter()
    with pytest.raises(ProviderError, match="none of the requested regions"):
        provider.fetch_instance_types(["me-south-1"])


def test_a_listed_machine_that_is_not_offered_has_no_capacity(enter: Any) -> None:
    provider, _ = enter()
    rows = frame_rows(provider.fetch_offers([], {"on_demand"}))
    capacity = {(row["region"], row["instance_type"]): row["capacity"] for row in rows}
    assert capacity["eu-west-1", "p5.48xlarge"] == "0"
    assert capacity["us-east-1", "p5.48xlarge"] == ""


def test_an_accelerator_without_canonical_id_is_reported(enter: Any) -> None:
    provider, _ = enter()
    rows = frame_rows(provider.fetch_instance_types([]))
    assert "dl1.24xlarge" not in {row["instance_type"] for row in rows}
    assert [(one.what, one.name) for one in provider.log.not_understood] == [
        ("accelerator", "Gaudi HL-205 of dl1.24xlarge")
    ]


def test_of_two_prices_the_dearer_is_kept_and_the_other_reported(enter: Any) -> None:
    provider, _ = enter()
    row = frame_rows(provider.fetch_offers(["us-east-1"], {"on_demand"}))[0]
    kept = provider._unique([row, {**row, "price_per_hour": "99"}, row])
    assert [one["price_per_hour"] for one in kept] == ["99"]
    assert {one.what for one in provider.log.not_understood} == {"offer"}


def test_the_same_answers_give_the_same_rows(enter: Any) -> None:
    def fetch(workers: int) -> list[list[dict[str, str]]]:
        provider, _ = enter(options=FetchOptions(max_workers=workers, retries=1))
        frames = (
            provider.fetch_instance_types([]),
            provider.fetch_offers([], provider.info.purchase_options),
        )
        return [frame_rows(frame) for frame in frames]

    assert fetch(1) == fetch(8)


def test_calls_run_side_by_side_but_no_more_than_allowed(enter: Any) -> None:
    provider, fake = enter(options=FetchOptions(max_workers=3, retries=1), latency_s=0.03)
    provider.fetch_offers([], provider.info.purchase_options)
    assert 2 <= fake.most_active <= 3


def test_a_token_that_repeats_ends_the_paging(enter: Any) -> None:
    provider, fake = enter()
    fake.routes[TARGETS["quotas"]] = lambda request: {"Quotas": [], "NextToken": "again"}
    with pytest.raises(SchemaChanged, match="the same page again"):
        provider.fetch_quotas(["us-east-1"])


def test_quotas(enter: Any) -> None:
    provider, _ = enter()
    frame = provider.fetch_quotas(["us-east-1", "eu-west-1"])
    assert list(frame.columns) == ["provider", "region", "quota", "code", "unit", "limit"]
    assert len(frame) == 8


def test_without_an_account_the_public_lists_are_read(enter: Any) -> None:
    provider, fake = enter(account=False)
    assert provider.fetch_regions() == REGIONS
    known = {row["instance_type"] for row in frame_rows(provider.fetch_instance_types([]))}
    rows = frame_rows(provider.fetch_offers(["us-east-1"], provider.info.purchase_options))
    assert {row["purchase_option"] for row in rows} == {"on_demand", "reserved_1y", "reserved_3y", "spot"}
    assert {row["instance_type"] for row in rows} <= known
    (spot,) = [
        row for row in rows if row["purchase_option"] == "spot" and row["instance_type"] == "p4d.24xlarge"
    ]
    assert (spot["price_per_hour"], spot["basis"], spot["interruption_band"]) == ("8.8", "derived", "10-15%")
    assert not [one for one in fake.requests if one.method == "POST"]
    with pytest.raises(CredentialsMissing, match="aws configure"):
        provider.fetch_quotas(["us-east-1"])


def test_the_advisor_file_is_asked_for_by_its_tag(enter: Any) -> None:
    provider, fake = enter(account=False)
    first = provider.fetch_offers(["us-east-1"], {"spot"})
    again = provider.fetch_offers(["us-east-1"], {"spot"})
    asked = [
        one.headers.get("if-none-match") for one in fake.requests if one.target.startswith("/spot-advisor")
    ]
    assert asked == [None, '"advisor-1"']
    assert frame_rows(first) == frame_rows(again)


def test_every_call_made_is_in_the_table(enter: Any) -> None:
    provider, fake = enter()
    provider.fetch_instance_types(["us-east-1"])
    provider.fetch_offers(["us-east-1"], provider.info.purchase_options)
    provider.fetch_quotas(["us-east-1"])
    made = {one.target.rpartition(".")[2].strip("/") for one in fake.requests if one.method == "POST"}
    known = {call.call.rpartition(":")[2] for call in API_CALLS if call.permission}
    assert made == known


def test_a_profile_that_is_not_there_says_how_to_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    provider = AwsProvider(FetchOptions())
    with pytest.raises(CredentialsMissing, match=r"ProfileNotFound.*AWS_PROFILE"):
        provider.fetch_regions()


def test_nothing_secret_reaches_rows_or_log(enter: Any) -> None:
    provider, _ = enter()
    text = str(frame_rows(provider.fetch_offers(["us-east-1"], provider.info.purchase_options))) + str(
        provider.log
    )
    assert not [secret for secret in SECRETS if secret in text]


def test_the_recorded_shapes_of_the_whole_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto answers DescribeInstanceTypes with every real machine: all GPUs but those without an id are known."""
    from moto import mock_aws

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    with mock_aws():
        options = FetchOptions()
        provider = AwsProvider(options, now=lambda: NOW)
        provider._account._regions = {"us-east-1": True}
        rows = {row["instance_type"]: row for row in frame_rows(provider.fetch_instance_types(["us-east-1"]))}
    assert len(rows) > 60
    assert rows["p5.48xlarge"]["accelerator"] == "h100-80gb-sxm"
    assert rows["p6-b200.48xlarge"]["internode_gbps"] == "3200"
    assert rows["g6f.large"]["accelerator_count"] == "0.125"
    unknown = {one.name.rpartition(" of ")[0] for one in provider.log.not_understood}
    assert unknown <= {"Gaudi HL-205"}
