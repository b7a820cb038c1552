"""Providers of other packages: found by their entry point, told when broken, never in a built-in's place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.providers import registry
from catalogs.providers.base import FetchOptions, Provider
from catalogs.refresh.run import refresh
from tests.conftest import CliResult
from tests.fakes.provider import FakeProvider

GROUP = registry.ENTRY_POINT_GROUP


def make_fake(options: FetchOptions) -> FakeProvider:
    """What a package of somebody else would offer."""
    return FakeProvider("mycloud", regions=("moon-1",)).with_options(options)


def make_incomplete(options: FetchOptions) -> Any:
    """Not a provider."""
    return object()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entry points of installed packages."""
    points = [
        EntryPoint("mycloud", f"{__name__}:make_fake", GROUP),
        EntryPoint("broken", "no_such_package_anywhere:create", GROUP),
        EntryPoint("incomplete", f"{__name__}:make_incomplete", GROUP),
        EntryPoint("aws", f"{__name__}:make_fake", GROUP),
    ]
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [p for p in points if p.group == group]
    )


def test_a_package_adds_a_provider(installed: None, home: Path) -> None:
    assert registry.provider_names()[-3:] == ("broken", "incomplete", "mycloud")
    (outcome,) = refresh(["mycloud"], FetchOptions()).outcomes
    assert (outcome.status, outcome.n_offers) == ("added", 1)


def test_a_built_in_is_not_replaced_unseen(installed: None) -> None:
    made = registry.create_provider("aws", FetchOptions())
    assert not isinstance(made, FakeProvider) and made.info.name == "aws"


def test_a_broken_package_is_told_and_hides_no_other(installed: None, home: Path) -> None:
    report = refresh(["broken", "incomplete", "mycloud"], FetchOptions())
    assert [outcome.status for outcome in report.outcomes] == ["failed", "failed", "added"]
    assert "no_such_package_anywhere" in report.outcomes[0].failures[0].message
    assert "lacks one of info, fetch_regions" in report.outcomes[1].failures[0].message


def test_an_unknown_name_is_an_input_error(installed: None) -> None:
    with pytest.raises(CatalogInputError, match="did you mean mycloud"):
        registry.create_provider("mycluod", FetchOptions())


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_every_built_in_is_made_without_any_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets are closed to tests and no credentials are there: making one must need neither."""
    made = registry.create_provider(name, FetchOptions())
    assert isinstance(made, Provider) and made.info.name == name
    assert made.info.purchase_options


def test_making_the_providers_imports_no_sdk(run_process: Callable[..., CliResult]) -> None:
    code = (
        "import sys; from catalogs.providers.registry import BUILT_IN, create_provider;"
        "from catalogs.providers.base import FetchOptions;"
        "[create_provider(name, FetchOptions()) for name in BUILT_IN];"
        "print([m for m in ('boto3', 'botocore', 'google.cloud', 'azure', 'requests', 'pandas', 'gpuhunt') "
        "if m in sys.modules])"
    )
    assert run_process("-c", code, python=True).stdout.strip() == "[]"


def test_the_default_providers_are_registered() -> None:
    assert set(registry.DEFAULT) <= set(registry.BUILT_IN)
    assert sys.modules[registry.__name__] and issubclass(CatalogInputError, CatalogError)
