"""The program in processes of their own that need no start: one process imports it and forks for each command.

A start imports numpy, pydantic and two hundred modules, which is most of a short command. What a process is needed for
is as ever: arguments of its own, standard streams, signals, limits of memory, how it ends. What a start itself does
(`python -m planner`, what is imported when) is no business of this; tests of that start a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Imported before any question: no data is read by it (tests/architecture/test_walls.py), so none is shared.
IMPORTED = (
    "yaml", "pydantic", "planner.cli", "planner.commands.optimize", "planner.commands.validate",
    "planner.workloads.answer", "planner.workloads.kept", "planner.job.answer", "planner.inputs.load",
    "planner.plan.report", "planner.render.json", "planner.render.table", "planner.calibration.correction",
    "catalogs.offers.derive", "difflib", "planner.asked.options", "planner.candidates.plan_parts.launch",
    "planner.candidates.ways.outcomes", "planner.commands.live", "planner.config", "planner.inputs.settings",
    "planner.inputs.yaml12", "planner.job.overrides", "planner.plan.read", "planner.render.terminal", "planner.units",
)  # fmt: skip
SERVER = """
import contextlib, gc, importlib, json, os, signal, sys
for name in sys.argv[1].split(","):
    importlib.import_module(name)
if first := json.loads(sys.argv[2]):
    from planner.cli import main
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
        assert main(first) == 0
gc.freeze()
sys.stdout.write("ready\\n")
sys.stdout.flush()
while data := os.read(0, 1 << 20):
    while not data.endswith(b"\\n"):
        data += os.read(0, 1 << 20)
    asked = json.loads(data)
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # none takes so long
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            file = os.open(asked[name], os.O_RDWR)
            os.dup2(file, number)
            os.close(file)
        sys.argv = ["planner", *asked["arguments"]]
        exec(asked["code"])
        from planner.cli import main
        sys.exit(main())
    _, status = os.waitpid(child, 0)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


@dataclass
class Ended:
    """What a command wrote, and its exit code; a signal that ended it, negative."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Forks:
    """Commands of the program, each in a fork of one process that has imported it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder = process, folder

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        stdout: Path | None = None,
        code: str = "",
    ) -> Ended:
        """Run one command and wait for its end.

        Args:
            arguments: after the program's name.
            cwd: where it runs.
            env: its whole environment, by default that of this process.
            stdin: what it reads.
            stdout: where its output goes in place of being returned.
            code: Python to be run in the process before the command.
        """
        files = {name: self._folder / name for name in ("stdin", "stdout", "stderr")}
        for name, file in files.items():
            file.write_bytes(stdin if name == "stdin" else b"")
        asked = {
            "arguments": list(arguments), "cwd": str(cwd), "env": dict(os.environ if env is None else env),
            "code": code, **{name: str(file) for name, file in files.items()},
        }  # fmt: skip
        if stdout is not None:
            asked["stdout"] = str(stdout)
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None and answers is not None
        to.write(json.dumps(asked).encode() + b"\n")
        to.flush()
        answer = answers.readline()
        return Ended(int(answer), files["stdout"].read_bytes(), files["stderr"].read_bytes())


@contextlib.contextmanager
def forks(first: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[Forks]:
    """A process that has imported the program, within; it has no thread, so that it may fork.

    Args:
        first: a command that it runs before any other, of which each fork has what was read of the program's own data:
            two thirds of a short answer.
        env: what is added to the environment of that command.
    """
    given = {**os.environ, **(env or {}), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, ",".join(IMPORTED), json.dumps(list(first))],
            env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        with process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            yield Forks(process, Path(folder))
