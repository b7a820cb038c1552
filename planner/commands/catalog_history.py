"""`planner catalog history`: the snapshots, and the price of a machine over time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.completing import instance_types, providers, regions
from planner.commands.options import examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from catalogs.store.snapshots import Snapshot

_USUAL_OPTION = "on_demand"


@click.command(
    "history",
    epilog=examples(
        "planner catalog history p4d.24xlarge --region us-east-1 --purchase-option spot",
        "planner catalog history --compact --older-than 60",
    ),
)
@click.argument("instance_type", default="", shell_complete=instance_types)
@click.option(
    "--region", shell_complete=regions, default="", help="Only this region (default: the cheapest)."
)
@click.option("--provider", shell_complete=providers, default="", help="Only this provider.")
@click.option("--purchase-option", default=_USUAL_OPTION, show_default=True, help="Purchase option.")
@click.option("--variant", default="", help="Variant of the option, such as standard.no_upfront.")
@click.option("--compact", is_flag=True, help="Remove old snapshots whose content equals the previous one.")
@click.option("--prune", is_flag=True, help="Remove old snapshots except the first and last of each month.")
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    default=None,
    metavar="DAYS",
    help="Age of old snapshots (default: 30 days to compact, 365 to prune).",
)
@output_options(ANSWER_FORMATS)
def history(
    instance_type: str,
    region: str,
    provider: str,
    purchase_option: str,
    variant: str,
    compact: bool,
    prune: bool,
    older_than: int | None,
    output: str,
    out: Path | None,
) -> None:
    """Show the price of INSTANCE_TYPE over time; without it, list the snapshots."""
    from catalogs.offers.query import check_provider, check_purchase_options
    from catalogs.store.history import list_snapshots
    from planner.catalog.history import history_answer, snapshots_answer
    from planner.errors import InputError

    check_purchase_options([purchase_option])
    snapshots = list_snapshots()
    check_provider(provider, (snapshot.provider for snapshot in snapshots))
    if (compact or prune) and instance_type:
        raise InputError("--compact and --prune work on whole snapshots: leave the instance type out")
    if not instance_type and (region or variant or purchase_option != _USUAL_OPTION):
        raise InputError("--region, --purchase-option and --variant need an instance type")
    if compact or prune:
        _tidy(provider, compact, prune, older_than)
        return
    if older_than is not None:
        raise InputError("--older-than needs --compact or --prune")
    if instance_type:
        from catalogs.inspection.price_history import price_history

        changes = price_history(
            instance_type,
            region=region,
            provider=provider,
            purchase_option=purchase_option,
            option_variant=variant,
        )
        show_answer(history_answer(changes), output, out)
        return
    chosen = tuple(snapshot for snapshot in snapshots if provider in ("", snapshot.provider))
    show_answer(snapshots_answer(chosen), output, out)


def _tidy(provider: str, compact: bool, prune: bool, older_than: int | None) -> None:
    from catalogs.store import retention

    removed: list[Snapshot] = []
    if compact:
        days = retention.COMPACT_AFTER_DAYS if older_than is None else older_than
        removed += retention.compact(older_than_days=days, provider=provider or None)
    if prune:
        days = retention.PRUNE_AFTER_DAYS if older_than is None else older_than
        removed += retention.prune(older_than_days=days, provider=provider or None)
    for snapshot in removed:
        click.echo(
            f"removed {snapshot.provider}@{snapshot.as_of.isoformat()} ({snapshot.name})", file=sys.stdout
        )
    click.echo(f"{len(removed)} snapshots removed", file=sys.stderr)
