"""The child process of `solve`, seen from its parent: arrays in by its stdin, results out by its stdout.

A message is a length (8 bytes, little endian) and that many bytes of `.npz` (no pickle). The child gets the
module search path first, so that it finds this package wherever the parent did.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Hashable
from dataclasses import asdict, replace
from typing import IO, Any

import numpy as np

from solvers.backends.base import Checked, feasible_start
from solvers.problem.errors import BackendError, ModelError
from solvers.problem.milp import Block, Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Termination

_BOOT = (
    "import sys,json;sys.path[:]=json.loads(sys.stdin.buffer.readline());"
    "from solvers.execution.staged import main;main()"
)
_ARRAYS = ("c", "lb", "ub", "integrality", "row_lo", "row_hi", "data", "indices", "indptr")
# Results of the stages on their way to who waits for them; an error, or None at the end.
Inbox = queue.SimpleQueue[tuple[str, Checked | BaseException | None]]
_ERRORS: dict[str, type[Exception]] = {
    "ModelError": ModelError, "BackendError": BackendError, "MemoryError": MemoryError,
}  # fmt: skip


class Child:
    """A running child process; its results land in `inbox` from a reader thread."""

    def __init__(self, problem: Milp, options: SolveOptions, inbox: Inbox) -> None:
        """Start the process and send it the model.

        Raises:
            OSError: the platform starts no process.
        """
        # One thread per library: the child solves on one core, and thread pools cost start-up time.
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._inbox = inbox
        message = json.dumps([entry or os.getcwd() for entry in sys.path]).encode() + b"\n"  # noqa: PTH109
        message += frame(_encode_problem(problem, options))
        self._threads = [
            threading.Thread(target=self._send, args=(message,), daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message)
            self._process.stdin.close()
        except OSError:
            pass  # the child is gone; the reader reports it

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while (content := read_frame(self._process.stdout)) is not None:
                stage, result = _decode_result(content)
                self._inbox.put((stage, result))
                if result is None:
                    return
        except MemoryError as error:
            self._inbox.put(("", error))
            return
        except (OSError, ValueError):
            pass  # not a message of ours: reported below
        code = self._process.wait()
        self._inbox.put(
            ("", RuntimeError(f"the solver process ended without an answer (exit status {code})"))
        )

    def end(self) -> None:
        """End the process, whatever it is doing, and release its pipes."""
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(timeout=1.0)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def frame(content: bytes) -> bytes:
    """Return a message: its length and its content."""
    return struct.pack("<Q", len(content)) + content


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next message's content; None where the stream has ended."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = struct.unpack("<Q", head)[0]
    content = stream.read(size)
    return content if len(content) == size else None


def _pack(meta: dict[str, Any], **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array(json.dumps(meta)), **arrays)
    return buffer.getvalue()


def _encode_problem(problem: Milp, options: SolveOptions) -> bytes:
    blocks = [(block.name, block.start, block.stop) for block in problem.column_blocks]
    rows = [(block.name, block.start, block.stop) for block in problem.row_blocks]
    plain = asdict(replace(options, start={}))
    del plain["start"]
    start = feasible_start(problem, options.start)
    meta = {"name": problem.name, "columns": blocks, "rows": rows, "options": plain}
    arrays = {name: getattr(problem, name) for name in _ARRAYS}
    return _pack(meta, start=np.zeros(0) if start is None else start, **arrays)


def decode_problem(content: bytes) -> tuple[Milp, SolveOptions]:
    """Return the model and the options that the parent sent; keys are column numbers."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        arrays = {name: file[name] for name in _ARRAYS}
        start = file["start"]
    problem = Milp(
        **arrays,
        column_keys=tuple(range(len(arrays["c"]))),
        column_blocks=tuple(Block(*block) for block in meta["columns"]),
        row_blocks=tuple(Block(*block) for block in meta["rows"]),
        name=meta["name"],
    )
    values: dict[Hashable, float] = {int(at): float(start[at]) for at in np.flatnonzero(start)}
    plain = meta["options"]
    plain["keep_blocks"] = tuple(plain["keep_blocks"])
    return problem, SolveOptions(start=values, **plain)


def encode_result(stage: str, checked: Checked | None, error: Exception | None) -> bytes:
    """Return the content of a message to the parent: a stage's result, an error, or the end (None)."""
    meta: dict[str, Any] = {"stage": stage, "end": checked is None}
    if error is not None:
        meta["error"] = [type(error).__name__, str(error)]
    if checked is None:
        return _pack(meta)
    meta |= {"termination": checked.termination.value, "nodes": checked.nodes, "message": checked.message}
    meta["point"] = checked.x is not None
    numbers = np.array([checked.objective, checked.bound])
    return _pack(meta, numbers=numbers, x=np.zeros(0) if checked.x is None else checked.x)


def _decode_result(content: bytes) -> tuple[str, Checked | BaseException | None]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        if "error" in meta:
            kind, text = meta["error"]
            return meta["stage"], _ERRORS.get(kind, RuntimeError)(text)
        if meta["end"]:
            return meta["stage"], None
        numbers, x = file["numbers"], file["x"]
    termination = Termination(meta["termination"])
    point = x if meta["point"] else None
    bound, objective = float(numbers[1]), float(numbers[0])
    return meta["stage"], Checked(termination, point, objective, bound, meta["nodes"], meta["message"])
