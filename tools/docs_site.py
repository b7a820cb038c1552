"""What MkDocs calls while it builds the site (mkdocs.yml): the command reference, and links that leave docs/."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import click

REFERENCE = "commands.md"
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)([^)]*)\)")


def command_reference() -> str:
    """Every command with its help, as a page."""
    from planner.cli import root

    context = click.Context(root, info_name="planner")
    parts = ["# Commands", "", "Made from `planner COMMAND --help`.", ""]
    for name, command in _commands(root, context, "planner"):
        help_text = command.get_help(click.Context(command, info_name=name, max_content_width=100))
        parts += [f"## {name}", "", "```text", help_text.strip(), "```", ""]
    return "\n".join(parts)


def _commands(group: click.Group, context: click.Context, name: str) -> Iterator[tuple[str, click.Command]]:
    for child in group.list_commands(context):
        command = group.get_command(context, child)
        assert command is not None
        yield f"{name} {child}", command
        if isinstance(command, click.Group):
            yield from _commands(command, click.Context(command, parent=context), f"{name} {child}")


def outward_links(markdown: str, page: str, repository: str) -> str:
    """Links to files outside docs/ as links into the repository; as plain text where no repository is named.

    Args:
        markdown: the page.
        page: its path within docs/.
        repository: address of the repository's files, or "".
    """

    def replace(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), match[1]))
        if target.endswith("/") or not target.startswith("../"):
            return match[0]
        return f"]({repository}/{target.removeprefix('../')}{match[2]})" if repository else f"](#{match[2]})"

    return _LINK.sub(replace, markdown)


def on_files(files: Any, config: Any) -> Any:
    """MkDocs: add the command reference to the pages."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, REFERENCE, content=command_reference()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """MkDocs: links that leave docs/."""
    repository = f"{config.repo_url.rstrip('/')}/blob/main" if config.repo_url else ""
    return outward_links(markdown, page.file.src_uri, repository)
