"""Every option of every command is in the documentation, not in its help alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from planner.cli import root
from tests.conftest import ROOT


def options(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Option]]:
    """All options with the name of their command, subcommands included."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from options(found, f"{name} {each}".strip())
    yield from ((name, option) for option in command.params if isinstance(option, click.Option))


def test_every_option_is_on_a_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    words = set(
        re.findall(r"(?<![\w-])--[a-z][\w-]*", "\n".join(page.read_text(encoding="utf-8") for page in pages))
    )
    found = list(options(root))
    assert len(found) > 300
    missing = [
        f"{command} {option.opts[-1]}"
        for command, option in found
        if not option.hidden and not words & {*option.opts, *option.secondary_opts}
    ]
    assert missing == [], "name them on the page of their command, in one line each"
