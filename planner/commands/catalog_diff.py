"""`planner catalog diff`: what changed between two catalogs."""

from __future__ import annotations

from pathlib import Path

import click

from planner.commands.completing import providers
from planner.commands.options import RATIO, examples, output_options
from planner.commands.output import show_answer
from planner.errors import GateError
from planner.render.formats import ANSWER_FORMATS


@click.command(
    "diff",
    epilog=examples(
        "planner catalog diff bundled latest",
        "planner catalog diff aws@2026-10-01 latest --min-change 1% --fail-above 5%",
    ),
)
@click.argument("old", default="bundled")
@click.argument("new", default="latest")
@click.option("--provider", "providers", shell_complete=providers, multiple=True, help="Only this provider.")
@click.option("--purchase-option", "purchase_options", multiple=True, help="Only this purchase option.")
@click.option("--min-change", type=RATIO, default="0%", show_default=True, help="Smallest change to list.")
@click.option(
    "--fail-above",
    type=RATIO,
    default=None,
    help="Exit code 5 when a price moved by more than this, up or down, or changed currency.",
)
@click.option(
    "--max-results",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Lines of a kind; 0: all.",
)
@output_options(ANSWER_FORMATS)
@click.pass_context
def diff(
    ctx: click.Context,
    old: str,
    new: str,
    providers: tuple[str, ...],
    purchase_options: tuple[str, ...],
    min_change: float,
    fail_above: float | None,
    max_results: int,
    output: str,
    out: Path | None,
) -> None:
    """Compare two catalogs: prices moved, offers and types new, gone or renamed.

    OLD and NEW are each `bundled`, `latest`, a date, PROVIDER@DATE, PROVIDER@latest or a directory.
    """
    from catalogs.inspection.diff import diff_refs
    from catalogs.offers.query import check_purchase_options
    from planner.catalog.diff import change_text, diff_answer

    check_purchase_options(purchase_options)
    catalog_in_use = ctx.meta.get("catalog_dir")  # of the group: the catalog in use, where the user named one
    if catalog_in_use is not None:
        old, new = (str(catalog_in_use) if ref == "latest" else ref for ref in (old, new))
    catalog_diff = diff_refs(
        old, new, min_change_ratio=min_change, providers=providers, purchase_options=purchase_options
    )
    show_answer(diff_answer(catalog_diff, max_results), output, out)
    if fail_above is not None and (beyond := catalog_diff.above(fail_above)):
        most = change_text(beyond[0].change_ratio)
        raise GateError(f"{len(beyond)} prices moved by more than {100 * fail_above:.4g} % (most: {most})")
