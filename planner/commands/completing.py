"""Values that a shell completes: instance types, regions and providers of the catalog, presets, targets of exports.

Click asks for them only while a shell completes, so nothing here is read otherwise.
"""

from __future__ import annotations

import click


def instance_types(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Instance types that begin with the typed text; after a comma, the next of a list."""
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _column("instance_type") if name.startswith(begun)]


def regions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Regions that begin with the typed text."""
    return [name for name in _column("region") if name.startswith(incomplete)]


def rows_compared(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Rows of a comparison that begin with the typed text: places, instance types, providers."""
    from catalogs.store.load import load_catalog

    offers = load_catalog().offers
    places = {
        f"{provider}/{region}" for provider, region in zip(offers["provider"], offers["region"], strict=True)
    }
    names = places.union(map(str, offers["instance_type"]), map(str, offers["provider"]))
    return sorted(name for name in names if name.startswith(incomplete))


def providers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Providers that begin with the typed text."""
    return [name for name in _column("provider") if name.startswith(incomplete)]


def presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Presets of models that begin with the typed text."""
    from planner.inputs.presets import load_presets

    return sorted(name for name in load_presets() if name.startswith(incomplete.lower()))


def export_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Targets of `planner export` that begin with the typed text."""
    from planner.export.registry import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


def frameworks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Frameworks whose flags `planner export` knows that begin with the typed text."""
    from planner.export.frameworks.registry import FRAMEWORKS

    return [name for name in FRAMEWORKS if name.startswith(incomplete)]


def _column(name: str) -> list[str]:
    from catalogs.store.load import load_catalog

    return sorted({str(value) for value in load_catalog().offers[name]})


provider_option = click.option(
    "--provider",
    shell_complete=providers,
    default=None,
    metavar="NAME",
    help="Provider of the instance type, if several have one.",
)
