"""Secrets of every cloud stay where they are: not in output, logs, tracebacks, caches or snapshots."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.providers.aws import AwsProvider
from catalogs.providers.base import FetchOptions, Provider
from catalogs.providers.redact import HIDDEN, redact
from tests.catalogs.providers import azure_setup, gcp_setup
from tests.catalogs.providers.test_alibaba import provider as alibaba_provider
from tests.conftest import CliResult
from tests.fakes import alibaba, azure, gcp
from tests.fakes.aws import NOW, SECRETS, World, environment, fake_aws
from tests.fakes.aws_clients import SharedClients
from tests.fakes.http_base import FakeServer

CLOUDS = ("aws", "gcp", "azure", "alibaba")
ALIBABA_SECRET = "alibabaSecretOfTheUser0123456789"
ALL_SECRETS = (*SECRETS, gcp.SECRET, azure.SECRET, "LTAIsecretKeyIdOfTheUser", ALIBABA_SECRET)
FAULTS = (
    "",
    "access_denied",
    "expired_credentials",
    "http_500_forever",
    "malformed_json",
    "changed_schema",
    "truncated_body",
)
QUICK: dict[str, Any] = {"retries": 1, "timeout_s": 10.0, "backoff_s": 0.001, "max_wait_s": 0.01}


@pytest.fixture(params=FAULTS, ids=lambda fault: fault or "no_fault")
def clouds(
    request: pytest.FixtureRequest, small_bundle: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[str, FetchOptions], Provider]]:
    """All four clouds behind fakes with one fault everywhere, logged in with secrets that are easy to find."""
    faults = {"*": request.param} if request.param else None
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", ALIBABA_SECRET)
    with ExitStack() as stack:
        fakes: dict[str, FakeServer] = {
            "aws": stack.enter_context(fake_aws(faults, World(page_size=100))),
            "gcp": stack.enter_context(gcp.fake_gcp(faults)),
            "azure": stack.enter_context(azure.fake_azure(faults)),
            "alibaba": stack.enter_context(alibaba.server(faults)),
        }
        for name, value in environment(fakes["aws"]).items():
            monkeypatch.setenv(name, value)

        def create(name: str, given: FetchOptions) -> Provider:
            options = {**QUICK, "log": given.log}
            if name == "aws":
                only = FetchOptions(**options, regions=("us-east-1",))
                return AwsProvider(only, SharedClients(only), now=lambda: NOW)
            makers: dict[str, Callable[..., Provider]] = {
                "gcp": gcp_setup.provider,
                "azure": azure_setup.provider,
                "alibaba": alibaba_provider,
            }
            return makers[name](fakes[name], **options)

        monkeypatch.setattr("catalogs.refresh.run.create_provider", create)
        yield create


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "table"])
def test_no_secret_leaves_a_refresh(
    run_cli: Callable[..., CliResult],
    clouds: Any,
    form: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    done = run_cli("catalog", "refresh", "-vv", *form)
    assert all(name in done.stdout for name in CLOUDS)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for secret in ALL_SECRETS:
        assert secret not in done.stdout
        assert secret not in done.stderr
        assert secret not in caplog.text
        assert [path.name for path, data in files.items() if secret.encode() in data] == []


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("clouds", ["expired_credentials", "malformed_json"], indirect=True)
def test_no_secret_stands_in_a_traceback(clouds: Callable[[str, FetchOptions], Provider], name: str) -> None:
    """Of the error that a library user sees, with everything that led to it."""
    one = clouds(name, FetchOptions(**QUICK))
    try:
        one.fetch_instance_types(one.fetch_regions()[:1])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is printed
        text = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
        assert [secret for secret in ALL_SECRETS if secret in text] == []
    else:
        pytest.fail("the fault was not seen")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefghijklmnop",
        "https://x/skus?key=abcd1234&pageSize=5",
        "https://x/?sig=abcd%2F1234 failed",
        "the key AKIAIOSFODNN7EXAMPLE is unknown",
        "the key LTAI4GabcdefghijklmnoP is unknown",
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    hidden = redact(text)
    assert HIDDEN in hidden
    for part in ("abcdefghijklmnop", "abcd", "IOSFODNN7", "4Gabc", "SyA-123", "eyJ"):
        assert part not in hidden


def test_ordinary_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "short")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/somewhere/key-file.json")
    text = (
        "missing permission: ec2:DescribeInstanceTypes; run `aws sso login`; short /somewhere/key-file.json"
    )
    assert redact(text) == text


def test_the_environments_secrets_are_hidden_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG")
    assert redact("bad: wJalrXUtnFEMI/K7MDENG!") == f"bad: {HIDDEN}!"
