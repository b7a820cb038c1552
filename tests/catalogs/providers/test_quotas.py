"""Live quotas: read through each cloud's fake, cached for a while, never mixed between accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalogs.errors import CatalogInputError
from catalogs.providers.base import FetchOptions, PermissionDenied, Provider
from catalogs.providers.quotas import LiveQuotas, fetch_live_quotas
from tests.catalogs.providers import azure_setup, gcp_setup
from tests.catalogs.providers.test_alibaba import provider as alibaba_provider
from tests.fakes import alibaba, azure, gcp
from tests.fakes.http_base import FakeServer
from tests.fakes.provider import FakeProvider


class World:
    """Three clouds behind fakes; `asked` lists which were opened."""

    def __init__(self, servers: dict[str, FakeServer]) -> None:
        self.servers = servers
        self.asked: list[str] = []

    def create(self, name: str, options: FetchOptions) -> Provider:
        self.asked.append(name)
        makers: dict[str, Any] = {
            "alibaba": alibaba_provider,
            "gcp": gcp_setup.provider,
            "azure": azure_setup.provider,
        }
        return FakeProvider(name) if name == "aws" else makers[name](self.servers[name], log=options.log)


@pytest.fixture
def world() -> Any:
    with alibaba.server() as one, gcp.fake_gcp() as two, azure.fake_azure() as three:
        yield World({"alibaba": one, "gcp": two, "azure": three})


def _fetch(
    world: World, tmp_path: Path, *names: str, regions: tuple[str, ...] = (), **more: Any
) -> LiveQuotas:
    return fetch_live_quotas(names, regions, create=world.create, cache_dir=tmp_path, **more)


def test_quotas_of_several_clouds(world: World, tmp_path: Path) -> None:
    found = _fetch(world, tmp_path, "alibaba", "gcp", regions=("cn-hangzhou", "us-central1"))
    assert {(one.provider, one.region) for one in found.quotas} == {
        ("alibaba", "cn-hangzhou"),
        ("gcp", "us-central1"),
    }
    assert found.limit_of("alibaba", "cn-hangzhou", "max-postpaid-instance-vcpu-count") == 1000
    assert found.limit_of("alibaba", "cn-hangzhou", "no such quota") is None  # unknown is not zero
    assert found.limit_of("alibaba", "cn-hangzhou", "max-spot-instance-vcpu-count") == 0
    assert not found.failures and not found.is_cached


def test_a_second_question_within_the_hour_asks_nobody(world: World, tmp_path: Path) -> None:
    first = _fetch(world, tmp_path, "alibaba", now_s=lambda: 1000.0)
    again = _fetch(world, tmp_path, "alibaba", now_s=lambda: 4599.0)
    assert again.is_cached and again.quotas == first.quotas and world.asked == ["alibaba"]
    for clock in (4600.0, 999.0):  # too old; or the clock was moved backwards
        assert not _fetch(world, tmp_path, "alibaba", now_s=lambda c=clock: c).is_cached
        _fetch(world, tmp_path, "alibaba", now_s=lambda: 1000.0, max_age_s=0)


def test_another_account_is_another_answer(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAIoneoneone11")
    _fetch(world, tmp_path, "alibaba")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAItwotwotwo22")
    assert not _fetch(world, tmp_path, "alibaba").is_cached
    kept = list(tmp_path.iterdir())
    assert len(kept) == 2 and all(
        b"LTAI" not in path.read_bytes() and "LTAI" not in path.name for path in kept
    )


def test_a_damaged_cache_is_not_used(world: World, tmp_path: Path) -> None:
    _fetch(world, tmp_path, "alibaba")
    (kept,) = tmp_path.iterdir()
    for damage in (b"{", b'{"saved_at_s": 1, "quotas": [{"x": 1}]}', b"[]"):
        kept.write_bytes(damage)
        assert not _fetch(world, tmp_path, "alibaba", now_s=lambda: 2.0).is_cached


def test_what_refuses_is_reported_and_the_others_stay(tmp_path: Path) -> None:
    with alibaba.server({"DescribeAccountAttributes": "access_denied"}) as one, gcp.fake_gcp() as two:
        world = World({"alibaba": one, "gcp": two})
        found = _fetch(world, tmp_path, "alibaba", "gcp", "aws")
    assert "ecs:DescribeAccountAttributes" in found.failures["alibaba"] and "LTAI" not in str(found.failures)
    assert "declare them in the workload" in found.failures["aws"]
    assert {one.provider for one in found.quotas} == {"gcp"}
    assert list(tmp_path.iterdir()) == []  # an incomplete answer is not kept


def test_a_defect_of_one_is_told_without_its_text(tmp_path: Path) -> None:
    def create(name: str, options: FetchOptions) -> Provider:
        if name == "gcp":
            raise RuntimeError("the secret")
        raise PermissionDenied("denied", permission="x:Read", provider=name)

    found = fetch_live_quotas(["gcp", "aws"], create=create, cache_dir=tmp_path)
    assert "RuntimeError" in found.failures["gcp"] and "secret" not in found.failures["gcp"]
    assert "x:Read" in found.failures["aws"]


def test_an_unknown_provider_is_an_input_error() -> None:
    with pytest.raises(CatalogInputError, match="did you mean azure"):
        fetch_live_quotas(["azur"])
