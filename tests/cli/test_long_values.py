"""A value of 3,000 characters at every option and argument: refused by name, no line quotes over 200 characters of it.

Those of input files: `test_broken_files.py`, `test_broken_parts.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import planner
from planner.cli import root
from planner.errors import InputError, with_short_values
from tests.cli.every_command import every_command
from tests.cli.test_odd_files import BERT, DAILY, EXAMPLES, STATE, saved, words
from tests.conftest import CliResult
from tests.long_values import VALUES, quoted_whole

__all__ = ["saved"]
LATEST_S = 5.0
FREE = {  # any text means something, or is read only where something else is asked
    "--help", "--currency", "--run-tag", "--tags", "--selector", "--token-env", "--why-not", "--backend",
    "--workload of track", "--spot-evidence of verify",
}  # fmt: skip
NETWORK = ("mcp", "catalog refresh")  # what they are told is checked where the answer of a cloud is read
BILL = ("--focus", "BILL")
ASKED = {  # arguments with which a command reads its options; PLAN, BILL and LOG as in test_odd_files.py
    **dict.fromkeys(("optimize", "validate", "explain", "frontier", "compare", "whatif", "pools", "simulate"), (BERT,)),
    "estimate": (BERT, "--instance-type", "p4d.24xlarge"),
    "sweep": (BERT, "--results", "results.csv"),
    **{name: (f"EX/{name}.yaml",) for name in ("portfolio", "commit", "pipeline", "serving", "schedule")},
    "tco": ("EX/tco-8xh100.yaml",),
    "forecast": DAILY,
    "budget": ("EX/budgets.yaml", *DAILY),
    "review": BILL,
    "calibrate": (BERT, "LOG"),
    "advise": ("PLAN", *STATE),
    "track": ("PLAN", "--log", "LOG"),
    "diagnose": ("LOG",),
    "verify": ("PLAN",),
    "export": ("PLAN", "--to", "torchrun"),
    "diff": ("PLAN", "PLAN"),
}  # fmt: skip


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter that takes a text, of every command."""
    for name, parameter in ((name, one) for name, command in every_command(root) for one in command.params):
        option = max(parameter.opts, key=len)
        if getattr(parameter, "is_flag", False) or getattr(parameter, "count", False):
            continue
        if name not in NETWORK and not {option, f"{option} of {name}"} & FREE:
            yield name, parameter


TRIED = tuple(parameters())


@pytest.mark.parametrize("form", VALUES)
@pytest.mark.parametrize(
    ("name", "parameter"), TRIED, ids=[f"{name} {max(parameter.opts, key=len)}" for name, parameter in TRIED]
)
@pytest.mark.catalog("small")
def test_no_message_quotes_a_long_argument_whole(
    name: str,
    parameter: click.Parameter,
    form: str,
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., CliResult],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = VALUES[form]
    if isinstance(parameter, click.Argument):
        asked = [*name.split(), text]
    else:
        texts = [text] * max(1, parameter.nargs)
        asked = [
            *name.split(),
            *words(ASKED.get(name, ()), saved, tmp_path, ""),
            max(parameter.opts, key=len),
            *texts,
        ]
    begun = time.process_time()
    done = run_cli(*asked)
    assert done.code == 2, done.stderr
    assert not quoted_whole(done.stderr)
    assert "Traceback" not in done.stderr and time.process_time() - begun < LATEST_S


@pytest.mark.parametrize("form", VALUES)
@pytest.mark.parametrize("before", ["--", "--set=", "--set=model.preset=", ""])
def test_no_message_quotes_a_long_word_of_the_command_line_whole(
    before: str, form: str, run_cli: Callable[..., CliResult]
) -> None:
    for command in (("optimize", f"{EXAMPLES}/bert-large.yaml"), ()):
        done = run_cli(*command, before + VALUES[form])
        assert done.code == 2 and not quoted_whole(done.stderr)


VARIABLES = ("PLANNER_OUTPUT", "PLANNER_GAP", "PLANNER_CATALOG_DIR", "PLANNER_CATALOG_KEY", "PLANNER_DATA_DIR", "HOME",
             "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")  # fmt: skip


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("form", VALUES)
@pytest.mark.parametrize("before", ["", "/"])
def test_no_message_quotes_a_long_variable_whole(
    variable: str, form: str, before: str, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    monkeypatch.setenv(variable, before + VALUES[form])
    done = run_cli("optimize", f"{EXAMPLES}/bert-large.yaml")
    assert done.code in (0, 2, 4) and not quoted_whole(done.stderr), done.stderr


@pytest.mark.parametrize("key", ["catalog_dir", "catalog_key", "output", "gap", "cache_dir", "unknown_key"])
@pytest.mark.parametrize("form", VALUES)
def test_no_message_quotes_a_long_setting_whole(
    key: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    (tmp_path / "planner").mkdir()
    (tmp_path / "planner" / "planner.toml").write_text(f'{key} = "{VALUES[form]}"\n', "utf-8")
    (tmp_path / "planner.toml").write_text("" if "catalog" in key else f'{key} = "{VALUES[form]}"\n', "utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for command in (("config", "show"), ("optimize", f"{EXAMPLES}/bert-large.yaml")):
        done = run_cli(*command)
        assert done.code in (0, 2, 4) and not quoted_whole(done.stderr), done.stderr


@pytest.mark.parametrize("given", ["as_of", "objective", "catalog_dir", "solver", "workload"])
@pytest.mark.parametrize("form", VALUES)
def test_no_error_of_the_api_quotes_a_long_value_whole(given: str, form: str) -> None:
    wrong: dict[str, Any] = {"workload": f"{EXAMPLES}/bert-large.yaml", given: VALUES[form]}
    with pytest.raises(planner.PlannerError) as caught:
        planner.optimize(**wrong)
    assert not quoted_whole(str(caught.value))


def test_what_is_to_be_copied_stays_whole() -> None:
    path = "/home/" + "/".join(["a folder with spaces"] * 30) + "/plan.json"
    remedy = "'the first': " + "do this, then do that. " * 20 + "See 'the last'"
    for message in (f"{path!r} is not a plan", f"planner track '{path}'", remedy, f"it's {remedy}"):
        assert str(InputError(message)) == message == with_short_values(message, [path])


@pytest.mark.parametrize("part", ["\\' ", '\\" ', "' ", "'a ", "\\\\' ", "' \\\" ", "\n' "])
def test_the_time_grows_with_the_length_of_a_message(part: str) -> None:
    begun = time.process_time()
    with_short_values(f"a value without an end: '{part * 50_000}")
    assert time.process_time() - begun < LATEST_S / 2
