"""Things of a bill that has many of them, in DuckDB: summed by numbers, and named for what is shown alone.

Six texts as keys of each of a million groups take more time and memory than what is summed. All of a thing's keys but
its SKU have few values together, so they are kept once each, as places with a hash as their number, and charges are
summed by SKU and that number. That no two places share a number is checked, so the sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.finops.engine.dialects import bind
from planner.finops.kpis import load_kpi

if TYPE_CHECKING:
    from planner.finops.engine.base import Parameter
    from planner.finops.engine.duckdb import DuckDbEngine

SUMS, PLACES = "x_sums", "x_places"
_SUMMED = ("quantity", "effective_cost", "quantity_before", "effective_cost_before")
_HASH = "HASH"
_IS_TOLD = "SELECT COUNT(*) = COUNT(DISTINCT place) AS is_told FROM x_places"
# rows of `price_volume` without names
THINGS_OF_SUMS = """
SELECT
  provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind,
  CAST(NULL AS VARCHAR) AS product, CAST(NULL AS VARCHAR) AS instance_type,
  quantity, effective_cost, quantity_before, effective_cost_before
FROM x_sums
JOIN x_places USING (place)
"""
# of some 100 bytes with both threads' copies, twice as many of a large bill; more are summed part by part
GROUPS = 2_500_000
_KEYS = ("SkuId", "RegionId", "PricingCategory")
_MOST_PARTS = 32  # each reads the bill once


def count_things(engine: DuckDbEngine) -> int:
    """How many things the bill has, to a few percent."""
    return engine.count_groups(_KEYS)


def keep_sums(engine: DuckDbEngine, months: Mapping[str, Parameter], things: int) -> bool:
    """Make the tables `x_sums` and `x_places`, which `THINGS_OF_SUMS` joins.

    Args:
        engine: has the bill as the view `focus`.
        months: values of the parameters of `price_volume`.
        things: what `count_things` counted.

    Returns:
        Whether the numbers tell places apart; else the tables are of no use.
    """
    from sqlglot import exp

    found = load_kpi("price_volume")
    kpi = bind(found.sql, {name: months[name] for name in found.parameters})
    items = {item.alias: item.this for item in kpi.selects}
    keys = {name: item.sql("duckdb") for name, item in items.items() if not item.find(exp.AggFunc)}
    sku = keys.pop("sku_id")
    place = f"{_HASH}({', '.join(keys.values())})"
    where = kpi.args["where"].sql("duckdb")
    named = ", ".join(f"{key} AS {name}" for name, key in keys.items())
    places = " ".join(("SELECT DISTINCT", named, "FROM focus", where))
    numbered = f"{_HASH}({', '.join(keys)}) AS place"  # of the few places, not of each charge
    engine.keep(PLACES, " ".join(("SELECT", ", ".join(keys), ",", numbered, "FROM (", places, ") AS places")))
    (is_told,) = engine.query(_IS_TOLD)["is_told"]
    if not is_told:
        return False
    sums = ", ".join(f"{items[name].sql('duckdb')} AS {name}" for name in _SUMMED)
    columns = f"{sku} AS sku_id, {place} AS place, {sums}"
    text = " ".join(("SELECT", columns, "FROM focus", where, "GROUP BY", sku, ",", place))
    groups = 2 * GROUPS if engine.is_large else GROUPS
    engine.keep(SUMS, text, keys=_KEYS, parts=min(-(-things // groups), _MOST_PARTS))
    return True


def keep_named(engine: DuckDbEngine, values: Mapping[str, Parameter]) -> None:
    """Make `x_named`: things of the SKUs in `x_cheaper` and `x_movers`, and those of other SKUs by the same texts.

    A reading of the bill costs as much as its sums by day: texts of the found SKUs are read once, and those of other
    SKUs only where there are any.

    Args:
        engine: has the bill as the view `focus`, and the tables.
        values: of the parameters of `price_volume`.
    """
    months = {name: values[name] for name in ("start", "end", "before_start", "before_end")}
    engine.keep(_FOUND, _texts_sql(_FOUND_SKUS), months)
    engine.keep("x_other_skus", _SEARCH, months)
    (others,) = engine.query("SELECT COUNT(*) AS n FROM x_other_skus")["n"]
    rows = ["SELECT", _AS_FOCUS, "FROM", _FOUND]
    if others:
        engine.keep(_OTHERS, _texts_sql("SELECT other_sku_id AS asked_sku_id FROM x_other_skus"), months)
        rows += ["UNION ALL", *rows[:-1], _OTHERS]
    kpi = load_kpi("price_volume").sql
    text = " ".join(
        ("WITH focus AS (", *rows, "), price_volume AS (\n", kpi, "\n) SELECT", _NAMED, "FROM price_volume")
    )
    engine.keep("x_named", text, months)


def _texts_sql(skus: str) -> str:
    """What names the charges of some SKUs, and what `price_volume` tells things apart and leaves charges out by."""
    columns = ", ".join((*_TEXTS, _CLASS))
    return " ".join((
        "WITH asked_skus AS (", skus, ") SELECT DISTINCT", columns, ", SIGN(EffectiveCost) AS cost_sign,",
        _NEGATIVE_SIZE, "FROM focus JOIN asked_skus ON COALESCE(SkuId, '') = asked_sku_id WHERE", _IN_MONTHS,
    ))  # fmt: skip


_FOUND, _OTHERS = "x_found_texts", "x_other_texts"
_NAMED = "provider, service, sku_id, region_id, pricing_category, pricing_unit, charge_kind, product, instance_type"
_TEXTS = (
    *(
        "ServiceProviderName",
        "ServiceName",
        "SkuId",
        "RegionId",
        "PricingCategory",
        "PricingUnit",
        "ChargeCategory",
    ),
    *("SkuMeter", "ChargeDescription", "SkuPriceDetails"),
)
# of corrections that `price_volume` does not count as use alone
_CLASS = "CASE WHEN BillingPeriodStart <= ChargePeriodStart THEN ChargeClass END AS ChargeClass"
_NEGATIVE_SIZE = "CASE WHEN EffectiveCost < 0 THEN SIGN(PricingQuantity) END AS quantity_sign"  # 0 of refunds
# sums are not asked for: only their columns must be there
_AS_FOCUS = ", ".join((
    *_TEXTS, "ChargeClass", "cost_sign AS EffectiveCost", "CAST(:start AS TIMESTAMP) AS BillingPeriodStart",
    "CAST(:start AS TIMESTAMP) AS ChargePeriodStart", "quantity_sign AS PricingQuantity", "0.0 AS ContractedCost",
    "FALSE AS x_contracted_known",
))  # fmt: skip
_IN_MONTHS = """(
  (ChargePeriodStart >= :start AND ChargePeriodStart < :end)
  OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end)
)"""
_FOUND_SKUS = """
SELECT COALESCE(sku_id, '') AS asked_sku_id FROM x_cheaper
UNION
SELECT COALESCE(sku_id, '') AS asked_sku_id FROM x_movers
"""
_WORDS = """
WITH words AS (
  SELECT SkuMeter AS word FROM x_found_texts WHERE SkuMeter IS NOT NULL
  UNION
  SELECT ChargeDescription AS word FROM x_found_texts WHERE ChargeDescription IS NOT NULL
  UNION
  SELECT JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"') AS word
  FROM x_found_texts
  WHERE JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"') IS NOT NULL
)
SELECT SkuId AS other_sku_id
FROM focus
WHERE SkuId IS NOT NULL
  AND (SkuMeter IN (SELECT word FROM words)
    OR ChargeDescription IN (SELECT word FROM words)
    OR JSON_EXTRACT_STRING(SkuPriceDetails, '$."InstanceType"') IN (SELECT word FROM words))
  AND"""
_SEARCH = " ".join(
    (_WORDS, _IN_MONTHS, "EXCEPT SELECT COALESCE(SkuId, '') AS other_sku_id FROM x_found_texts")
)
