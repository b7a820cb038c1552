"""What a launcher's loop saw of spot, kept as a probe log that `--spot-evidence` and `spot.evidence` read back.

A row per zone and question, changed or not: a reader takes a value to hold for at most three usual intervals, so hours
in which nobody asked stay unknown instead of counting as an unbroken spell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.files import write_atomically
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.inputs.faults import Fault
from planner.spot.traces.own import COLUMNS

if TYPE_CHECKING:
    from planner.advice.question import Question
    from planner.inputs.state_load import LoadedState

Row = Mapping[str, str]
LOCK_TIMEOUT_S = 10.0
_PLACE = COLUMNS[: COLUMNS.index("available")]  # moment and gang: what two rows of one observation share


def recorded_rows(question: Question, loaded: LoadedState) -> tuple[Row, ...]:
    """What the state saw of its zones, in the columns of our probe log, prices of all nodes where the state has them.

    Raises:
        InputError: the state does not say at what moment it was written.
    """
    from planner.advice.question import has_moment

    if not has_moment(loaded.state):
        text = "counts hours from the plan's start: --record needs the moment, like 2026-12-01T08:00Z"
        raise loaded.error([Fault(("now",), text)])
    return tuple(_rows(question, loaded))


def _rows(question: Question, loaded: LoadedState) -> Iterator[Row]:
    state, nodes = loaded.state, question.plan.nodes
    for place, seen in zip(question.job.zones, state.zones, strict=True):
        yield {
            "time": question.now.astimezone(UTC).isoformat(timespec="seconds"),
            "provider": place.provider,
            "region": place.region,
            "zone": place.name,
            "instance_type": place.instance_type,
            "gang": str(nodes),
            "available": str(nodes if seen.available else 0),
            "spot_usd_per_hour": _usd(seen.usd_per_hour, nodes),
            "on_demand_usd_per_hour": _usd(state.on_demand_usd_per_hour, nodes),
        }


def _usd(usd_per_hour: float | None, nodes: int) -> str:
    """USD per hour of all nodes; empty where the state does not say, since a plan's price was not seen now."""
    return "" if usd_per_hour is None else f"{usd_per_hour * nodes:.10g}"


def append_rows(path: Path, rows: Sequence[Row]) -> int:
    """Add rows to a record, whole or not at all, one writer at a time; a new file gets its header.

    Rows that the file holds already (the same question asked again) are left out.

    Returns:
        Rows added.

    Raises:
        InputError: the file is no record, contradicts the rows, cannot be written, or another writer keeps it.
    """
    from filelock import FileLock, Timeout

    from planner.render.csv import csv_text

    if not path.parent.is_dir():  # the lock would create the folder of a mistyped name
        raise InputError(f"--record {path}: the folder {path.parent} does not exist: create it")
    try:
        with FileLock(path.parent / f".{path.name}.lock", timeout=LOCK_TIMEOUT_S):
            held = _text(path)
            new = [row for row in rows if not _is_held(path, held, row)]
            if new:
                text = csv_text(COLUMNS, new)
                write_atomically(path, held + text.partition("\n")[2] if held else text)
            return len(new)
    except Timeout:
        raise InputError(
            f"--record {path}: another process has held it for {LOCK_TIMEOUT_S:g} s; use a separate file for each loop"
        ) from None
    except OSError as error:
        raise InputError(f"--record {path}: cannot be written: {error.strerror or error}") from error


def _text(path: Path) -> str:
    """The record so far, with whole lines; empty where there is none.

    Raises:
        InputError: it is a file of something else.
    """
    if not path.is_file():
        return ""
    try:
        text = open_text(path, MAX_RECORD_BYTES).read()
    except UnicodeDecodeError:
        text = "?"
    if text and text.partition("\n")[0].strip() != ",".join(COLUMNS):
        raise InputError(
            f"--record {path}: holds something else than a record (its first line must be {','.join(COLUMNS)}): "
            "name another file"
        )
    return text if not text or text.endswith("\n") else f"{text}\n"


def _is_held(path: Path, text: str, row: Row) -> bool:
    """Whether the record has this observation.

    Raises:
        InputError: it has the opposite one of that moment, which no reader could take.
    """
    from planner.render.csv import csv_text

    start = csv_text(_PLACE, [row]).partition("\n")[2].rstrip("\n") + ","
    at = text.find(f"\n{start}")
    if at < 0:
        return False
    available = text[at + 1 + len(start) :].partition(",")[0]
    if available != row["available"]:
        raise InputError(
            f"--record {path}: already says that {available} instances were available in {row['zone']} at "
            f"{row['time']}, not {row['available']}: write the time of each state as `now`"
        )
    return True
