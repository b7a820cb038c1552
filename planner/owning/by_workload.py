"""What a useful hour of the cloud costs for one workload: its own plans by option, on the machine's accelerator.

A plan's cost holds what a price list does not: storage, waiting, lost work on spot, a fall-back. Divided by the
accelerator-hours that the work takes without interruptions, it is the price of a useful hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.faults import Fault
from planner.inputs.load import load_workload
from planner.owning.cloud import Market
from planner.owning.model import Factor, Rent

if TYPE_CHECKING:
    from pathlib import Path

    from planner.asked.options import Options
    from planner.inputs.tco_load import LoadedTco
    from planner.job.compare import Comparison, Row

_ROWS = {"on_demand": "on_demand", "spot": "spot, else on_demand", "capacity_block": "capacity_block"}
"""Rows of the comparison by option: what is paid by the job. Terms of years are not one job's."""
SOURCE = "plans of {name} on {accelerator}, by option"


def market_by_workload(loaded: LoadedTco, options: Options, catalog_dir: Path | None = None) -> Market:
    """The price of a useful accelerator-hour by option.

    Args:
        loaded: the question; its cloud names a workload.
        options: the day whose prices count.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is wrong, is a fleet, or no plan on the machine's accelerator meets its limits.
        CatalogError: the catalog cannot be used.
    """
    from catalogs.store.load import load_catalog
    from planner.inputs.settings import with_settings
    from planner.job.compare import compare

    cloud, accelerator = loaded.tco.cloud, loaded.tco.machine.accelerator
    assert cloud.workload is not None
    types = load_catalog(catalog_dir, as_of=options.as_of).instance_types
    if accelerator not in types.coded("accelerator").values:
        instead = "in place of a workload, name one to rent in cloud.accelerator"
        text = f"no offer in the catalog has '{accelerator}': {instead}"
        raise loaded.document.source.error([Fault(("cloud", "workload"), text)])
    path = loaded.document.path.parent / cloud.workload
    limited = with_settings(load_workload(path), [f"constraints.accelerators.allow=[{accelerator}]"])
    comparison = compare(limited, options, over="option", catalog_dir=catalog_dir)
    rows: dict[str, Row] = {
        option: row
        for option, name in _ROWS.items()
        if (row := _kept(comparison, name)) and option in cloud.options
    }
    if not rows:
        text = f"no plan of it on {accelerator} meets its limits: see `planner compare {cloud.workload} --over option`"
        raise loaded.document.source.error([Fault(("cloud", "workload"), text)])
    hours = _useful_hours(rows)
    rents, factors = [], []
    for option, row in rows.items():
        rent, work = _rent(option, row, hours, comparison, accelerator)
        rents.append(rent)
        factors += work
    missing = tuple(option for option in cloud.options if option not in rows)
    return Market(tuple(rents), tuple(factors), missing)


def _kept(comparison: Comparison, name: str) -> Row | None:
    """The row of that name, if its plan keeps all limits."""
    row = next((item for item in comparison.rows if item.name == name), None)
    return row if row is not None and row.best is not None and not row.misses else None


def _useful_hours(rows: dict[str, Row]) -> float:
    """Accelerator-hours of the work: those of the plan on demand, which nothing interrupts, else of the shortest."""
    chosen = [rows["on_demand"]] if "on_demand" in rows else list(rows.values())
    return min(row.best.accelerators * row.best.hours for row in chosen if row.best is not None)


def _rent(
    option: str, row: Row, hours: float, comparison: Comparison, accelerator: str
) -> tuple[Rent, list[Factor]]:
    best = row.best
    assert best is not None
    source = SOURCE.format(name=comparison.workload, accelerator=accelerator)
    offer = "/".join((best.provider, best.region, best.zone or "-", best.instance_type, option, "-"))
    rent = Rent(
        option, best.option_variant, offer, best.accelerator, best.accelerators / best.nodes, 0, 0.0, "plan", False,
        source, best.price_as_of,
    )  # fmt: skip
    price, half = float(best.cost_usd) / hours, comparison.usd_ratio
    ranged = Factor(
        rent.price_key, f"price of {option} by its plan", price * max(0.0, 1.0 - half), price, price * (1.0 + half),
        "USD/accelerator-hour", "catalog", source, best.price_as_of,
    )  # fmt: skip
    same = Factor(
        rent.speed_key, f"speed of {accelerator} over itself", 1.0, 1.0, 1.0, "ratio", "definition", source
    )
    return rent, [ranged, same]
