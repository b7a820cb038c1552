"""What a check found, as an answer: whether it holds, what was checked, what fails, what is stated only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from planner.render.model import Answer, Column, Section, table_section, versioned


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


def verdict_answer(name: str, verdict: Verdict) -> Answer:
    """Return the verdict on the answer in file `name`, in the shape that every format is made of."""
    faults, left = verdict.faults, verdict.left_out
    title = f"{name}: holds; {verdict.summary}"
    if verdict.nothing:
        title = f"{name}: {verdict.nothing}"
    elif faults:
        title = f"{name}: does not hold: {len(faults):,} fault{'' if len(faults) == 1 else 's'}"
    sections = []
    if faults:
        sections.append(Section("faults", "Faults", tuple(map(str, faults)), warning=True))
    if verdict.checked:
        sections.append(Section("checked", "Checked", verdict.checked))
    if left:
        columns = (Column("field", "field", "text"), Column("reason", "why it cannot be recomputed", "text"))
        sections.append(table_section("stated", "Stated, not recomputed", columns, list(left.items())))
    values = {
        "file": name, "holds": not faults and not verdict.nothing, "faults": [str(fault) for fault in faults],
        "checked": list(verdict.checked), "not_recomputed": dict(left), "summary": verdict.summary,
    }  # fmt: skip
    rows = [{"file": name, "fault": str(fault)} for fault in faults]
    return Answer(
        "Verification",
        title,
        (),
        tuple(sections),
        versioned(values),
        ("file", "fault"),
        rows,
        success=not faults,
    )
