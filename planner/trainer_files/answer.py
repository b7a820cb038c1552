"""`planner init`: a workload from people's own files, or an empty one to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
        f"{name}: not known here and not read: {', '.join(keys[:8])}" for name, keys in draft.unknown.items()
    ]
    return Initial(
        render_draft(draft),
        tuple(f"{blank.key}: {blank.why}" for blank in draft.blanks),
        (*draft.warnings, *unread),
    )


def empty_workload() -> Initial:
    """A short commented workload to edit."""
    text = (Path(__file__).parent.parent / "data" / "workload_template.yaml").read_text(encoding="utf-8")
    return Initial(text)
