"""Every option of every command is on a page of that command, not in its help alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import click

from planner.cli import root
from tests.cli.every_command import every_command
from tests.conftest import ROOT

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
PARAGRAPH = re.compile(r"\n(?=\s*\n|\||- )")
SHARED = "Options of every command"
MANY = 7
NO_PAGES = (
    "benchmarks.md",
    "reliability.md",
    "migration.md",
    "tried.md",
    "faults.md",
)  # not where a user looks


def options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """All options with the name of their command, subcommands included."""
    for name, one in every_command(command):
        yield from ((name, option) for option in one.params if isinstance(option, click.Option))


def _section(page: str, title: str) -> str:
    """The text under a heading."""
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def _is_documented(command: str, names: set[str], pages: dict[str, list[tuple[str, set[str]]]]) -> bool:
    """Whether a page that names the command names the option, or a paragraph (item, row) that names it in code.

    Args:
        command: such as `catalog list`; a page names it as `planner catalog list`.
        names: of the option.
        pages: their paragraphs, each with the options in it.
    """
    of_command = re.compile(rf"planner {re.escape(command)}(?![\w-])")
    in_code = re.compile(rf"`{re.escape(command)}(?![\w-])")
    for texts in pages.values():
        saying = [text for text, said in texts if names & said]
        if any(in_code.search(text) for text in saying):
            return True
        if saying and any(of_command.search(text) for text, _ in texts):
            return True
    return False


def test_every_option_is_on_a_page_of_its_command() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")}
    pages = {
        str(page): [(part, set(OPTION.findall(part))) for part in PARAGRAPH.split(text)]
        for page, text in texts.items()
        if page.name not in NO_PAGES
    }
    shared = set(OPTION.findall(_section(texts[ROOT / "docs" / "index.md"], SHARED)))
    found = [(command, option) for command, option in options(root) if not option.hidden]
    assert len(found) > 300
    missing = []
    for command, option in found:
        names = {*option.opts, *option.secondary_opts}
        if not names & shared and not _is_documented(command, names, pages):
            missing.append(f"{command} {option.opts[-1]}")
    assert missing == [], "name them on the page of their command, in one line each"


def test_shared_options_are_those_of_many_commands() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    uses = Counter(name for _, option in options(root) for name in option.opts)
    rare = [
        name for name in OPTION.findall(_section(text, SHARED)) if uses[name] < MANY and name != "--version"
    ]
    assert rare == [], "an option of few commands belongs on their pages"
