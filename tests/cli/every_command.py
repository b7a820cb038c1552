"""All commands of the program, as tests that hold something of each walk through them."""

from __future__ import annotations

from collections.abc import Iterator

import click


def every_command(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """A command after its subcommands, each with its name as it is typed, without the program's."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from every_command(found, f"{name} {child}".strip())
    yield name, command
