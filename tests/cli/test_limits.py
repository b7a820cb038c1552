"""Limits that hold for every command, in real processes: memory, files that never end, ways out that are full."""

from __future__ import annotations

import errno
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_commit import write
from tests.conftest import CliResult
from tests.forked_program import Forks, forks

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits and devices of Linux"),
    pytest.mark.catalog("small"),
]
BERT = "examples/bert-large.yaml"
DAY = ("--as-of", "2026-11-20")


Planner = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def program() -> Iterator[Forks]:
    with forks() as program:
        yield program


@pytest.fixture
def planner(program: Forks) -> Planner:
    """Exit code and standard error of a command in a process of its own."""

    def run(*arguments: str, stdout: Path | None = None) -> tuple[int, str]:
        done = program.run(arguments, stdout=stdout)
        return done.returncode, done.stderr.decode()

    return run


def test_memory_beyond_the_limit_says_what_to_narrow(planner: Planner) -> None:
    code, err = planner(
        "optimize", BERT, "--set", "constraints.max_nodes=4096", *DAY, "--max-memory", "200MB"
    )
    assert code == 6
    assert err.startswith("error: needs more than 0.2 GiB of memory: narrow") and err.count("\n") == 1
    assert "--max-memory 4GiB" in err


def test_a_wrong_limit_is_a_wrong_flag(planner: Planner) -> None:
    code, err = planner("optimize", BERT, "--max-memory", "much")
    assert code == 2 and "'--max-memory': is not a size: 'much'" in err


@pytest.mark.parametrize("command", ["optimize", "verify", "calibrate", "validate", "portfolio", "advise"])
def test_a_file_without_end_is_left_at_the_limit(planner: Planner, command: str) -> None:
    more = ("--state", "/dev/zero") if command == "advise" else ()
    code, err = planner(command, "/dev/zero", *more)
    assert code == 2 and "larger" in err and err.count("\n") <= 3


def test_a_full_way_out_is_one_line(planner: Planner) -> None:
    code, err = planner("optimize", BERT, "-o", "json", *DAY, stdout=Path("/dev/full"))
    assert (code, err) == (7, "error: standard output: No space left on device\n")
    code, err = planner("optimize", BERT, "-o", "json", "--out", "/dev/full", *DAY)
    assert (code, err) == (7, "error: /dev/full: cannot be written: No space left on device\n")


def test_a_place_for_temporary_files_that_lacks_is_asked_for(
    run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container whose root is read-only; "standard output" had nothing to do with it."""

    def none_found() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none_found)
    done = run_cli("review", "--focus", "examples/focus")
    assert done.code == 7
    assert done.stderr == (
        "error: set TMPDIR to a folder that can be written, or give the container one (--tmpfs /tmp): "
        "No usable temporary directory found in ['/tmp']\n"
    )


def test_a_review_is_for_its_owner_alone(planner: Planner, tmp_path: Path) -> None:
    bill, out = "examples/daily-costs.csv", tmp_path / "forecast.json"
    out.write_text("", encoding="utf-8")
    out.chmod(0o644)
    code, err = planner("forecast", "--daily", bill, "-o", "json", "--out", str(out))
    assert (code, stat.S_IMODE(out.stat().st_mode)) == (0, 0o600), err
    code, err = planner("forecast", "--daily", bill, "-o", "json", "--out", str(out), "--mode", "640")
    assert (code, stat.S_IMODE(out.stat().st_mode)) == (0, 0o640), err
    assert planner("forecast", "--daily", bill, "--mode", "999")[0] == 2


def test_use_and_spend_are_for_their_owner_alone(planner: Planner, tmp_path: Path) -> None:
    proof, bought, plan, told = (
        tmp_path / name for name in ("proof.json", "bought.json", "plan.json", "told.json")
    )
    commit = ("commit", str(write(tmp_path)), "--no-regret", "--certificate", str(proof))
    code, err = planner(*commit, "--out", str(bought))
    assert code == 0, err
    assert planner("optimize", BERT, *DAY, "--out", str(plan))[0] == 0
    (tmp_path / "log.csv").write_text("step,time\n1,60\n2,120\n3,180\n", encoding="utf-8")
    code, err = planner("track", str(plan), "--log", str(tmp_path / "log.csv"), "--out", str(told))
    assert code in (0, 5), err
    assert [stat.S_IMODE(path.stat().st_mode) for path in (proof, bought, told)] == [0o600] * 3
