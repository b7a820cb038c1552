"""From a YAML file of `planner tco` to a `Tco`, or to one error that lists every fault with its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.documents import Document, load_document
from planner.inputs.faults import Fault, near
from planner.inputs.faults import Path as FaultPath
from planner.records import record

if TYPE_CHECKING:
    from pydantic import BaseModel

    from planner.inputs.tco_schema import Estimate, Tco

_DATA = Path(__file__).parents[1] / "data"
# least and most of an estimate by its key; None: no bound
BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "usd": (0.0, 1e9),
    "printed_usd": (0.0, 1e9),
    "accelerator_usd": (0.0, 1e9),
    "power_kw": (0.001, 10_000.0),
    "usd_per_kwh": (0.0, 10.0),
    "pue": (1.0, 5.0),
    "hosting_usd_per_month": (0.0, 1e8),
    "usd_per_kw_month": (0.0, 100_000.0),
    "staff_fte": (0.0, 1000.0),
    "staff_usd_per_year": (0.0, 1e7),
    "maintenance_ratio": (0.0, 1.0),
    "failures_per_year": (0.0, 1.0),
    "repair_days": (0.0, 365.0),
    "spares_ratio": (0.0, 1.0),
    "years": (0.25, 20.0),
    "residual_ratio": (0.001, 1.0),
    "utilisation_ratio": (0.001, 1.0),
    "idle_ratio": (0.0, 1.0),
    "capital_ratio": (0.0, 1.0),
    "speed_ratio": (0.001, 1000.0),
    "lost_ratio": (0.0, 0.95),
    "price_change_ratio": (-0.9, 1.0),
}


@record(frozen=True)
class HardwarePrice:
    """One dated price, life or rate of hardware: a row of hardware_prices.csv.

    `after_years`: of a card's residual value, since its release; None for all else.
    """

    category: str
    item: str
    condition: str
    low: float
    value: float
    high: float
    unit: str
    note: str
    source: str
    as_of: str
    after_years: float | None = None


@record(frozen=True)
class Default:
    """What an estimate is where a file leaves it out: a row of tco_defaults.csv."""

    key: str
    low: float
    value: float
    high: float
    unit: str
    words: str
    basis: str
    source: str
    as_of: str


@record(frozen=True)
class LoadedTco:
    """A valid question and its file."""

    tco: Tco
    document: Document

    @property
    def sha256(self) -> str:
        """Of the file's bytes, as answers state it."""
        return hashlib.sha256(self.document.data).hexdigest()


@cache
def hardware_prices() -> tuple[HardwarePrice, ...]:
    """All rows of hardware_prices.csv, in its order."""
    return tuple(
        HardwarePrice(
            row["category"], row["item"], row["condition"], float(row["low"]), float(row["value"]),
            float(row["high"]), row["unit"], row["note"], row["source"], row["as_of"],
            float(row["after_years"]) if row["after_years"] else None,
        )
        for row in bundled_rows("hardware_prices.csv")
    )  # fmt: skip


@cache
def defaults() -> dict[str, Default]:
    """What is assumed of each estimate that a file leaves out, by its key."""
    rows = [
        Default(
            row["key"], float(row["low"]), float(row["value"]), float(row["high"]), row["unit"], row["words"],
            row["basis"], row["source"], row["as_of"],
        )
        for row in bundled_rows("tco_defaults.csv")
    ]  # fmt: skip
    return {row.key: row for row in rows}


def load_tco(path: Path) -> LoadedTco:
    """Load and validate a file of `planner tco`.

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    from planner.inputs.tco_schema import Tco

    return LoadedTco(*load_document(path, Tco, _faults))


def _faults(tco: Tco) -> Iterator[Fault]:
    """The rules that join several fields."""
    if tco.own_site is None and tco.colocation is None:
        yield Fault((), "give 'own_site' or 'colocation': where the machine would be placed")
    for path, estimate in _estimates(tco, ()):
        yield from _of_estimate(path, estimate)
    yield from _of_parts(tco)
    if tco.machine.power_kw is None and not any(
        p.watts for p in tco.machine.parts if p.kind != "power_supply"
    ):
        yield Fault(("machine",), "give 'power_kw', or 'watts' of the parts", at_key=True)
    colocation = tco.colocation
    if colocation is not None and colocation.usd_per_kw_month is None and colocation.hosting_usd_per_month:
        yield Fault(("colocation",), "give 'usd_per_kw_month' too; 0 where the rent is all in", at_key=True)
    if tco.cloud.workload is not None and (tco.cloud.accelerator or tco.cloud.instance_types):
        yield Fault(
            ("cloud", "workload"),
            "a workload's plans choose machines themselves; leave out 'accelerator' and 'instance_types'",
        )


def _estimates(section: BaseModel, path: FaultPath) -> Iterator[tuple[FaultPath, Estimate]]:
    """Every estimate of a section with its path."""
    from pydantic import BaseModel

    from planner.inputs.tco_schema import Estimate

    for name in type(section).model_fields:
        value = getattr(section, name)
        for place, item in enumerate(value) if isinstance(value, tuple) else ((None, value),):
            item_path = (*path, name) if place is None else (*path, name, place)
            if isinstance(item, Estimate):
                yield item_path, item
            elif isinstance(item, BaseModel):
                yield from _estimates(item, item_path)


def _of_estimate(path: FaultPath, estimate: Estimate) -> Iterator[Fault]:
    ends = [end for end in (estimate.low, estimate.value, estimate.high) if end is not None]
    if estimate.value is None and len(ends) < 2:
        yield Fault(path, "give 'value', or both 'low' and 'high'")
    elif ends != sorted(ends):
        yield Fault(
            path, f"low, value and high must rise in this order, got {', '.join(f'{e:g}' for e in ends)}"
        )
    least, most = BOUNDS[str(path[-1])]
    if least is not None and any(end < least for end in ends):
        yield Fault(path, f"must be at least {least:g}, got {min(ends):g}")
    if most is not None and any(end > most for end in ends):
        yield Fault(path, f"must be at most {most:g}, got {max(ends):g}")


def _of_parts(tco: Tco) -> Iterator[Fault]:
    items = {row.item for row in hardware_prices()}
    parts = tco.machine.parts
    for number, part in enumerate(parts):
        for place, item in enumerate(part.market):
            if item not in items:
                text = f"{item!r} is not an item of hardware_prices.csv"
                yield Fault(("machine", "parts", number, "market", place), text, near(item, items))
        if part.spare and part.kind != "power_supply":
            yield Fault(
                ("machine", "parts", number, "spare"), "only a 'power_supply' is counted without its spare"
            )
    inside = sum(part.count for part in parts if part.kind == "accelerator")
    if inside and inside != tco.machine.accelerators:
        yield Fault(
            ("machine", "accelerators"),
            f"is {tco.machine.accelerators}, but the parts hold {inside} of kind 'accelerator'",
        )
