"""`optimize --prices live --quota live` on all four clouds behind fakes: as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.providers.aws import AwsProvider
from catalogs.providers.base import FetchOptions, Provider
from tests.catalogs.providers import azure_setup, gcp_setup
from tests.catalogs.providers.test_alibaba import provider as alibaba_provider
from tests.conftest import CliResult, Run
from tests.fakes import alibaba, aws, azure, gcp
from tests.fakes.aws_clients import SharedClients
from tests.fakes.http_base import LATE_S, LIMIT_S, FakeServer

ALL_SECRETS = (*aws.SECRETS, gcp.SECRET, azure.SECRET, "LTAIsecretKeyIdOfTheUser")
QUICK: dict[str, Any] = {"retries": 0, "timeout_s": 5.0, "backoff_s": 0.001, "max_wait_s": 0.01}
CLOUDS = ("aws", "gcp", "azure", "alibaba")
PLACES = {
    "aws": "us-east-1", "gcp": "us-central1", "azure": "eastus", "alibaba": "cn-hangzhou",
}  # fmt: skip
WORKLOAD = """
version: 1
name: live
model: {{preset: bert-large}}
training: {{tokens: 2e9, global_batch: 256, sequence_length: 512, precision: fp16, stack: tuned}}
data: {{size: 16GB}}
constraints:
  deadline: 60d
  max_nodes: 1
  providers: [{providers}]
  regions: [{regions}]
  purchase_options: [on_demand]
  instance_types: {{allow: ['{types}']}}
"""
TYPES = {
    "aws": "p4d.24xlarge", "gcp": "a2-highgpu-1g", "azure": "Standard_ND96asr_v4",
    "alibaba": "ecs.gn7e-*",
}  # fmt: skip


class World:
    """Four clouds behind fakes, logged in; what they sell and what they refuse is a test's to say."""

    def __init__(self, tmp_path: Path, stack: ExitStack) -> None:
        self.tmp_path, self.stack = tmp_path, stack
        self.aws = aws.World(page_size=100)  # an entry more on a page is a call less
        self.servers: dict[str, FakeServer] = {}
        self.limits: dict[str, dict[str, float]] = {}

    def open(self, faults: Mapping[str, str] | None = None, **more: Any) -> None:
        """Start the fakes; `faults`: cloud to the fault of all its interfaces; `more`: routes by cloud."""
        every = {name: {"*": fault} for name, fault in (faults or {}).items()}
        routes = more.get("routes", {})
        makers: dict[str, Any] = {
            "aws": lambda f: aws.fake_aws(f, self.aws), "alibaba": alibaba.server,
            "gcp": lambda f: gcp.fake_gcp(f, routes=routes.get("gcp")),
            "azure": lambda f: azure.fake_azure(f, routes=routes.get("azure"), slow_s=LATE_S),
        }  # fmt: skip
        for name, make in makers.items():
            self.servers[name] = self.stack.enter_context(make(every.get(name)))

    def create(self, name: str, given: FetchOptions) -> Provider:
        server = self.servers[name]
        options = {**QUICK, "log": given.log, "regions": given.regions, **self.limits.get(name, {})}
        if name == "aws":
            only = FetchOptions(**options, endpoints={"aws_price_list": server.url})
            return AwsProvider(only, SharedClients(only), now=lambda: datetime.now(UTC))
        return {"gcp": gcp_setup.provider, "azure": azure_setup.provider, "alibaba": alibaba_provider}[name](
            server, **options
        )

    def file(self, *providers: str) -> Path:
        """A workload within providers, one region of each."""
        path = self.tmp_path / "live.yaml"
        places = (f"{name}/{PLACES[name]}" for name in providers)
        types = (TYPES[name] for name in providers)
        names, regions = ", ".join(providers), ", ".join(places)
        path.write_text(WORKLOAD.format(providers=names, regions=regions, types="', '".join(types)))
        return path


@pytest.fixture
def world(small_bundle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    with ExitStack() as stack:
        made = World(tmp_path, stack)
        monkeypatch.setattr("catalogs.refresh.run.create_provider", made.create)
        monkeypatch.setattr("catalogs.providers.quotas.create_provider", made.create)
        original = made.open

        def opened(*args: Any, **given: Any) -> None:
            original(*args, **given)
            for name, value in aws.environment(made.servers["aws"]).items():
                monkeypatch.setenv(name, value)

        made.open = opened  # type: ignore[method-assign]
        yield made


def _plan(done: CliResult) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(done.stdout)
    return plan


def _bought(done: CliResult) -> str:
    return str(_plan(done)["lines"][0]["provider"])


def test_prices_of_today_make_the_plan_on_every_cloud(run_cli: Run, world: World) -> None:
    """The cheapest cloud asks for more, so the plan moves to the next; another asks for less, so it moves there."""
    factor = {"azure": 1.0}
    world.open(
        routes={"azure": {azure.RETAIL: lambda request: _times(azure._retail(request), factor["azure"])}}
    )
    path = world.file(*CLOUDS)
    done = run_cli("optimize", path, "--prices", "live", "-o", "json")
    assert (done.code, _bought(done)) == (0, "aws")
    assert done.stderr.startswith(
        f"prices asked on {datetime.now(UTC):%Y-%m-%d} of aws, gcp, azure, alibaba\n"
    )
    assert _plan(done)["lines"][0]["price_as_of"] == f"{datetime.now(UTC):%Y-%m-%d}"
    world.aws.prices["on_demand"]["p4d.24xlarge"] = "30"
    done = run_cli("optimize", path, "--prices", "live", "-o", "json")
    assert (done.code, _bought(done)) == (0, "gcp")
    factor["azure"] = 0.8
    done = run_cli("optimize", path, "--prices", "live", "-o", "json")
    assert (done.code, _bought(done)) == (0, "azure")
    saved = world.tmp_path / "plan.json"
    saved.write_text(done.stdout)
    assert run_cli("verify", saved, "--workload", path).code == 0
    # the same store without a question: nobody is asked, and the plan is the same
    asked = {name: len(server.requests) for name, server in world.servers.items()}
    offline = run_cli("optimize", path, "-o", "json")
    assert _plan(offline)["lines"] == _plan(done)["lines"] and not offline.stderr
    assert {name: len(server.requests) for name, server in world.servers.items()} == asked


def test_the_price_of_the_last_cloud_counts_too(
    run_cli: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open()
    path = world.file("alibaba")
    before = run_cli("optimize", path, "--prices", "live", "-o", "json")
    monkeypatch.setitem(alibaba.ON_DEMAND, "ecs.gn7e-c16g1.32xlarge", 300.0)
    after = run_cli("optimize", path, "--prices", "live", "-o", "json")
    paid = [float(_plan(done)["lines"][0]["price_per_hour"]) for done in (before, after)]
    assert paid == [236.9, 300.0]


def _times(page: Any, factor: float) -> Any:
    """A page of Azure's retail prices, all dearer."""
    return {
        **page, "Items": [{**item, "retailPrice": item["retailPrice"] * factor} for item in page["Items"]]
    }  # fmt: skip


def _few(page: Any, limit: float) -> Any:
    """Every quota of a page lowered."""
    if isinstance(page, dict):
        return {
            key: limit if key in ("limit", "Value") else _few(value, limit) for key, value in page.items()
        }
    return [_few(one, limit) for one in page] if isinstance(page, list) else page


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_accounts_quota_binds_and_is_told_as_checked(run_cli: Run, world: World, cloud: str) -> None:
    limit = {"value": 5000.0}
    world.open(
        routes={
            "gcp": {gcp.REGION: lambda request: _few(gcp._region(request), limit["value"])},
            "azure": {azure.USAGES: lambda request: _few(azure._usages(request), limit["value"])},
        }
    )
    world.aws.quotas = _few(world.aws.quotas, limit["value"])
    path = world.file(cloud)
    done = run_cli("optimize", path, "--quota", "live")
    assert done.code == 0 and done.stderr == ""
    assert "quota within the account's limit (read 2" in done.unwrapped.partition("BEFORE YOU BUY")[2]
    assert "quota not checked" in run_cli("optimize", path).unwrapped
    limit["value"] = 0.0
    world.aws.quotas = _few(world.aws.quotas, 0.0)
    world.servers["alibaba"].routes = {
        **alibaba.routes(), "DescribeAccountAttributes": lambda request: json.loads(
            json.dumps(alibaba._attributes(request)).replace('"1000"', '"0"')
        )
    }  # fmt: skip
    for kept in (world.tmp_path / "cache").glob("quotas-*.json"):
        kept.unlink()
    none = run_cli("optimize", path, "--quota", "live", "-o", "json")
    assert none.code == 3
    (quota,) = [one for one in _plan(none)["filters"] if one["name"] == "quota"]
    assert quota["removed"] > 0


def test_a_cloud_that_is_down_is_named_and_its_last_prices_are_used(run_cli: Run, world: World) -> None:
    world.open({"gcp": "http_500_forever", "azure": "slow"})
    world.limits["azure"] = {"timeout_s": LIMIT_S}
    done = run_cli("optimize", world.file(*CLOUDS), "--prices", "live", "--quota", "live", "-o", "json")
    plan = _plan(done)
    assert (
        done.code == 4 and plan["lines"][0]["provider"] == "aws"
    )  # a plan all the same, and the code says so
    assert f"prices asked on {datetime.now(UTC):%Y-%m-%d} of aws, alibaba\n" in done.stderr
    for name in ("gcp", "azure"):
        assert f"warning: no live prices of {name} (unreachable): those of 20" in done.stderr
        assert f"warning: {name}: unreachable: " in done.stderr
        assert f"warning: quota of {name} not read: " in done.stderr
        assert any(text.startswith(f"no live prices of {name} ") for text in plan["warnings"])
    saved, path = world.tmp_path / "plan.json", world.file(*CLOUDS)
    assert run_cli("optimize", path, "--prices", "live", "-o", "json", "--out", saved).code == 4
    assert run_cli("verify", saved, "--workload", path).code == 0
    quiet = run_cli("-q", "optimize", world.file(*CLOUDS), "--prices", "live", "-o", "json")
    assert quiet.code == 4 and quiet.stderr.count("error: ") == 2 and "warning" not in quiet.stderr


def test_quotas_of_the_cloud_that_is_bought_from_must_have_been_read(run_cli: Run, world: World) -> None:
    world.open({"aws": "access_denied"})
    done = run_cli("optimize", world.file("aws"), "--quota", "live", "-o", "json")
    assert done.code == 4 and "warning: quota of aws not read: " in done.stderr
    assert _plan(done)["lines"][0]["quota"]["status"] == "not checked"


def test_nothing_refreshed_is_no_plan(run_cli: Run, world: World) -> None:
    world.open(dict.fromkeys(CLOUDS, "http_500_forever"))
    done = run_cli("optimize", world.file("gcp", "alibaba"), "--prices", "live")
    assert (done.code, done.stdout) == (4, "")
    assert "nothing was refreshed: gcp" in done.stderr and "; alibaba" in done.stderr


def test_a_login_that_is_missing_counts_where_the_workload_names_the_cloud(
    run_cli: Run, world: World
) -> None:
    world.open(
        {"gcp": "expired_credentials", "azure": "expired_credentials", "alibaba": "expired_credentials"}
    )
    path = world.file("aws", "gcp")
    assert run_cli("optimize", path, "--prices", "live").code == 4
    path.write_text(path.read_text().replace("  providers: [aws, gcp]\n", ""))
    done = run_cli("optimize", path, "--prices", "live")
    assert done.code == 0 and "warning: no live prices of gcp (credentials missing)" in done.stderr


@pytest.mark.parametrize("fault", ["", "access_denied", "malformed_json"])
def test_no_secret_is_shown_or_kept(run_cli: Run, world: World, fault: str) -> None:
    world.open({"gcp": fault, "azure": fault, "alibaba": fault} if fault else None)
    done = run_cli(
        "optimize", world.file(*CLOUDS), "--prices", "live", "--quota", "live", "-vv", "-o", "json"
    )
    files = [path.read_bytes() for path in world.tmp_path.rglob("*") if path.is_file()]
    for secret in ALL_SECRETS:
        assert secret not in done.stdout + done.stderr
        assert not any(secret.encode() in data for data in files)


def test_live_prices_and_another_catalog_exclude_each_other(
    run_cli: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open()
    path = world.file("aws")
    past = run_cli("optimize", path, "--prices", "live", "--as-of", "2026-11-20")
    assert past.code == 2 and "leave out --as-of" in past.stderr
    monkeypatch.setenv("PLANNER_CATALOG_DIR", str(world.tmp_path))
    named = run_cli("optimize", path, "--prices", "live")
    assert named.code == 2 and "PLANNER_CATALOG_DIR is set" in named.stderr
    monkeypatch.delenv("PLANNER_CATALOG_DIR")
    path.write_text(path.read_text().replace("[aws]", "[onprem]"))
    nobody = run_cli("optimize", path, "--prices", "live")
    assert nobody.code == 2 and "there is no way to query the prices of onprem" in nobody.stderr
    assert not any(server.requests for server in world.servers.values())


def test_nobody_is_asked_unless_the_command_line_says_so(
    run_cli: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open()
    for name in ("PLANNER_PRICES", "PLANNER_QUOTA", "PLANNER_OPTIMIZE_PRICES", "PLANNER_OPTIMIZE_QUOTA"):
        monkeypatch.setenv(name, "live")
    assert run_cli("optimize", world.file(*CLOUDS)).code == 0
    assert not any(server.requests for server in world.servers.values())
