"""A user's own machines: on-prem, negotiated, or at a provider that the catalog does not know.

`load_static(path)` reads a YAML or CSV file (docs/tariffs.md shows both) into the catalog's two tables. A
machine is priced directly (`price_per_hour`, `currency`) or from its purchase: see
`catalogs.offers.owned_cost`. Every fault of the file is reported at once, with its line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np

from catalogs.errors import CatalogInputError
from catalogs.offers.owned_cost import OwnedCost, owned_cost_breakdown
from catalogs.offers.static_fields import FIELDS, OWNING_FIELDS, Entry, Machine, check_machine, no_such_field
from catalogs.offers.static_file import read_entries
from catalogs.tables.table import Table
from catalogs.tariffs.carbon import Site

__all__ = ["StaticCatalog", "load_static", "owned_cost_breakdown"]


@dataclass(frozen=True, eq=False)
class StaticCatalog:
    """The file's machines in the catalog's schema, and how each owned price came about.

    Attributes:
        instance_types: one row per machine.
        offers: one row per machine.
        costs: arithmetic of each offer's price; None where the file gives the price itself.
        sites: grid and overhead of each offer; None where the file states neither.
        path: the file.
        lines: line of each row of `instance_types`.
    """

    instance_types: Table
    offers: Table
    costs: tuple[OwnedCost | None, ...]
    sites: tuple[Site | None, ...]
    path: Path
    lines: tuple[int, ...]

    def types_beside(self, types: Table) -> Table:
        """Return the machines of the file after others.

        Args:
            types: instance types of the catalog and of other files.

        Raises:
            CatalogInputError: a machine has the provider and name of one of `types`.
        """
        mine = self.instance_types.select(list(types))
        known = set(zip(types["provider"], types["instance_type"], strict=True))
        names = zip(mine["provider"], mine["instance_type"], self.lines, strict=True)
        faults = [
            f"{self.path}:{line}: instance_type: {provider} has a {name} in the catalog or in another file of "
            "prices.offers: give yours another name; to change the price of one in the catalog, use prices.overlays"
            for provider, name, line in names
            if (provider, name) in known
        ]
        if faults:
            raise CatalogInputError("\n".join(faults))
        return Table.concat([types, mine])


def load_static(path: Path, on: date | None = None) -> StaticCatalog:
    """Load a user's machines.

    Args:
        path: a `.yaml`, `.yml` or `.csv` file.
        on: day of machines that state no `as_of`: the day of planning, so that a check on a later day finds the same
            prices; default today in UTC.

    Raises:
        CatalogInputError: the file cannot be read or holds faults; each is one line `file:line: field:
        message`.
    """
    defaults, entries, faults = read_entries(path)
    machines: list[Machine] = []
    for entry in entries:
        priced = "price_per_hour" in entry.values
        inherited = {name: at for name, at in defaults.items() if not (priced and name in OWNING_FIELDS)}
        merged = Entry(entry.line, {**inherited, **entry.values})
        faults.extend(no_such_field(merged))
        machine, new_faults = check_machine(merged)
        faults.extend(new_faults)
        if machine is not None:
            machines.append(machine)
    faults.extend(_duplicates(machines))
    if not entries and not faults:
        faults.append((1, "machines: the file lists no machine"))
    if faults:
        lines = (f"{path}:{line}: {message}" for line, message in sorted(set(faults)))
        raise CatalogInputError("\n".join(lines))
    return _tables(path, machines, (on or datetime.now(UTC).date()).isoformat())


def _duplicates(machines: list[Machine]) -> list[tuple[int, str]]:
    seen: dict[tuple[str, ...], int] = {}
    types: dict[tuple[str, str], Machine] = {}
    faults: list[tuple[int, str]] = []
    for machine in machines:
        provider, name = machine.text("provider"), machine.text("instance_type")
        key = (provider, machine.text("region"), machine.text("zone"), name, machine.text("purchase_option"))
        if key in seen:
            faults.append((machine.line, f"instance_type: {name!r} is listed on line {seen[key]} already"))
        seen.setdefault(key, machine.line)
        first = types.setdefault((provider, name), machine)
        hardware = [at for at, rule in FIELDS.items() if rule.of_type]
        differing = [at for at in hardware if first.raw(at) != machine.raw(at)]
        if differing:
            message = (
                f"{differing[0]}: {name!r} has another value on line {first.line}; one name, one machine"
            )
            faults.append((machine.line, message))
    return faults


def _tables(path: Path, machines: list[Machine], day: str) -> StaticCatalog:
    costs = tuple(machine.cost for machine in machines)
    prices = [
        _price_text(machine.number("price_per_hour") if cost is None else cost.usd_per_hour)
        for machine, cost in zip(machines, costs, strict=True)
    ]
    source = f"user file {path.name}"
    types = _one_per_type(machines)
    return StaticCatalog(
        _instance_types(types, source, day), _offers(machines, prices, source, day), costs,
        tuple(machine.site for machine in machines), path, tuple(machine.line for machine in types),
    )  # fmt: skip


def _price_text(price: Decimal | None) -> str:
    assert price is not None
    text = f"{price:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _one_per_type(machines: list[Machine]) -> list[Machine]:
    rows: dict[tuple[str, str], Machine] = {}
    for machine in machines:
        rows.setdefault((machine.text("provider"), machine.text("instance_type")), machine)
    return list(rows.values())


def _instance_types(types: list[Machine], source: str, day: str) -> Table:
    def texts(name: str) -> list[str]:
        return [machine.text(name) for machine in types]

    def numbers(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.asarray([_float(machine.number(name)) for machine in types], dtype=np.float64)

    return Table(
        {
            "provider": texts("provider"),
            "instance_type": texts("instance_type"),
            "family": [m.text("family") or m.text("instance_type") for m in types],
            "accelerator": texts("accelerator"),
            "accelerator_name": texts("accelerator_name"),
            "accelerator_count": numbers("accelerator_count"),
            "accelerator_memory_gib": numbers("accelerator_memory_gib"),
            "vcpus": numbers("vcpus"),
            "memory_gib": numbers("memory_gib"),
            "arch": texts("arch"),
            "intra_node": texts("intra_node"),
            "intra_node_gb_per_s": numbers("intra_node_gb_per_s"),
            "link_domain_accelerators": numbers("link_domain_accelerators"),
            "allocation_unit": numbers("allocation_unit"),
            "internode_gbps": numbers("internode_gbps"),
            "rdma": texts("rdma"),
            "local_nvme_gib": numbers("local_nvme_gib"),
            "status": ["current"] * len(types),
            "source": [source] * len(types),
            "as_of": [m.text("as_of") or day for m in types],
            "note": texts("note"),
        },
        length=len(types),
    )


def _float(value: Decimal | None) -> float:
    return float("nan") if value is None else float(value)


def _offers(machines: list[Machine], prices: list[str], source: str, day: str) -> Table:
    def texts(make: Callable[[Machine], str]) -> list[str]:
        return [make(machine) for machine in machines]

    def numbers(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.asarray([_float(machine.number(name)) for machine in machines], dtype=np.float64)

    return Table(
        {
            "provider": texts(lambda m: m.text("provider")),
            "region": texts(lambda m: m.text("region")),
            "zone": texts(lambda m: m.text("zone")),
            "instance_type": texts(lambda m: m.text("instance_type")),
            "purchase_option": texts(lambda m: m.text("purchase_option")),
            "option_variant": texts(lambda m: "" if m.cost is None else m.cost.basis),
            "price_per_hour": prices,
            "currency": texts(lambda m: m.text("currency")),
            "upfront_per_instance": [""] * len(machines),
            "term_hours": np.full(len(machines), np.nan),
            "capacity": numbers("nodes"),
            "basis": ["declared"] * len(machines),
            "interruption_band": [""] * len(machines),
            "flags": [""] * len(machines),
            "source": [source] * len(machines),
            "as_of": texts(lambda m: m.text("as_of") or day),
        },
        length=len(machines),
    )
