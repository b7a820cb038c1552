"""From a state file to a `RunState`, or to one error that lists every fault with its place.

A launcher writes JSON and asks every few minutes: a state that is plainly valid JSON needs neither yaml nor pydantic
(`planner.inputs.plain`). Whatever else the file holds meets the models, which alone refuse and explain. A state is a
read-only view wherever it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from planner.errors import InputError
from planner.inputs.documents import Document, load_document
from planner.inputs.faults import Fault, named_twice, near
from planner.inputs.load import UnreadSource, decode, read_limited
from planner.inputs.plain import STATE_ROOT, read_section
from planner.inputs.view import as_view
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.state_schema import RunState

_DONE = ("done_hours", "done_ratio", "done_steps")


@record(frozen=True)
class LoadedState:
    """A valid state and its file."""

    state: RunState
    document: Document

    def error(self, faults: Iterable[Fault]) -> InputError:
        """Return the error for faults found later (against the plan), with their places in the file."""
        return self.document.source.error(faults)


def load_state(path: Path) -> LoadedState:
    """Load and validate a state file (YAML or JSON).

    Raises:
        InputError: lists all faults with their places.
    """
    plain = _read_json(path)
    if plain is not None:
        return plain
    from planner.inputs.state_schema import RunState

    state, document = load_document(path, RunState, _faults)
    return LoadedState(as_view(state), document)


def _read_json(path: Path) -> LoadedState | None:
    """The state of a file that is plainly valid JSON, None where the models must look at it."""
    data = read_limited(path)
    text = decode(data, str(path))
    try:
        values = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    state = cast("RunState | None", read_section(STATE_ROOT, values))
    if state is None or any(_faults(state)):
        return None
    return LoadedState(state, Document(path, data, UnreadSource(str(path), text)))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping whose keys are all different."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key is given twice")
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _faults(state: RunState) -> Iterator[Fault]:
    """The rules that join several fields."""
    names = [zone.name for zone in state.zones]
    yield from named_twice("zones", names)
    keys = [key for key in _DONE if getattr(state, key) is not None]
    if not keys:
        yield Fault(
            ("done_hours",), f"is missing: give the work done as one of {', '.join(_DONE)} (0 at the start)"
        )
    for key in keys[1:]:
        yield Fault((key,), f"repeats {keys[0]}: keep one of the two", at_key=True)
    if state.mode == "spot" and state.zone is None:
        yield Fault(("mode",), "is spot: name the zone it runs in with 'zone'")
    if state.mode != "spot" and state.zone is not None:
        yield Fault(("zone",), f"is only for mode spot, and mode is {state.mode}: leave it out")
    elif state.zone is not None and state.zone not in names:
        yield Fault(("zone",), f"{state.zone!r} is not among the zones", near(state.zone, names))
    if state.mode == "idle" and state.restart_left_hours:
        yield Fault(("restart_left_hours",), "must be 0 while nothing runs")
    if state.launched_at is not None and not isinstance(state.launched_at, datetime):
        yield Fault(("launched_at",), "must be a moment like 2026-12-01T08:00Z; hours count from it")
