"""The bottleneck of a run as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.render.model import (
    Answer,
    Column,
    Section,
    Unit,
    Value,
    facts,
    next_steps,
    table_section,
    versioned,
)
from planner.render.numbers import number
from planner.render.units import seconds as seconds_words
from planner.tracking.report import cause_values, split_words

if TYPE_CHECKING:
    from planner.tracking.diagnose import Diagnosis

SCHEMA_VERSION = 1
_COLUMNS = ("source", "bottleneck", "logged", "rank", "cause", "evidence", "share_ratio", "remedy")
_Row = tuple[str, str, Value, Unit, str]


def diagnosis_report(found: Diagnosis) -> Answer:
    """Return the answer of a diagnosis."""
    values = _values(found)
    causes = [cause_values(cause) for cause in found.causes] or [{"cause": "unknown", "evidence": "", "remedy": "",
                                                                   "share_ratio": None}]  # fmt: skip
    rows = [
        {"source": found.source, "bottleneck": found.bottleneck, "logged": found.sure, "rank": rank,
         **{name: cause[name] for name in ("cause", "evidence", "share_ratio", "remedy")}}
        for rank, cause in enumerate(causes, start=1)
    ]  # fmt: skip
    return Answer(
        f"Bottleneck of {found.source}", headline(found), (_gain(found),) if _gain(found) else (), _sections(found),
        versioned(values, SCHEMA_VERSION), _COLUMNS, rows,
    )  # fmt: skip


def headline(found: Diagnosis) -> str:
    """The bottleneck in one line."""
    if not found.causes:
        return f"{found.source}: cannot tell what limits the steps"
    first = found.causes[0]
    return f"{found.source}: {'limited by' if found.sure else 'perhaps limited by'} {first.title}"


def _gain(found: Diagnosis) -> str:
    """What mending the first cause brings."""
    share = found.causes[0].share if found.causes and found.sure else None
    if not share or share >= 1.0:
        return ""
    return f"without it steps would be up to {1.0 / (1.0 - share):.2f} times as fast"


def _sections(found: Diagnosis) -> tuple[Section, ...]:
    speed = found.speed
    rows: list[_Row] = []
    if found.causes:
        rows.append(("evidence", "because", found.causes[0].evidence, "text", found.causes[0].evidence))
        rows.append(("remedy", "try", found.causes[0].remedy, "text", found.causes[0].remedy))
    elif found.missing:
        wanted = f"no column says why: log {', '.join(found.missing[:3])}"
        rows.append(("missing", "because", wanted, "text", wanted))
    else:
        rows.append(("evidence", "because", "", "text", "no figure of the log passes its threshold"))
    pace = f"{seconds_words(speed.step_s)} per step; {found.steps:,} steps in {number(found.hours)} h"
    rows += [
        ("step_time_s", "speed", speed.step_s, "seconds", pace),
        ("goodput_ratio", "time", found.split.goodput_ratio, "ratio", split_words(found.split)),
    ]  # fmt: skip
    sections = [facts("verdict", "Verdict", rows)]
    if len(found.causes) > 1:
        columns = (
            Column("cause", "cause", "text"), Column("evidence", "evidence", "text"),
            Column("share", "of the step", "ratio"),
        )  # fmt: skip
        others = [(cause.title, cause.evidence, cause.share) for cause in found.causes[1:]]
        sections.append(table_section("others", "Also seen", columns, others))
    if found.hosts:
        of_hosts = (Column("host", "host", "text"), Column("step_time_s", "per step", "seconds"))
        paces = sorted(found.hosts.items(), key=lambda item: -item[1])
        sections.append(table_section("hosts", "Hosts", of_hosts, paces, shown=8, detail=True))
    if found.notes:
        sections.append(Section("notes", "Notes", found.notes))
    sections.append(next_steps("planner track PLAN.json --log LOG", "planner calibrate FILE LOG"))
    return tuple(sections)


def _values(found: Diagnosis) -> dict[str, Any]:
    split = found.split
    return {
        "source": found.source, "kind": found.kind, "bottleneck": found.bottleneck, "logged": found.sure,
        "steps": found.steps, "hours": found.hours, "step_time_s": found.speed.step_s,
        "independent_rows": found.speed.effective, "causes": [cause_values(cause) for cause in found.causes],
        "time": {
            "hours": split.hours, "compute_hours": split.compute, "checkpoint_hours": split.checkpoint,
            "lost_hours": split.lost, "waiting_hours": split.waiting, "loader_hours": split.loader,
            "goodput_ratio": split.goodput_ratio, "logged": list(split.known),
        },
        "hosts": found.hosts, "missing_columns": list(found.missing), "notes": list(found.notes),
    }  # fmt: skip
