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


def diagnosis_report(diagnosis: Diagnosis) -> Answer:
    """Return the answer of a diagnosis."""
    values = _values(diagnosis)
    causes = [cause_values(cause) for cause in diagnosis.causes] or [{"cause": "unknown", "evidence": "", "remedy": "",
                                                                   "share_ratio": None}]  # fmt: skip
    rows = [
        {"source": diagnosis.source, "bottleneck": diagnosis.bottleneck, "logged": diagnosis.sure, "rank": rank,
         **{name: cause[name] for name in ("cause", "evidence", "share_ratio", "remedy")}}
        for rank, cause in enumerate(causes, start=1)
    ]  # fmt: skip
    return Answer(
        f"Bottleneck of {diagnosis.source}",
        headline(diagnosis),
        (_gain(diagnosis),) if _gain(diagnosis) else (),
        _sections(diagnosis),
        versioned(values, SCHEMA_VERSION),
        _COLUMNS,
        rows,
    )


def headline(diagnosis: Diagnosis) -> str:
    """The bottleneck in one line."""
    if not diagnosis.causes:
        return f"{diagnosis.source}: cannot tell what limits the steps"
    first = diagnosis.causes[0]
    return f"{diagnosis.source}: {'limited by' if diagnosis.sure else 'perhaps limited by'} {first.title}"


def _gain(diagnosis: Diagnosis) -> str:
    """What mending the first cause brings."""
    share = diagnosis.causes[0].share if diagnosis.causes and diagnosis.sure else None
    if not share or share >= 1.0:
        return ""
    return f"without it steps would be up to {1.0 / (1.0 - share):.2f} times as fast"


def _sections(diagnosis: Diagnosis) -> tuple[Section, ...]:
    speed = diagnosis.speed
    rows: list[_Row] = []
    if diagnosis.causes:
        rows.append(
            ("evidence", "because", diagnosis.causes[0].evidence, "text", diagnosis.causes[0].evidence)
        )
        rows.append(("remedy", "try", diagnosis.causes[0].remedy, "text", diagnosis.causes[0].remedy))
    elif diagnosis.missing:
        missing_text = f"no column says why: log {', '.join(diagnosis.missing[:3])}"
        rows.append(("missing", "because", missing_text, "text", missing_text))
    else:
        rows.append(("evidence", "because", "", "text", "no figure of the log passes its threshold"))
    pace = f"{seconds_words(speed.step_s)} per step; {diagnosis.steps:,} steps in {number(diagnosis.hours)} h"
    rows += [
        ("step_time_s", "speed", speed.step_s, "seconds", pace),
        ("goodput_ratio", "time", diagnosis.split.goodput_ratio, "ratio", split_words(diagnosis.split)),
    ]
    sections = [facts("verdict", "Verdict", rows)]
    if len(diagnosis.causes) > 1:
        columns = (
            Column("cause", "cause", "text"), Column("evidence", "evidence", "text"),
            Column("share", "of the step", "ratio"),
        )  # fmt: skip
        others = [(cause.title, cause.evidence, cause.share) for cause in diagnosis.causes[1:]]
        sections.append(table_section("others", "Also seen", columns, others))
    if diagnosis.hosts:
        of_hosts = (Column("host", "host", "text"), Column("step_time_s", "per step", "seconds"))
        paces = sorted(diagnosis.hosts.items(), key=lambda item: -item[1])
        sections.append(table_section("hosts", "Hosts", of_hosts, paces, shown=8, detail=True))
    if diagnosis.notes:
        sections.append(Section("notes", "Notes", diagnosis.notes))
    sections.append(next_steps("planner track PLAN.json --log LOG", "planner calibrate FILE LOG"))
    return tuple(sections)


def _values(diagnosis: Diagnosis) -> dict[str, Any]:
    split = diagnosis.split
    return {
        "source": diagnosis.source,
        "kind": diagnosis.kind,
        "bottleneck": diagnosis.bottleneck,
        "logged": diagnosis.sure,
        "steps": diagnosis.steps,
        "hours": diagnosis.hours,
        "step_time_s": diagnosis.speed.step_s,
        "independent_rows": diagnosis.speed.effective,
        "causes": [cause_values(cause) for cause in diagnosis.causes],
        "time": {
            "hours": split.hours,
            "compute_hours": split.compute,
            "checkpoint_hours": split.checkpoint,
            "lost_hours": split.lost,
            "waiting_hours": split.waiting,
            "loader_hours": split.loader,
            "goodput_ratio": split.goodput_ratio,
            "logged": list(split.known),
        },
        "hosts": diagnosis.hosts,
        "missing_columns": list(diagnosis.missing),
        "notes": list(diagnosis.notes),
    }
