"""`planner config show`: each setting, its value and the place it came from."""

from __future__ import annotations

import sys

import click

from planner.commands.options import examples
from planner.config import SETTINGS, load_settings


@click.group(epilog=examples("planner config show", "planner config show -o json"))
def config() -> None:
    """Show the program's settings."""


@config.command(epilog=examples("planner config show", "planner config show -o json"))
@click.option("-o", "--output", "fmt", type=click.Choice(["table", "json"]), default="table", help="Format.")
def show(fmt: str) -> None:
    """Print each setting with its value and its origin.

    The order is flag, PLANNER_* variable, ./planner.toml, the user's planner.toml, default.
    """
    resolved = load_settings()
    if fmt == "json":
        import json

        entries = {item.name: {"value": item.value, "origin": item.origin} for item in resolved}
        click.echo(json.dumps(entries, indent=2, sort_keys=True), file=sys.stdout)
        return
    rows = [("setting", "value", "origin", "meaning")]
    for item, setting in zip(resolved, SETTINGS, strict=True):
        rows.append((item.name, item.value or "-", item.origin, setting.help))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
        click.echo("  ".join([*cells, row[3]]), file=sys.stdout)
