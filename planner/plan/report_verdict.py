"""What a check found, as an answer: whether it holds, what was checked, what fails, what is stated only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from planner.render.model import Answer, Column, Section, table_section, versioned
from planner.render.screen import ALL

_MOST_FAULTS = 20


class Verdict(Protocol):
    """What `planner.judge` says, which knows nothing of how it is shown."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong."""

    @property
    def checked(self) -> tuple[str, ...]:
        """What was recomputed."""

    @property
    def summary(self) -> str:
        """What holds, in brief."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """What is stated only, and why."""

    @property
    def nothing(self) -> str:
        """Why there is nothing to check."""


def verdict_answer(name: str, kind: str, verdict: Verdict, *, details: Collection[str] = ()) -> Answer:
    """Return a verdict in the shape that every format is made of.

    Args:
        name: the file of the answer.
        kind: what it answers, such as `plan`.
        verdict: the verdict.
        details: keys of sections to show in place of the screen, or `all`.
    """
    faults, left = verdict.faults, verdict.left_out
    title = f"{name}: the {kind} holds; {verdict.summary}"
    if verdict.nothing:
        title = f"{name}: {verdict.nothing}"
    elif faults:
        title = f"{name}: the {kind} does not hold: {len(faults):,} fault{'' if len(faults) == 1 else 's'}"
    sections = []
    if faults:
        columns = (Column("place", "where", "text"), Column("fault", "what is wrong", "text"))
        rows = [_parted(str(fault)) for fault in faults]
        sections.append(table_section("faults", "Faults", columns, rows, shown=_MOST_FAULTS))
    if left:
        columns = (Column("fields", "field", "text"), Column("reason", "why it is not recomputed", "text"))
        by_reason: dict[str, list[str]] = {}
        for field, reason in left.items():
            by_reason.setdefault(reason, []).append(field)
        grouped = [(", ".join(fields), reason) for reason, fields in by_reason.items()]
        sections.append(table_section("stated", "Stated, not recomputed", columns, grouped))
    values = {
        "file": name, "kind": kind, "holds": not faults and not verdict.nothing, "faults": [str(x) for x in faults],
        "checked": list(verdict.checked), "not_recomputed": dict(left), "summary": verdict.summary,
    }  # fmt: skip
    recomputed = (f"Recomputed: {', '.join(verdict.checked)}",) if verdict.checked else ()
    answer = Answer(
        "Verification", title, recomputed, tuple(sections), versioned(values), ("file", "fault"),
        [{"file": name, "fault": str(fault)} for fault in faults], success=not faults,
    )  # fmt: skip
    if details:
        return replace(answer, sections=tuple(s for s in sections if ALL in details or s.key in details))
    if not left:
        return answer
    closing = (*recomputed, f"Stated, not recomputed: {len(left):,} fields; --details stated lists them")
    front = (
        *(section for section in sections if section.key == "faults"),
        Section("closing", "Checked", closing),
    )
    return replace(answer, summary=(), front=front)


def _parted(fault: str) -> tuple[str, str]:
    """Where a fault is, and what it is; a sentence about the whole has no place."""
    place, _, text = fault.partition(": ")
    return (place, text) if text and " " not in place else ("", fault)
