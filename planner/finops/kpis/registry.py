"""Load KPIs from their SQL files and run them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.kpis.day_sums import over_table, stands_for_focus
from planner.finops.kpis.rowless import has_no_rows, rows_or_none
from planner.records import record

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

FIELDS = ("name", "title", "meaning", "unit", "formula", "source", "columns", "gate", "since")
OPTIONAL = ("made_of",)
_HERE = "planner.finops.kpis"


@record(frozen=True)
class Kpi:
    """One KPI and the query that its figures come from.

    Attributes:
        name: of the file, without `.sql`.
        title, meaning, unit, formula, source: for people.
        columns: FOCUS columns that it reads.
        gate: checks of the data that must pass (`planner.finops.quality`), else it is flagged or withheld.
        since: first FOCUS version that has what it needs.
        sql: one SELECT; `:name` is a parameter.
        parameters: their names.
        made_of: the dataset, or the condition on charges, without which there are no rows; empty where none is stated.
    """

    name: str
    title: str
    meaning: str
    unit: str
    formula: str
    source: str
    columns: tuple[str, ...]
    gate: tuple[str, ...]
    since: str
    sql: str
    parameters: tuple[str, ...]
    made_of: str = ""


@lru_cache(maxsize=1)
def load_kpis() -> tuple[Kpi, ...]:
    """All KPIs, by name."""
    folder = files(_HERE).joinpath("queries")
    found = [f for f in folder.iterdir() if f.name.endswith(".sql")]
    return tuple(
        parse_kpi(f.name[:-4], f.read_text(encoding="utf-8")) for f in sorted(found, key=lambda f: f.name)
    )


def load_kpi(name: str) -> Kpi:
    """One KPI.

    Raises:
        InputError: there is none of that name.
    """
    for kpi in load_kpis():
        if kpi.name == name:
            return kpi
    from planner.inputs.faults import near

    close = near(name, [kpi.name for kpi in load_kpis()])
    hint = f"; did you mean {close}?" if close else f"; there are {', '.join(k.name for k in load_kpis())}"
    raise InputError(f"no KPI {name!r}{hint}")


def made_of() -> dict[str, str]:
    """KPIs that state the dataset, or the condition on charges, without which they have no rows, by name."""
    return {kpi.name: kpi.made_of for kpi in load_kpis() if kpi.made_of}


@lru_cache(maxsize=1)
def worked_out() -> Mapping[str, Mapping[str, str]]:
    """KPIs that are worked out from others, by name: the rows of `worked_out.csv`."""
    import csv

    text = files(_HERE).joinpath("worked_out.csv").read_text(encoding="utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


def gate_of(name: str) -> tuple[str, ...]:
    """Checks that a KPI needs: its own, and those of the KPIs that it is worked out from.

    Raises:
        InputError: there is no such KPI.
    """
    row = worked_out().get(name)
    if row is None:
        return load_kpi(name).gate
    of_kpis = (check for kpi in row["kpis"].split() for check in gate_of(kpi))
    return tuple(dict.fromkeys((*of_kpis, *row["gate"].split())))


def parse_kpi(name: str, text: str) -> Kpi:
    """Read the header and the query of one file.

    Raises:
        ValueError: the header lacks a field, or the file's name is not the KPI's.
    """
    lines = text.splitlines()
    size = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    head: dict[str, str] = {}
    key = ""
    for line in lines[:size]:
        words = line[2:].strip()
        start = words.split(":", 1)[0]
        if start in (*FIELDS, *OPTIONAL) and line.startswith("-- ") and not line.startswith("--  "):
            key, words = start, words[len(start) + 1 :].strip()
        head[key] = f"{head[key]} {words}" if key in head else words
    if missing := [field for field in FIELDS if not head.get(field)]:
        raise ValueError(f"{name}.sql: the header lacks {', '.join(missing)}")
    if head["name"] != name:
        raise ValueError(f"{name}.sql: the header calls it {head['name']}")
    sql = "\n".join(lines[size:]).strip() + "\n"
    gate = () if head["gate"] == "none" else _words(head["gate"])
    return Kpi(
        name, head["title"], head["meaning"], head["unit"], head["formula"], head["source"], _words(head["columns"]),
        gate, head["since"], sql, _parameters(sql), head.get("made_of", ""),
    )  # fmt: skip


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _parameters(sql: str) -> tuple[str, ...]:
    import re

    return tuple(dict.fromkeys(re.findall(r"(?<![:\w]):([a-z_][a-z_0-9]*)", sql)))


def query_kpi(
    engine: Engine, name: str, parameters: Mapping[str, Parameter], *, where: str = "", over: str = ""
) -> pd.DataFrame:
    """Run a KPI's query.

    Args:
        engine: has the bill as the view `focus`.
        name: of the KPI.
        parameters: values; those that the query does not name are left out.
        where: a condition on the KPI's rows, in SQL; it may name parameters too.
        over: a table that stands for `focus`: it has the columns that the query names.

    Raises:
        InputError: no such KPI, or a parameter is missing.
    """
    kpi = load_kpi(name)
    sql = "\n".join(("WITH kpi AS (", kpi.sql, ")", "SELECT * FROM kpi WHERE", where)) if where else kpi.sql
    sql = over_table(sql, over or stands_for_focus(engine, name))
    names = dict.fromkeys((*kpi.parameters, *_parameters(where)))
    values = {key: parameters[key] for key in names if key in parameters}
    return rows_or_none(
        engine, name, lambda: engine.query(sql, values), rowless=has_no_rows(engine, name, where)
    )
