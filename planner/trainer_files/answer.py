"""`planner init`: a workload from people's own files, or an empty one to fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import shortened
from planner.inputs.faults import fault_text
from planner.records import record
from planner.trainer_files.gather import Wishes, gather
from planner.trainer_files.write import render_draft


@record(frozen=True)
class Initial:
    """The workload's text, and what the user should know beside it: what is still to be given, what is not counted."""

    text: str
    to_fill: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def workload_from(paths: Sequence[Path], wishes: Wishes) -> Initial:
    """Draft a workload from files.

    Raises:
        InputError: a file cannot be read or the model is not known; says what to give.
    """
    draft = gather(paths, wishes)
    unread = [
        f"{name}: not known here and not read: {', '.join(map(shortened, keys[:8]))}"
        for name, keys in draft.unknown.items()
    ]
    text = render_draft(draft)
    return Initial(
        text,
        tuple(f"{blank.key}: {blank.why}" for blank in draft.blanks),
        (*_wrong(text, wishes.values, [blank.key for blank in draft.blanks]), *draft.warnings, *unread),
    )


def _wrong(text: str, stated: Mapping[str, Any], lacking: Sequence[str]) -> list[str]:
    """What is wrong with the values that the user states, but for what asks for the values that the draft lacks."""
    if not stated:
        return []
    from planner.inputs.load import validate
    from planner.inputs.yaml12 import parse_yaml

    data = parse_yaml(text, "").data
    faults = validate(data)[1] if isinstance(data, dict) else []
    keys = [tuple(key.split(".")) for key in stated]
    return [
        fault_text(fault)
        for fault in faults
        if any(fault.path[: len(key)] == key for key in keys)
        and not any(key in fault.message for key in lacking)
    ]


def empty_workload() -> Initial:
    """A short commented workload to edit."""
    text = (Path(__file__).parent.parent / "data" / "workload_template.yaml").read_text(encoding="utf-8")
    return Initial(text)
