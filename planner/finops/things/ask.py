"""The table of things (`x_things`: the KPI `price_volume` with the effects of each change) and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.finops.bridge import ABSURD
from planner.finops.engine.duckdb import HELD_ROWS, DuckDbEngine
from planner.finops.engine.literals import duckdb_text, parameter_names
from planner.finops.kpis import load_kpi
from planner.finops.things.many import SUMS, THINGS_OF_SUMS, count_things, keep_named, keep_sums

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

TABLE = "x_things"
SHOWN = ("cheaper", "movers")  # queries whose rows are shown by name
# all of these are named where they are summed: to look names up reads the bill three times more
FEW_THINGS = 50_000
_HERE = "planner.finops.things"


@lru_cache(maxsize=16)
def things_query(name: str) -> str:
    """The text of a query of `queries/`; `things` with the KPI `price_volume` put in."""
    return _over(_text(name), load_kpi("price_volume").sql) if name == "things" else _text(name)


def _text(name: str) -> str:
    return files(_HERE).joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")


def _over(things: str, price_volume: str) -> str:
    return things.replace("WITH filled", "\n".join(("WITH price_volume AS (", price_volume, "), filled")), 1)


def keep_things(engine: Engine, months: Mapping[str, Parameter]) -> None:
    """Make the table of things.

    Args:
        engine: has the bill as the view `focus`.
        months: values of the parameters of `price_volume`.
    """
    if isinstance(engine, DuckDbEngine) and _sums_many(engine, months):
        text = _over(_text("things"), THINGS_OF_SUMS)
        engine.register_view(TABLE, duckdb_text(text, {"absurd": ABSURD}))
    else:
        keep_rows(engine, TABLE, "things", {**months, "absurd": ABSURD})


def _sums_many(engine: DuckDbEngine, months: Mapping[str, Parameter]) -> bool:
    if engine.held and HELD_ROWS <= FEW_THINGS:
        return False
    things = count_things(engine)
    return things > FEW_THINGS and keep_sums(engine, months, things)


def keep_names(engine: Engine, values: Mapping[str, Parameter]) -> None:
    """Make `x_elsewhere`, and `x_cheaper`, `x_movers` and `x_names`, which `cheaper_named` and `movers_named` join.

    Args:
        engine: has the table of things.
        values: of the parameters of `price_volume` and of both queries.
    """
    for query in ("elsewhere", *SHOWN):
        keep_rows(engine, f"x_{query}", query, values)
    if isinstance(engine, DuckDbEngine) and SUMS in engine.kept:
        keep_named(engine, values)
    else:
        keep_rows(engine, "x_named", "named", values)
    keep_rows(engine, "x_names", "names", values)


def ask_things(engine: Engine, name: str, values: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
    """The rows of a query over the table that `keep_things` made, in any order.

    Args:
        engine: has the table.
        name: of the query's file.
        values: its parameters; others are left out.
    """
    text = things_query(name)
    return engine.query(text, _of_query(text, values or {}))


def keep_rows(engine: Engine, table: str, query: str, values: Mapping[str, Parameter]) -> None:
    """Make the rows of a query of `queries/` a table.

    Args:
        engine: has the bill as the view `focus`, and what the query names.
        table: its name.
        query: of the query's file.
        values: its parameters; others are left out.
    """
    text = things_query(query)
    engine.keep(table, text, _of_query(text, values))


def _of_query(text: str, values: Mapping[str, Parameter]) -> dict[str, Parameter]:
    names = parameter_names(text)
    return {key: value for key, value in values.items() if key in names}
