"""`planner mcp`: lets assistants ask the planner, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from planner.commands.options import examples


@click.command(epilog=examples("planner mcp", "planner mcp --folder workloads/"))
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Read only files below this folder.  [default: the current one]",
)
def mcp(folder: Path) -> None:
    """Serve an assistant on standard input and output (extra `mcp`).

    Tools: optimize, estimate, compare, price, review. They read files below the folder, write nothing and have no
    network. Register the command with your assistant: docs/mcp.md.
    """
    from planner.api.assistant_server import serve
    from planner.errors import InputError
    from planner.startup import share_freed_memory

    share_freed_memory()
    if not folder.is_dir():
        raise InputError(f"--folder {folder}: is not a folder")
    serve(folder)
