"""`planner catalog quarantine` and `planner catalog accept`: prices that wait until a person confirms them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.commands.completing import providers
from planner.commands.options import examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    "quarantine",
    epilog=examples("planner catalog quarantine", "planner catalog quarantine --provider aws -o csv"),
)
@click.option("--provider", shell_complete=providers, default="", help="Only this provider.")
@output_options(ANSWER_FORMATS)
def quarantine_command(provider: str, output: str, out: Path | None) -> None:
    """List quotes that moved too far to be used unseen, with the price in use instead."""
    from catalogs.refresh.confirm import quarantine
    from planner.catalog.quarantine import quarantine_answer

    show_answer(quarantine_answer(quarantine(provider=provider)), output, out)


@click.command(
    "accept",
    epilog=examples("planner catalog quarantine", "planner catalog accept 'aws/us-east-1/*/p5.48xlarge/*'"),
)
@click.argument("offers", nargs=-1, required=True, metavar="OFFER_ID...")
def accept_command(offers: tuple[str, ...]) -> None:
    """Confirm quotes in quarantine, by offer id or glob: they become the accepted prices."""
    from catalogs.refresh.confirm import accept

    accepted = accept(offers)
    for name in accepted:
        click.echo(f"accepted {name}", file=sys.stdout)
    click.echo(f"{len(accepted)} prices accepted", file=sys.stderr)
