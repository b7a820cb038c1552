"""Which providers can be refreshed: the built-in ones, and those of installed packages.

A package adds one by the entry-point group `planner.providers`: name = provider id, value = a function
`create(options: FetchOptions) -> Provider`. A built-in of the same name stays: an installed package may not
replace one unseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.providers.base import FetchOptions, Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "planner.providers"
Create = Callable[[FetchOptions], Provider]

# Provider id -> module with `create`; imported only when that provider is asked for.
BUILT_IN: Mapping[str, str] = {
    "aws": "catalogs.providers.aws",
    "gcp": "catalogs.providers.gcp",
    "azure": "catalogs.providers.azure",
    "alibaba": "catalogs.providers.alibaba",
    "gpuhunt": "catalogs.providers.gpuhunt",
}
# Fetched when no provider is named: those that a core installation can always try.
DEFAULT = ("aws", "gcp", "azure", "alibaba")


# Clouds that come with a source of several.
COMES_WITH: Mapping[str, str] = dict.fromkeys(
    (
        "cloudrift",
        "crusoe",
        "datacrunch",
        "digitalocean",
        "hotaisle",
        "jarvislabs",
        "lambda",
        "nebius",
        "oci",
        "runpod",
        "vastai",
        "verda",
        "vultr",
    ),
    "gpuhunt",
)


def third_party() -> dict[str, EntryPoint]:
    """Entry points of installed packages by provider id, the built-in names left out."""
    from importlib.metadata import entry_points

    return dict(_found(entry_points))


@lru_cache(maxsize=1)  # every installed package is looked at: 5 ms, several times a refresh
def _found(entry_points: Callable[..., Iterable[EntryPoint]]) -> Mapping[str, EntryPoint]:
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    return {name: points[name] for name in sorted(points) if name not in BUILT_IN}


def provider_names() -> tuple[str, ...]:
    """Ids of all providers that can be asked for, built-in ones first."""
    return (*BUILT_IN, *third_party())


def check_names(names: Sequence[str]) -> None:
    """Refuse unknown provider ids.

    Raises:
        CatalogInputError: naming them, with a suggestion.
    """
    import difflib

    available = provider_names()
    for name in names:
        if name not in available:
            close = difflib.get_close_matches(name, available, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            hint = f"it comes with {COMES_WITH[name]}; " if name in COMES_WITH else hint
            raise CatalogInputError(
                f"unknown provider {name!r}; {hint}there are: {', '.join(available)} (a package may add one by the "
                f"entry-point group {ENTRY_POINT_GROUP})"
            )


def create_provider(name: str, options: FetchOptions) -> Provider:
    """Make a provider; its SDK is not imported before the first fetch.

    Raises:
        CatalogInputError: when the name is not registered.
        CatalogError: when its package is broken.
    """
    if name in BUILT_IN:
        create: Any = importlib.import_module(BUILT_IN[name]).create
    else:
        check_names([name])
        points = third_party()
        try:
            create = points[name].load()
        except Exception as error:  # a stranger's package may fail in any way
            raise CatalogError(
                f"provider {name!r} of package {points[name].value!r} cannot be loaded: {error}"
            ) from error
    provider = create(options)
    if not isinstance(provider, Provider):
        raise CatalogError(
            f"provider {name!r} lacks one of info, fetch_regions, fetch_instance_types, fetch_offers"
        )
    return provider
