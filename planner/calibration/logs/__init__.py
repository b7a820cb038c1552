"""Readers of training logs: one module per format, found by name or by the look of the file.

A new format is a module with `read`, an entry in `READERS` and a fixture; the completeness test wants all three.
"""

from __future__ import annotations

import errno
import gzip
import importlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from planner.calibration.logs.look import is_progress, names_a_time
from planner.errors import InputError
from planner.files.limited import read_unpacked
from planner.records import record

MAX_BYTES = 1 << 30
_HEAD_BYTES = 1 << 16


@record(frozen=True)
class Log:
    """What a log says.

    Attributes:
        kind: name of the format.
        values: per step, or one figure for the run: seconds per step, or units per second (`unit`).
        unit: what `values` count: `seconds`, or `tokens`, `samples` or `steps` per second.
        steps: steps behind each value (a logging interval, or the whole run).
        global_batch: samples per step as the log states them, None where it does not.
        accelerators: in the run, None where the log does not tell.
        note: what the reader should know of this kind of figure; empty where there is nothing.
    """

    kind: str
    values: tuple[float, ...]
    unit: Literal["seconds", "tokens", "samples", "steps"] = "seconds"
    steps: int = 1
    global_batch: int | None = None
    accelerators: int | None = None
    note: str = ""


@record(frozen=True)
class ReadOptions:
    """Options a reader may need: `step_name` is a regular expression over the names of profiler ranges."""

    step_name: str | None = None


@record(frozen=True)
class Reader:
    """One format; `module` must hold `read(path, options) -> Log`."""

    module: str
    help: str

    def read(self, path: Path, options: ReadOptions) -> Log:
        """Read a log of this format."""
        found = cast("Callable[[Path, ReadOptions], Log]", importlib.import_module(self.module).read)
        return found(path, options)


READERS: dict[str, Reader] = {
    "csv": Reader("planner.calibration.logs.steps_csv", "step times or throughputs, one row per step"),
    "progress": Reader("planner.calibration.logs.progress", "CSV or JSON lines of step and time"),
    "megatron": Reader("planner.calibration.logs.megatron", "log lines of Megatron-LM and its descendants"),
    "hf": Reader(
        "planner.calibration.logs.hf", "trainer_state.json, all_results.json or output of the HF Trainer"
    ),
    "torch": Reader("planner.calibration.logs.torch_trace", "trace of torch.profiler (ProfilerStep ranges)"),
    "tensorboard": Reader(
        "planner.calibration.logs.tensorboard", "TensorBoard event file (events.out.tfevents...)"
    ),
    "wandb": Reader("planner.calibration.logs.wandb", "wandb-summary.json of Weights & Biases"),
    "nsys": Reader(
        "planner.calibration.logs.nsys", "Nsight Systems: SQLite export or nvtx_pushpop_trace CSV"
    ),
}


def read_log(path: Path, kind: str = "auto", options: ReadOptions | None = None) -> Log:
    """Read a training log.

    Args:
        path: the file.
        kind: a name in `READERS`, or `auto` to tell by the file's look.
        options: see `ReadOptions`.

    Raises:
        InputError: the file cannot be read or holds no step; names file, line and remedy.
    """
    head = _head(path)
    chosen = detect(head) if kind == "auto" else kind
    log = READERS[chosen].read(path, options or ReadOptions())
    if not log.values:
        raise InputError(f"{path}: no training step found in this {chosen} log; is --format right?")
    return log


def detect(head: bytes) -> str:
    """Name the format of a file that begins with `head`."""
    if head.startswith(b"SQLite format 3\x00"):
        return "nsys"
    if b"brain.Event:" in head[:64]:
        return "tensorboard"
    text = head.decode("utf-8", "replace")
    if text.lstrip().startswith("{") and ('"_wandb"' in text or '"_runtime"' in text):
        return "wandb"
    if b'"traceEvents"' in head or b'"schemaVersion"' in head:
        return "torch"
    if '"log_history"' in text or "train_runtime" in text:
        return "hf"
    if "elapsed time per iteration (ms)" in text:
        return "megatron"
    if "Duration (ns)" in text:
        return "nsys"
    if is_progress(text) and not names_a_time(text):
        return "progress"
    if text.lstrip().startswith(("{", "[")):
        return "hf" if '"train_loss"' in text else "torch"
    return "csv"


def _folder(path: Path) -> str:
    """What to name in place of a folder, which TensorBoard takes: the event file that was written last."""
    events = sorted(path.rglob("events.out.tfevents.*"), key=lambda file: (file.stat().st_mtime, file.name))
    if not events:
        return f"{path}: is a folder; name the log in it"
    more = f"; {len(events) - 1:,} older in it" if len(events) > 1 else ""
    return f"{path}: is a folder; name the event file of one run: {events[-1]}{more}"


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(_folder(path))
        if path.exists() and not path.is_file():
            raise InputError(
                f"{path}: cannot be read: not a regular file; save the log to one, for it is read twice"
            )
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            tail = b""
            if size > 2 * _HEAD_BYTES:  # the summary of a run stands at the end of its output
                file.seek(size - _HEAD_BYTES)
                tail = file.read(_HEAD_BYTES)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path, "rb") as packed:
                return packed.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if size > MAX_BYTES:
        raise InputError(f"{path}: larger than {MAX_BYTES >> 20:,} MiB; cut it to some tens of steps")
    if not head.strip():
        raise InputError(f"{path}: is empty")
    return head + tail


def read_text(path: Path) -> str:
    """Read a text log, gzip or plain; bytes that are no UTF-8 (progress bars of other encodings) are replaced."""
    try:
        data = read_unpacked(path, MAX_BYTES)
    except OSError as error:
        hint = "; cut it to some tens of steps" if error.errno == errno.EFBIG else ""
        raise InputError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    return data.decode("utf-8-sig", "replace")
