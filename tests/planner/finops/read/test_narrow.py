"""A bill's own units and machines are all that its questions know, and give the answers that all rules give."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.finops.engine.registry import FileEngine
from planner.finops.read import Bill, machines, open_bill
from planner.finops.read import open as reading
from planner.finops.read.columns import hour_units
from planner.finops.read.select import Group, of_unit_sql
from tests.planner.finops.read.test_open import HEADER, line, write

UNITS = ("Hrs", "1000 Hours", "GPU-Hour", "vCPU_hours", "GB-Mo", "")
both_ways = pytest.mark.parametrize("held_rows", [0, 30_000])


def files(folder: Path, *bills: list[str], column: str) -> list[Path]:
    return [
        write(
            folder / f"bill-{number}.csv",
            *(f'{line(sku=f"s{number}-{at}")},"{one}"' for at, one in enumerate(texts)),
            header=f"{HEADER},{column}",
        )
        for number, texts in enumerate(bills)
    ]


def column_of(bill: Bill, expression: str) -> list[object]:
    frame = bill.engine.query(f"SELECT {expression} AS told FROM focus ORDER BY SkuId")
    return [None if value != value else value for value in frame["told"]]


@both_ways
def test_units_are_read_as_by_all_rules(
    held_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reading, machines):
        monkeypatch.setattr(module, "HELD_ROWS", held_rows)
    with open_bill(files(tmp_path, list(UNITS[:3]), list(UNITS[3:]), column="PricingUnit")) as bill:
        hours = column_of(bill, "x_unit_hours")
        assert hours == [1, 1000, 1, 1, None, None] == column_of(bill, of_unit_sql("hours"))
        kinds = ["machine", "machine", "gpu", "core", None, None]
        assert column_of(bill, "x_hours_of") == kinds == column_of(bill, of_unit_sql("of"))


def test_units_that_are_there_are_all_that_is_asked_for() -> None:
    asked = of_unit_sql("hours", {"hrs", "gbmo"})
    assert "'hrs'" in asked and not [unit for unit in hour_units() if unit != "hrs" and f"'{unit}'" in asked]
    assert of_unit_sql("of", {"gbmo"}) == "CAST(NULL AS VARCHAR)"


@both_ways
def test_files_that_name_different_machines_stay_one_table(
    held_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a text that names several machines the first counts, whichever others the bill has."""
    for module in (reading, machines):
        monkeypatch.setattr(module, "HELD_ROWS", held_rows)
    merged = []
    register = reading._register

    def registered(engine: FileEngine, groups: list[Group], *more: object) -> None:
        merged.append(len(groups))
        register(engine, groups, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "_register", registered)
    bills = [
        ["moved from p4d.24xlarge to p5.48xlarge", "m5.xlarge"],
        ["P5.48XLARGE hours", "g5.12xlarge, not p4d.24xlarge"],
    ]
    with open_bill(files(tmp_path, *bills, column="ChargeDescription")) as bill:
        found = column_of(bill, "JSON_EXTRACT_STRING(SkuPriceDetails, '$.InstanceType')")
    assert found == ["p4d.24xlarge", None, "p5.48xlarge", "g5.12xlarge"]
    assert set(merged) == {1}
