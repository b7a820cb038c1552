"""The shell around the commands: exit codes, messages, verbosity, settings. The commands here are fakes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from catalogs.errors import CatalogError as StoreError
from catalogs.errors import CatalogInputError
from planner import cli, errors
from planner.config import SETTINGS, load_settings
from tests.conftest import ROOT, Run

FAKE = "planner_fake_command"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Register a command `fake` that runs the given function."""
    monkeypatch.setitem(cli.COMMANDS, "fake", cli.CommandSpec(FAKE, "command", "A fake."))
    monkeypatch.setattr(cli.root, "commands", {})

    def register(action: Callable[[], object]) -> None:
        @click.command()
        @click.option("--max-results", type=int, default=5)
        def command(max_results: int) -> object:
            if action is show_max:
                click.echo(max_results)
            return action()

        module = ModuleType(FAKE)
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, FAKE, module)

    yield register


def show_max() -> None:
    """A marker: the fake prints its option."""


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("w.yaml:3:1: model: unknown"), 2),
        (errors.InfeasibleError("nothing fits"), 3),
        (errors.CatalogError("stale"), 4),
        (errors.GateError("5 % exceeded"), 5),
        (errors.TimeLimitError("no plan in 30 s"), 6),
        (StoreError("catalog: snapshot is damaged"), 4),
        (CatalogInputError("static.csv:2: price: not a number"), 2),
        (click.UsageError("wrong flag"), 2),
        (KeyboardInterrupt(), 130),
        (RuntimeError("boom"), 1),
        (errors.PlannerError("other"), 1),
    ],
)
def test_each_error_has_its_exit_code_and_leaves_stdout_empty(
    fake: Callable[..., None], run_cli: Run, error: BaseException, code: int
) -> None:
    fake(raising(error))
    result = run_cli("fake")
    assert result.code == code
    assert result.stdout == ""
    assert str(error) in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("args", [("-v", "fake"), ("fake", "-v")])
def test_a_defect_shows_its_traceback_only_on_demand(
    fake: Callable[..., None], run_cli: Run, args: tuple[str, ...]
) -> None:
    fake(raising(RuntimeError("boom")))
    short = run_cli("fake").stderr
    assert short == "error: internal error: RuntimeError: boom; run with -v for the traceback\n"
    assert "Traceback" in run_cli(*args).stderr


def test_an_input_error_shows_no_traceback_with_v(fake: Callable[..., None], run_cli: Run) -> None:
    fake(raising(errors.InputError("bad")))
    assert "Traceback" not in run_cli("fake", "-v").stderr
    assert "Traceback" in run_cli("fake", "-vv").stderr


def test_messages_cannot_steer_the_terminal(fake: Callable[..., None], run_cli: Run) -> None:
    fake(raising(errors.InputError("w.yaml:1:1: \x1b[2Jname\nsecond line")))
    assert run_cli("fake").stderr == "error: w.yaml:1:1: \\x1b[2Jname\nsecond line\n"


@pytest.mark.parametrize(("action", "code"), [(lambda: 3, 3), (lambda: None, 0), (lambda: True, 0)])
def test_a_command_may_return_its_exit_code(
    fake: Callable[..., None], run_cli: Run, action: Callable[[], object], code: int
) -> None:
    fake(action)
    assert run_cli("fake").code == code


def test_a_command_may_exit_through_click(fake: Callable[..., None], run_cli: Run) -> None:
    fake(lambda: click.get_current_context().exit(3))
    assert run_cli("fake").code == 3


def test_logs_go_to_stderr_and_their_handler_goes_away(fake: Callable[..., None], run_cli: Run) -> None:
    import logging

    def action() -> None:
        logging.getLogger("planner.test").info("looking")
        logging.getLogger("planner.test").debug("closely")

    fake(action)
    before = list(logging.getLogger().handlers)
    assert run_cli("fake").stderr == ""
    shown = run_cli("fake", "-v")
    assert shown.stderr == "INFO planner.test: looking\n"
    assert shown.stdout == ""
    assert "DEBUG planner.test: closely" in run_cli("-vv", "fake").stderr
    assert list(logging.getLogger().handlers) == before


@pytest.mark.parametrize(
    ("typed", "meant"), [("optimise", "optimize"), ("Catalogs", "catalog"), ("conf", "config")]
)
def test_a_near_miss_is_answered_with_the_command_meant(run_cli: Run, typed: str, meant: str) -> None:
    result = run_cli(typed)
    assert result.code == 2
    assert f"Did you mean '{meant}'?" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("--deadline", "constraints.deadline"), ("--budget", "constraints.budget_usd"),
        ("--provider", "constraints.providers"), ("--batch-size", "training.global_batch"),
        ("--pipeline-parallel", "training.layout.pipeline_parallel"),
    ],
)  # fmt: skip
def test_an_option_that_is_a_key_of_the_workload_is_answered_with_set(
    run_cli: Run, option: str, key: str
) -> None:
    result = run_cli("optimize", "w.yaml", option, "3")
    assert result.code == 2
    assert f"It is a key of the workload: --set {key}=VALUE" in " ".join(result.stderr.split())
    assert "--set" not in run_cli("optimize", "w.yaml", "--detials").stderr
    assert "key of" not in run_cli("optimize", "w.yaml", "--name", "x").stderr  # of the file and of its model
    assert "key of" not in run_cli("optimize", "w.yaml", "--tensor-parallel", "8").stderr  # of two sections
    assert "--set" not in run_cli("tco", "w.yaml", option, "3").stderr  # has no --set


def test_a_far_miss_lists_the_commands(run_cli: Run) -> None:
    assert f"There are: {', '.join(cli.COMMANDS)}" in " ".join(run_cli("xyzzy").stderr.split())


def test_a_command_that_is_no_command_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, run_cli: Run, fake: Callable[..., None]
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "fake", cli.CommandSpec("planner.cli", "PROGRAM", "Wrong."))
    assert run_cli("fake").code == 1


def test_settings_reach_every_command_and_its_flag_wins(
    fake: Callable[..., None], run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(show_max)
    assert run_cli("fake").stdout == "5\n"
    monkeypatch.setenv("PLANNER_MAX_RESULTS", "7")
    assert run_cli("fake").stdout == "7\n"
    assert run_cli("fake", "--max-results", "9").stdout == "9\n"


def test_settings_precedence(tmp_path: Path) -> None:
    user = tmp_path / "user.toml"
    user.write_text('gap = "1%"\nmax_results = 3\noutput = "md"\n', encoding="utf-8")
    (tmp_path / "planner.toml").write_text('max_results = 4\noutput = "json"\n', encoding="utf-8")
    env = {"PLANNER_OUTPUT": "yaml", "PLANNER_TIME_LIMIT": ""}
    found = {s.name: s for s in load_settings(directory=tmp_path, environ=env, user_file=user)}
    assert (found["output"].value, found["output"].origin) == ("yaml", "PLANNER_OUTPUT")
    assert (found["max_results"].value, found["max_results"].origin) == ("4", str(tmp_path / "planner.toml"))
    assert (found["gap"].value, found["gap"].origin) == ("1%", str(user))
    assert (found["time_limit"].value, found["time_limit"].origin) == ("30s", "default")


def test_a_folder_named_in_a_file_reaches_the_catalog_and_is_relative_to_the_file(
    fake: Callable[..., None], run_cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import os

    (tmp_path / "planner.toml").write_text('catalog_dir = "prices"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    seen: list[str | None] = []
    fake(lambda: seen.append(os.environ.get("PLANNER_CATALOG_DIR")))
    assert run_cli("fake").code == 0
    assert seen == ["prices"]
    assert "PLANNER_CATALOG_DIR" not in os.environ
    monkeypatch.setenv("PLANNER_CATALOG_DIR", "elsewhere")
    assert run_cli("fake").code == 0
    assert seen[1] == os.environ["PLANNER_CATALOG_DIR"] == "elsewhere"


def test_every_fault_in_the_settings_is_named(tmp_path: Path) -> None:
    (tmp_path / "planner.toml").write_text('max_result = 4\ngap = "wide"\n', encoding="utf-8")
    user = tmp_path / "user.toml"
    user.write_bytes(b"\xff\xfe")
    with pytest.raises(errors.InputError) as caught:
        load_settings(directory=tmp_path, environ={"PLANNER_MAX_RESULTS": "-1"}, user_file=user)
    text = str(caught.value)
    assert "max_result: unknown setting (did you mean 'max_results'?)" in text
    assert "gap: a ratio such as 0.1% or 0.001 is needed, not 'wide'" in text
    assert "PLANNER_MAX_RESULTS: max_results: a whole number above 0 is needed, not '-1'" in text
    assert f"{user}: not valid TOML" in text


def test_an_unreadable_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "planner.toml").mkdir()
    with pytest.raises(errors.InputError, match="cannot be read"):
        load_settings(directory=tmp_path, environ={}, user_file=tmp_path / "none.toml")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_every_default_is_a_value_the_setting_takes(setting: object) -> None:
    assert isinstance(setting, type(SETTINGS[0]))
    assert setting.help
    assert not setting.default or setting.check(setting.default) == ""


def test_config_show_names_each_value_and_its_origin(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_GAP", "0.5%")
    shown = json.loads(run_cli("config", "show", "-o", "json").stdout)
    assert list(shown) == sorted(setting.name for setting in SETTINGS)
    assert shown["gap"] == {"value": "0.5%", "origin": "PLANNER_GAP"}
    text = run_cli("config", "show").stdout
    assert "max_results" in text
    assert "PLANNER_GAP" in text


def test_a_bad_setting_is_an_input_error(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_OUTPUT", "pdf")
    result = run_cli("config", "show")
    assert result.code == 2
    assert (
        "PLANNER_OUTPUT: output: one of table, json, csv, yaml, md, html, xlsx, focus is needed, not 'pdf'"
        in result.stderr
    )


def test_a_reader_that_goes_away_is_no_error(base_environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "config", "show"],
        cwd=ROOT,
        env=base_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors_seen = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors_seen == b""


def test_an_ascii_terminal_gets_escapes_not_a_traceback(run_process: Run) -> None:
    result = run_process("réseau", env={"PYTHONIOENCODING": "ascii"})
    assert result.code == 2
    assert "r\\xe9seau" in result.stderr


def test_shell_completion_answers_with_a_script(run_process: Run) -> None:
    result = run_process(env={"_PLANNER_COMPLETE": "bash_source"})
    assert "_planner_completion" in result.stdout
    names = run_process(
        env={"_PLANNER_COMPLETE": "bash_complete", "COMP_WORDS": "planner opt", "COMP_CWORD": "1"}
    )
    assert names.stdout.strip() == "plain,optimize"
