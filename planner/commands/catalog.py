"""`planner catalog ...`: what can be bought, how old it is, what is known of it, what changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from planner.commands.catalog_diff import diff
from planner.commands.catalog_history import history
from planner.commands.catalog_quarantine import accept_command, quarantine_command
from planner.commands.catalog_sign import keygen_command, sign_command, verify_command
from planner.commands.completing import instance_types, providers, regions
from planner.commands.options import DAY, DAYS, examples, output_options
from planner.commands.output import show_answer
from planner.commands.refresh import refresh_catalog
from planner.errors import CatalogError, InputError
from planner.render.formats import ANSWER_FORMATS

_DIRECTORY = "catalog_dir"
_AS_OF = click.option(
    "--as-of", type=DAY, default=None, metavar="DATE", help="Use the newest snapshots up to this day."
)


@click.group(
    epilog=examples(
        "planner catalog list --accelerator 'h100-*' --max-results 5", "planner catalog show p4d.24xlarge"
    )
)
@click.option(
    "--catalog-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Snapshot directory (default: PLANNER_CATALOG_DIR, otherwise the bundled one).",
)
@click.pass_context
def catalog(ctx: click.Context, catalog_dir: Path | None) -> None:
    """List, show and check prices and machines."""
    ctx.meta[_DIRECTORY] = catalog_dir


catalog.add_command(refresh_catalog)
catalog.add_command(diff)
catalog.add_command(history)
catalog.add_command(quarantine_command)
catalog.add_command(accept_command)
catalog.add_command(keygen_command)
catalog.add_command(sign_command)
catalog.add_command(verify_command)


@catalog.command(
    "list",
    epilog=examples(
        "planner catalog list --accelerator 'h100-*' --provider gcp --max-results 5",
        "planner catalog list --region 'aws/eu-*' --purchase-option spot --sort price-per-pflop-hour",
    ),
)
@click.option("--accelerator", "accelerators", multiple=True, help="Accelerator id or glob, such as a100.")
@click.option(
    "--provider", "providers", shell_complete=providers, multiple=True, help="Provider id, such as aws."
)
@click.option(
    "--region", "regions", shell_complete=regions, multiple=True, help="Region, or glob over provider/region."
)
@click.option(
    "--instance-type",
    "instance_types",
    shell_complete=instance_types,
    multiple=True,
    help="Instance type or glob.",
)
@click.option("--purchase-option", "purchase_options", multiple=True, help="Purchase option, such as spot.")
@click.option("--max-price", type=float, default=None, help="Highest price of a machine, USD per hour.")
@click.option("--min-accelerators", type=float, default=None, help="Minimum accelerators per machine.")
@click.option("--min-memory", type=float, default=None, help="Minimum accelerator memory per machine, GiB.")
@click.option(
    "--sort", default="price", show_default=True, help="price, or price-per-[pflop|gib|accelerator]-hour."
)
@click.option("--allow-flagged", is_flag=True, help="Include offers that are excluded by a flag.")
@_AS_OF
@click.option(
    "--max-results", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to show; 0: all."
)
@output_options(ANSWER_FORMATS)
@click.pass_context
def list_offers(
    ctx: click.Context, /, as_of: datetime | None, output: str, out: Path | None, **options: Any
) -> None:
    """List offers, cheapest first."""
    from catalogs.offers.query import SORT_KEYS, OfferQuery, query_offers
    from catalogs.store.load import load_catalog
    from planner.catalog.offers import offers_answer

    names = (
        "accelerators", "providers", "regions", "instance_types", "purchase_options", "sort", "allow_flagged",
    )  # fmt: skip
    query = OfferQuery(
        **{name: options[name] for name in names},
        max_usd_per_hour=_positive("--max-price", options["max_price"]),
        min_accelerators=_positive("--min-accelerators", options["min_accelerators"]),
        min_memory_gib=_positive("--min-memory", options["min_memory"]),
    )
    loaded = load_catalog(ctx.meta[_DIRECTORY], as_of=as_of and as_of.date())
    _check_providers(query.providers, [manifest.provider for manifest in loaded.manifests])
    query_result = query_offers(loaded, query)
    if query_result.unmatched:
        raise InputError("\n".join(_no_match(*miss) for miss in query_result.unmatched))
    limit = options["max_results"] or query_result.offers.n_rows
    table = query_result.offers.take(range(min(limit, query_result.offers.n_rows)))
    kept_out = (
        f"; {query_result.n_flagged:,} more excluded by a flag (--allow-flagged)"
        if query_result.n_flagged
        else ""
    )
    summary = f"{table.n_rows:,} of {query_result.offers.n_rows:,} shown{kept_out}"
    if query_result.unpriced:
        summary += f"; no price there: {_some(query_result.unpriced)}"
    answer = offers_answer(table, SORT_KEYS[query.sort], f"Offers, cheapest first: {summary}")
    show_answer(answer, output, out)
    if output in ("csv", "json", "yaml") and out is None and not getattr(ctx.obj, "quiet", False):
        click.echo(summary, file=sys.stderr)  # other formats say it themselves


def _some(names: Sequence[str], most: int = 8) -> str:
    """The first names, and the number of all."""
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


@catalog.command(
    epilog=examples(
        "planner catalog show p4d.24xlarge", "planner catalog show a2-highgpu-8g --provider gcp -o json"
    )
)
@click.argument("instance_type", shell_complete=instance_types)
@click.option(
    "--provider", shell_complete=providers, default="", help="Only this provider's machine of that name."
)
@click.option(
    "--max-results", type=click.IntRange(min=0), default=20, show_default=True, help="Prices to show; 0: all."
)
@output_options(ANSWER_FORMATS)
@_AS_OF
@click.pass_context
def show(
    ctx: click.Context,
    instance_type: str,
    provider: str,
    max_results: int,
    output: str,
    out: Path | None,
    as_of: datetime | None,
) -> None:
    """Show one instance type: machine, accelerator, prices, unknown values, sources and dates."""
    from catalogs.inspection.summary import find_types, summarize_type
    from catalogs.store.load import load_catalog
    from planner.catalog.types import types_answer

    loaded = load_catalog(ctx.meta[_DIRECTORY], as_of=as_of and as_of.date())
    summaries = [summarize_type(loaded, machine) for machine in find_types(loaded, instance_type, provider)]
    show_answer(types_answer(summaries, max_results), output, out)


@catalog.command(epilog=examples("planner catalog doctor", "planner catalog doctor --max-age 30d"))
@click.option(
    "-o",
    "--output",
    "fmt",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format.",
)
@click.option(
    "--max-age",
    type=DAYS,
    default=None,
    metavar="DAYS",
    help="Fail if a provider's newest price is older than this, such as 30d.",
)
@click.pass_context
def doctor(ctx: click.Context, fmt: str, max_age: int | None) -> None:
    """Check the catalog: hashes, ages, counts, refused rows. Exit code 4 if it is broken."""
    from catalogs.inspection.doctor import examine
    from planner.catalog.doctor import examination_text

    examination = examine(ctx.meta[_DIRECTORY], datetime.now(UTC).date())
    click.echo(examination_text(examination, fmt), file=sys.stdout, nl=False)
    stale = [
        p.manifest.provider
        for p in examination.providers
        if max_age is not None and p.newest_age_days > max_age
    ]
    if stale:
        click.echo(
            f"error: older than {max_age}d: {', '.join(stale)}; refresh or raise --max-age", file=sys.stderr
        )
    if stale or not examination.is_healthy:
        ctx.exit(CatalogError.exit_code)


def _positive(option: str, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise InputError(f"{option} {value:g}: a number above 0 is needed")
    return value


def _check_providers(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a provider by another name, such as its company's."""
    from planner.inputs.faults import near

    for name in names:
        if name not in known and (meant := near(name, known)):
            raise InputError(f"unknown provider {name!r} (did you mean {meant!r}?)")


def _no_match(field: str, text: str, close: tuple[str, ...]) -> str:
    from catalogs.offers.naming import accelerators_with, known_accelerators

    unsold = known_accelerators(text) or ([] if close else accelerators_with(text))
    if field == "accelerator" and unsold:
        return f"no offers with prices for {', '.join(unsold)}: refresh the catalog, or name another"
    hint = f"did you mean {', '.join(close)}?" if close else "nothing close to it is in the catalog"
    if field == "region" and close and close[0].lower().startswith(text.lower()):
        hint += f" '{text}*' takes all that begin with it"
    return f"no {field} fits {text!r} ({hint})"
