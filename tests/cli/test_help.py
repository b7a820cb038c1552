"""Help is instant and complete."""

from __future__ import annotations

import click
import pytest

from planner import __version__
from planner.cli import COMMANDS, root
from tests.conftest import Run


def test_help_names_every_command_and_the_exit_codes(run_cli: Run) -> None:
    result = run_cli("--help")
    assert result.code == 0
    assert result.stderr == ""
    for name, spec in COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert spec.help in result.stdout
    assert "3 infeasible" in result.stdout


def test_no_arguments_show_the_help(run_cli: Run) -> None:
    result = run_cli()
    assert result.code == 2
    assert "Commands:" in result.stdout + result.stderr


def test_version(run_cli: Run) -> None:
    assert run_cli("--version").stdout == f"planner {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(name: str, run_cli: Run) -> None:
    result = run_cli(name, "--help")
    assert result.code == 0, result.stderr
    assert result.stdout.startswith(f"Usage: planner {name}")
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.help
    for option in _options(command):
        assert option.help, f"{name} {option.opts} has no help"


def _options(command: click.Command) -> list[click.Option]:
    found = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if isinstance(command, click.Group):
        for child in command.commands.values():
            assert child.help, f"{child.name} has no help"
            found += _options(child)
    return found


def test_help_imports_no_library_but_click(run_process: Run) -> None:
    """What it costs is printed by `benchmarks.startup`."""
    code = (
        "import sys; from planner.cli import main; main(['--help']); "
        "print(sorted({'pandas', 'numpy', 'scipy', 'pydantic', 'yaml', 'rich', 'requests'} & set(sys.modules)))"
    )
    assert run_process("-c", code, python=True).stdout.splitlines()[-1] == "[]"
