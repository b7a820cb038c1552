"""`planner catalog refresh`: today's prices from the clouds' own interfaces, kept as a dated snapshot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from planner.commands.completing import providers, regions
from planner.commands.options import SECONDS, examples
from planner.startup import as_shown

if TYPE_CHECKING:
    from catalogs.refresh.report import RefreshReport


@click.command(
    "refresh",
    epilog=examples(
        "planner catalog refresh",
        "planner catalog refresh --provider aws --region 'us-*' --purchase-option spot",
    ),
)
@click.option(
    "--provider",
    "providers",
    shell_complete=providers,
    multiple=True,
    help="Provider id (default: the large clouds).",
)
@click.option(
    "--region",
    "regions",
    shell_complete=regions,
    multiple=True,
    help="Region, or glob such as us-* or aws/us-*.",
)
@click.option("--purchase-option", "purchase_options", multiple=True, help="Only this option, such as spot.")
@click.option(
    "--accelerated-only/--all-types",
    default=True,
    show_default=True,
    help="Do not request machines without an accelerator; they are never stored.",
)
@click.option(
    "--timeout", type=SECONDS, default=60.0, help="Time limit of one complete response [default: 60s]."
)
@click.option(
    "--max-bytes",
    default="256MiB",
    show_default=True,
    metavar="SIZE",
    help="Size limit of a price list, unpacked; 32 times as much for lists read row by row.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Concurrent calls per provider.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the summary as JSON.")
@click.pass_context
def refresh_catalog(
    ctx: click.Context,
    providers: tuple[str, ...],
    regions: tuple[str, ...],
    purchase_options: tuple[str, ...],
    accelerated_only: bool,
    timeout: float,
    max_bytes: str,
    workers: int,
    as_json: bool,
) -> None:
    """Fetch prices and machines from the clouds.

    Uses the credentials of each cloud's tools (docs/providers.md) and stores none of them. If a provider or region
    fails, its last good prices are kept. Exit code 0: everything requested was refreshed (providers without
    credentials are skipped unless you name them); 4: a provider, region or interface failed (the rest is stored), or
    nothing was refreshed.
    """
    from catalogs.providers.base import FetchOptions
    from catalogs.providers.registry import DEFAULT
    from catalogs.refresh.run import refresh
    from planner.catalog.refresh import refresh_errors, refresh_json, refresh_table, refresh_warnings
    from planner.render.progress import refresh_progress

    _check_options(purchase_options)
    names = tuple(dict.fromkeys(providers or DEFAULT))
    quiet = getattr(ctx.obj, "quiet", False)
    options = FetchOptions(
        accelerated_only=accelerated_only,
        regions=regions,
        purchase_options=frozenset(purchase_options),
        max_workers=workers,
        timeout_s=timeout,
        max_bytes=_size("--max-bytes", max_bytes),
    )
    with refresh_progress(names, quiet=quiet) as on_progress:
        report = refresh(names, options, on_progress=on_progress)
    click.echo(refresh_json(report) if as_json else refresh_table(report), file=sys.stdout, nl=False)
    code = exit_code(report, named=bool(providers))
    for sentence in () if quiet else refresh_warnings(report):
        click.echo(as_shown(f"warning: {sentence}"), file=sys.stderr)
    for sentence in refresh_errors(report) if quiet and code else ():
        click.echo(as_shown(f"error: {sentence}"), file=sys.stderr)
    ctx.exit(code)


def exit_code(report: RefreshReport, *, named: bool) -> int:
    """0: complete; 2: nothing matches the request; 4: a provider, region or interface failed, or returned nothing.

    Args:
        report: what happened.
        named: whether the user named the providers; then one without credentials is a failure.
    """
    from planner.errors import CatalogError, InputError

    if not any(outcome.is_stored for outcome in report.outcomes):
        kinds = {failure.kind for outcome in report.outcomes for failure in outcome.failures}
        return InputError.exit_code if kinds == {"input"} else CatalogError.exit_code
    lost = any(
        failure.kind != "input"
        for outcome in report.outcomes
        if named or outcome.status != "skipped"
        for failure in outcome.failures
    )
    return CatalogError.exit_code if lost else 0


def _size(option: str, text: str) -> int:
    from planner.errors import InputError
    from planner.units import parse_size

    try:
        size = parse_size(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if size <= 0:
        raise InputError(f"{option} {text!r}: more than 0 is needed")
    return size


def _check_options(names: tuple[str, ...]) -> None:
    from catalogs.tables.model import PurchaseOption
    from planner.errors import InputError

    known = [option.value for option in PurchaseOption]
    for name in names:
        if name not in known:
            import difflib

            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
            raise InputError(f"--purchase-option {name!r} is not known ({hint})")
