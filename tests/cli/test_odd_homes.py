"""Homes and folders that no shell makes: relative, of nobody, too long a name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from catalogs.cache.copies import user_folder
from tests.conftest import ROOT, CliResult

LONG = "/tmp/" + "x" * 300
VARIABLES = (
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "PLANNER_CACHE_DIR",
    "PLANNER_DATA_DIR",
)


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("value", ["~nobody-of-that-name/x", "~", "relative/home", LONG])
def test_an_odd_home_is_no_internal_error(
    variable: str,
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., CliResult],
) -> None:
    for name in VARIABLES[1:]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    done = run_cli("catalog", "list", "--max-results", "1")
    may_be_refused = value == LONG and variable in (
        "HOME",
        "XDG_CONFIG_HOME",
    )  # the user's settings are there
    assert done.code in ((0, 2) if may_be_refused else (0,)), done.stderr
    assert done.code == 0 or ("File name too long" in done.stderr and done.stderr.count("\n") == 1)


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG specification is for Linux")
def test_a_relative_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/home")
    assert user_folder("XDG_CACHE_HOME", "~/.cache") == tmp_path / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", "~/x")
    assert user_folder("XDG_CACHE_HOME", "~/.cache") == tmp_path / "x"


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG specification is for Linux")
@pytest.mark.parametrize("home", ["relative/home", "~nobody-of-that-name"])
def test_a_relative_home_is_ignored(home: str, tmp_path: Path) -> None:
    """The caches were written into the working folder."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    words = ["optimize", str(ROOT / "examples" / "bert-large.yaml"), "--as-of", "2026-11-20"]
    of_account = "import pwd, runpy; pwd.getpwuid = lambda _: type('account', (), {'pw_dir': '/dev/null'})\n"
    run = f"{of_account}import sys; sys.argv[0] = 'planner'; runpy.run_module('planner', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", run, *words],
        cwd=tmp_path, env={**environment, "HOME": home}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.catalog("small")
@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "PLANNER_DATA_DIR", "PLANNER_CACHE_DIR"])
def test_a_plan_needs_no_folder_that_cannot_be(
    variable: str, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    monkeypatch.setenv(variable, LONG)
    done = run_cli("optimize", str(ROOT / "examples" / "bert-large.yaml"))
    assert done.code == 0, done.stderr
