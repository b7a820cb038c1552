"""Ctrl-C: a real signal to a real process, in every command that may take long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.startup import GRACE_S, EndedError
from tests.cli.test_commit import PLANS, write
from tests.conftest import ROOT, CliResult
from tests.planner.simulation.traces import write_recording

pytestmark = [pytest.mark.signals, pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")]
DAY = ("--as-of", "2026-11-20")
LATEST_S = GRACE_S + 60.0  # a busy machine; every question below would go on for ten minutes
# The child may inherit ignored signals (nohup, a shell's background job): Python's own handlers are put back first.
PROGRAM = """
import importlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

def hang(*_: object) -> None:
    print("ready", file=sys.stderr, flush=True)
    for _ in range(6000):  # in short steps: a signal just before the system call begins does not end it
        time.sleep(0.1)

where = %r
if where:
    module, name = where.split(":")
    setattr(importlib.import_module(module), name, hang)
from planner.cli import main
sys.exit(main())
"""
IMPORTING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            sys.meta_path.remove(self)
            signal.raise_signal({number})

sys.meta_path.insert(0, Finder())
"""
SOLVER = "solvers.execution.solve:_collect"


def interrupted(
    *arguments: str,
    hang: str = SOLVER,
    ready: str = "ready",
    times: int = 1,
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str, str, float]:
    """Send Ctrl-C, or another signal, once the command is ready: exit code, output, errors, seconds until it ended."""
    command = [sys.executable, "-c", PROGRAM % hang, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if ready in line:
                break
        else:
            pytest.fail(f"ended before it was ready: {process.wait()}")
        begun = time.monotonic()
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.1)
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err, time.monotonic() - begun


@pytest.mark.parametrize(
    "command",
    [
        ("portfolio", "examples/portfolio.yaml", "--gap", "0", *DAY),
        ("schedule", "examples/schedule.yaml"),
        ("serving", "examples/serving.yaml", *DAY),
    ],
    ids=lambda command: command[0],
)
def test_ctrl_c_while_a_solver_is_at_work(command: tuple[str, ...]) -> None:
    code, out, err, seconds = interrupted(*command, "-o", "json")
    assert code == 130, err
    assert seconds < LATEST_S
    assert "interrupted" in err and "Traceback" not in err
    if out:  # the best answer so far, whole
        json.loads(out)


def test_ctrl_c_during_the_search_for_a_pipeline() -> None:
    command = ("pipeline", "examples/pipeline.yaml", "--solver", "milp", *DAY, "-o", "json")
    code, out, err, seconds = interrupted(*command, hang="planner.pipelines.solve:local_choice")
    assert code == 130 and seconds < LATEST_S, err
    assert not out or json.loads(out)


def test_ctrl_c_during_the_search_for_a_fleet() -> None:
    command = ("optimize", "examples/embed-images-fleet.yaml", *DAY, "-o", "json")
    code, out, err, seconds = interrupted(*command, hang="planner.fleet.solve:knapsack_bound")
    assert code == 130 and seconds < LATEST_S, err
    assert not out or json.loads(out)["lines"]


def test_ctrl_c_during_a_search_for_commitments_leaves_the_best_answer(tmp_path: Path) -> None:
    scenarios = {"count": 60, "hours_per_year": 2000}
    question = write(tmp_path, pools=PLANS, scenarios=scenarios, risk={"weight": 0.5})
    command = ("commit", str(question), "-o", "json", "-v", "--gap", "0.00001%", "--time-limit", "600s")
    code, out, err, seconds = interrupted(*command, hang="", ready="bound")
    assert code == 130 and seconds < LATEST_S, err
    if out:
        answer = json.loads(out)
        assert answer["reason"] == "interrupted" and answer["regret"] is None
        assert answer["bound_usd"] <= answer["objective_usd"]
        assert any("interrupted before" in note for note in answer["notes"])


def test_ctrl_c_while_a_certificate_is_made_leaves_the_answer(tmp_path: Path) -> None:
    """The certificate of a large question takes longer than there is after Ctrl-C."""
    proof = tmp_path / "proof.json"
    command = ("commit", str(write(tmp_path, pools=PLANS)), "--certificate", str(proof), "-o", "json")
    code, out, err, seconds = interrupted(*command, hang="planner.commitments.certificate:build_certificate")
    assert code == 130 and seconds < LATEST_S, err
    assert json.loads(out)["plan"] and not proof.exists()


def test_a_second_ctrl_c_waits_for_nothing() -> None:
    code, out, err, seconds = interrupted("serving", "examples/serving.yaml", *DAY, times=2)
    assert code == 130 and seconds < LATEST_S
    assert "interrupted" in err and "Traceback" not in err
    assert not out or out.endswith("\n")


def test_ctrl_c_during_a_simulation(tmp_path: Path) -> None:
    traces = write_recording(tmp_path / "traces")
    command = ("simulate", "--traces", traces, "--work-hours", "6", "--deadline", "9h")
    code, out, err, seconds = interrupted(*command, hang="planner.simulation.answer:run_task")
    assert code == 130 and seconds < LATEST_S and not out, err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_termination_or_hang_up_ends_at_once_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    left, _, err, seconds = interrupted(
        "optimize", "examples/bert-large.yaml", "--out", str(tmp_path / "plan.json"), *DAY,
        hang="os:fsync", number=number,
    )  # fmt: skip
    assert (left, err.strip()) == (code, "error: ended")
    assert list(tmp_path.iterdir()) == []
    assert seconds < LATEST_S


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("module", ["planner.version", "click", "planner.startup", "numpy"])
def test_a_signal_while_modules_are_imported_shows_no_traceback(
    module: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """The signal comes when Python begins to look for the module; `-m planner` is the program's own process."""
    (tmp_path / "sitecustomize.py").write_text(IMPORTING.format(module=module, number=int(number)))
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PLANNER_REUSE_ANSWERS": "0"}
    command = [sys.executable, "-m", "planner", "optimize", "examples/bert-large.yaml"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=90)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1


@pytest.mark.parametrize(
    "swallowed", [RuntimeError("pandas is required, but was not installed"), InputError("damaged")]
)
def test_a_signal_that_a_library_takes_for_its_own_failure_ends_the_command(
    swallowed: Exception, run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB imports pandas: a SIGTERM meanwhile became a bill that could not be read, exit code 2."""

    def importing(*_: object) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        except EndedError:
            raise swallowed from None
        return 0

    monkeypatch.setattr("planner.cli._run", importing)
    done = run_cli("config", "show")
    assert (done.code, done.stderr.strip()) == (128 + signal.SIGTERM, "error: ended")
