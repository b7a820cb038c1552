"""The table of things (`x_things`: the KPI `price_volume` with the effects of each change) and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.finops.bridge import ABSURD
from planner.finops.engine.dialects import parameter_names
from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.kpis import load_kpi

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine, Parameter

TABLE = "x_things"
SHOWN = ("cheaper", "movers")  # queries whose rows are shown by name
_KEYS = ("SkuId", "RegionId", "PricingCategory")
_HERE = "planner.finops.things"
FEW_THINGS = (
    50_000  # all of these are named at once: to search for those that share a name reads the bill twice more
)


@lru_cache(maxsize=16)
def things_query(name: str) -> str:
    """The text of a query of `queries/`; where it reads the KPI `price_volume`, with that put in."""
    if name == "names_of_few":
        text = things_query("names")
        searched = text[text.index("texts AS (") : text.index("price_volume AS (")]
        every = "asked_skus AS (\n  SELECT DISTINCT COALESCE(sku_id, '') AS asked_sku_id FROM x_things\n), "
        return text.replace(searched, every, 1)
    text = files(_HERE).joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")
    kpi = load_kpi("price_volume").sql
    if name == "things":
        return text.replace("WITH filled", f"WITH price_volume AS (\n{kpi}), filled", 1)
    asked = kpi.replace("FROM focus", "FROM focus\nJOIN asked_skus ON COALESCE(SkuId, '') = asked_sku_id", 1)
    return text.replace("price_volume AS (\n", f"price_volume AS (\n{asked}", 1)


def keep_things(engine: Engine, months: Mapping[str, Parameter]) -> None:
    """Make the table of things.

    Args:
        engine: has the bill as the view `focus`.
        months: values of the parameters of `price_volume`.
    """
    _keep(engine, TABLE, "things", {**months, "absurd": ABSURD}, _KEYS)


def keep_names(engine: Engine, values: Mapping[str, Parameter]) -> None:
    """Make the tables `x_cheaper`, `x_movers` and `x_names`, which the queries `cheaper_named` and `movers_named` join.

    Args:
        engine: has the table of things.
        values: of the parameters of `price_volume` and of both queries.
    """
    for query in SHOWN:
        _keep(engine, f"x_{query}", query, values)
    _keep(engine, "x_names", "names_of_few" if _has_few(engine) else "names", values)


def _has_few(engine: Engine) -> bool:
    if not isinstance(engine, DuckDbEngine):
        return True  # there the search is the dearer one: 45 s for 20 on Spark
    (count,) = engine.query("SELECT COUNT(*) AS n FROM x_things")["n"]
    return bool(count <= FEW_THINGS)


def ask_things(engine: Engine, name: str, values: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
    """The rows of a query over the table that `keep_things` made, in any order.

    Args:
        engine: has the table.
        name: of the query's file.
        values: its parameters; others are left out.
    """
    return engine.query(things_query(name), _of_query(name, values or {}))


def _keep(
    engine: Engine, table: str, query: str, values: Mapping[str, Parameter], keys: Sequence[str] = ()
) -> None:
    text, asked = things_query(query), _of_query(query, values)
    if isinstance(engine, DuckDbEngine):
        engine.keep(table, text, asked, keys)
    else:
        engine.keep(table, text, asked)


def _of_query(name: str, values: Mapping[str, Parameter]) -> dict[str, Parameter]:
    names = parameter_names(things_query(name))
    return {key: value for key, value in values.items() if key in names}
