"""Every help ends with two examples, which the command line accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from planner.cli import COMMANDS, root
from tests.conftest import ROOT


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand with its words on the command line."""
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {child}", part) for child, part in command.commands.items())


ALL = dict(_commands())


def _named_by(words: list[str]) -> str:
    """The longest run of leading words that is a command."""
    return max(name for name in ALL if words[: len(name.split())] == name.split())


@pytest.mark.parametrize("name", ALL)
def test_a_help_ends_with_two_examples_that_parse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    context = click.Context(ALL[name], info_name=name, max_content_width=100)
    shown = [line.strip() for line in ALL[name].get_help(context).rstrip().splitlines()]
    assert shown[-3] == "Examples:", "a group of examples is two lines that fit the page"
    used = []
    for line in shown[-2:]:
        program, *words = shlex.split(line.partition(" > ")[0].partition(" < ")[0])
        assert program == "planner"
        used.append(_named_by(words))
        ALL[used[-1]].make_context(used[-1], words[len(used[-1].split()) :])
        missing = [word for word in words if word.startswith("examples/") and not Path(word).exists()]
        assert not missing, line
    assert any(command == name or command.startswith(f"{name} ") for command in used)
