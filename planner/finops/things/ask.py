"""The table of things (`x_things`: the KPI `price_volume` with the effects of each change) and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.finops.bridge import ABSURD
from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.kpis import load_kpi

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

TABLE = "x_things"
_KEYS = ("SkuId", "RegionId", "PricingCategory")
_HERE = "planner.finops.things"


@lru_cache(maxsize=8)
def things_query(name: str) -> str:
    """The text of a query of `queries/`, over the table of things; of `things` itself, over the view `focus`."""
    text = files(_HERE).joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")
    if name != "things":
        return text
    return text.replace("WITH filled", f"WITH price_volume AS (\n{load_kpi('price_volume').sql}), filled", 1)


def keep_things(engine: Engine, months: Mapping[str, Parameter]) -> None:
    """Make the table of things.

    Args:
        engine: has the bill as the view `focus`.
        months: values of the parameters of `price_volume`.
    """
    values = {name: months[name] for name in load_kpi("price_volume").parameters}
    text, asked = things_query("things"), {**values, "absurd": ABSURD}
    if isinstance(engine, DuckDbEngine):
        engine.keep(TABLE, text, asked, _KEYS)
    else:
        engine.keep(TABLE, text, asked)


def ask_things(engine: Engine, name: str, values: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
    """The rows of a query over the table that `keep_things` made, in any order.

    Args:
        engine: has the table.
        name: of the query's file.
        values: its parameters.
    """
    return engine.query(things_query(name), values or {})
