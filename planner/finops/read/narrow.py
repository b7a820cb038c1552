"""Rules about units and machines cut down to those that a bill's own charges name.

Most bills name a few units and no machine. Every question to a bill would pay for the other hundreds of rules.
"""

from __future__ import annotations

from dataclasses import replace

from planner.finops.engine.duckdb import HELD_ROWS, DuckDbEngine
from planner.finops.read.columns import COST
from planner.finops.read.machines import machine_sql, machines_named, naming_words, with_machines
from planner.finops.read.select import Group, text, unit_letters


def narrowed(reader: DuckDbEngine, group: Group) -> Group:
    """Charges with the units that they have, and with the machines that they name where they lack SkuPriceDetails.

    Args:
        reader: reads the files.
        group: files of the same columns.
    """
    if group.dataset != COST:
        return group
    words = naming_words(group)
    if words and reader.count_rows(group.files) > HELD_ROWS:  # few words are looked at here in less time
        words = machine_sql(words)
    named = words or "CAST(NULL AS VARCHAR)"
    unit = group.columns.get("PricingUnit", "CAST(NULL AS VARCHAR)")
    files = ", ".join(map(text, group.files))
    found = reader.rows(
        f"SELECT {unit_letters('unit')}, named FROM (SELECT DISTINCT {unit} AS unit, {named} AS named "
        f"FROM READ_PARQUET([{files}], union_by_name = true))"
    )
    units = frozenset(unit for unit, _ in found if unit is not None)
    return with_machines(replace(group, units=units), machines_named(words for _, words in found if words))
