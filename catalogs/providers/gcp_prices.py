"""GCP offers: the price of a machine as the sum of its parts, and the report of what did not come out.

price/h = vCPUs x core + GiB x RAM + accelerators x GPU + GiB of bundled SSD x local SSD, each at the rate of the
same purchase option and region. A machine lacking the rate of one part has no price: a sum without it would
look like a bargain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache

from catalogs.offers.flags import join_flags
from catalogs.providers.gcp_skus import BILLING_API, PROVIDER, RateBook, SkuNote
from catalogs.providers.gcp_types import NO_SSD, Machine, Row, attached_names, ssd_gib
from catalogs.providers.known_types import known_places, known_types
from catalogs.tables.columns import bundled_rows
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text

# Options sold per zone; a commitment is one for the whole region.
ZONAL_OPTIONS = ("on_demand", "spot", "flex_start")
COMMITMENTS = ("cud_1y", "cud_3y")
OPTIONS = (*ZONAL_OPTIONS, *COMMITMENTS)
# A commitment for machine resources; this variant distinguishes it from spend-based ones.
_VARIANTS = {"cud_1y": "resource", "cud_3y": "resource"}
# Reported even where not a single part was found: everybody expects these.
_EXPECTED = frozenset({"on_demand", "spot"})
_PLACES = Decimal("1e-9")
RETIRED_FLAG = "retired"
NO_DISCOUNT_FLAG = "spot_equals_on_demand"


@dataclass(frozen=True)
class MachineRule:
    """One row of gcp_machines.csv: how a machine type is billed.

    Attributes:
        pattern: glob over instance types.
        host: series of its core and RAM SKUs, "" where the GPU's SKU holds them.
        accelerator_type: Google's id of its accelerator, "" where the name of the machine tells.
        gpu_covers: parts the GPU's SKU already pays for.
        options: purchase options it is sold by, `*` for all.
        local_ssd: `bundled` (its size must be known) or `optional`.
        gpu_share: share of a GPU that the machine has, "" for whole ones.
        gpu_series: series of its GPU's SKU where that is not the accelerator type.
        note: what a reader must know.
        source: where.
        as_of: when.
    """

    pattern: str
    host: str
    accelerator_type: str
    gpu_covers: str
    options: str
    local_ssd: str
    gpu_share: str
    gpu_series: str
    note: str
    source: str
    as_of: str

    def sold_by(self, option: str) -> bool:
        """Whether the machine is sold by a purchase option."""
        return self.options == "*" or option in self.options.split()


@cache
def load_machine_rules() -> tuple[MachineRule, ...]:
    """Read gcp_machines.csv; the first pattern that fits decides."""
    return tuple(MachineRule(**row) for row in bundled_rows("gcp_machines.csv"))


def machine_rule(name: str) -> MachineRule | None:
    """The rule of a machine type; None where it is not known how it is billed."""
    return next((rule for rule in load_machine_rules() if fnmatchcase(name, rule.pattern)), None)


def bundled_machines() -> list[Machine]:
    """Machines in the zones that the bundled catalog knows, for prices without a project."""
    attached = {name: kind for name, _, kind, _ in attached_names()}
    out: list[Machine] = []
    for name, row in known_types(PROVIDER).items():
        rule = machine_rule(name)
        kind = attached.get(name) or (rule.accelerator_type if rule else "")
        if kind:
            zones = [zone for _, zone in known_places(PROVIDER).get(name, ()) if zone]
            out.extend(_bundled_machine(row, zone, kind) for zone in zones)
    return out


def _bundled_machine(row: Row, zone: str, accelerator_type: str) -> Machine:
    return Machine(
        name=row["instance_type"],
        zone=zone,
        vcpus=int(row["vcpus"]),
        memory_gib=Decimal(row["memory_gib"]),
        accelerator_type=accelerator_type,
        accelerators=max(1, round(float(row["accelerator_count"]))),
        ssd_gib=0,
        arch=row["arch"],
        retired=row["status"] == "retired",
    )


@dataclass(frozen=True)
class Unpriced:
    """A machine without a price: which option in which region, and the parts that lack a rate."""

    instance_type: str
    region: str
    option: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Reconciliation:
    """Both ways: SKUs that no machine uses or that were not understood, machines without a whole price.

    Attributes:
        understood: SKUs that price a part.
        unused: reason to number of SKUs known and left aside.
        skus: GPU-related SKUs that were not understood.
        idle: (component, series) with rates but no machine type that uses them.
        machines: machine types without a whole price.
    """

    understood: int
    unused: tuple[tuple[str, int], ...]
    skus: tuple[SkuNote, ...]
    idle: tuple[tuple[str, str], ...]
    machines: tuple[Unpriced, ...]

    def lines(self) -> list[str]:
        """The report in words, one line per finding."""
        head = f"{self.understood} SKUs understood, {len(self.skus)} GPU-related ones not"
        out = [head, *(f"ignored: {number} of {reason}" for reason, number in self.unused)]
        out += [f"SKU {note.sku_id} {note.description!r}: {note.reason}" for note in self.skus]
        out += [f"no machine uses the {component} SKUs of {series}" for component, series in self.idle]
        for item in self.machines:
            place = f"{item.instance_type} in {item.region} by {item.option}"
            out.append(f"no price for {place}: {', '.join(item.missing)}")
        return out


def parts_of(machine: Machine, rule: MachineRule) -> list[tuple[str, str, Decimal]] | str:
    """(component, series, quantity) of a machine, or why they are not known."""
    covers = rule.gpu_covers.split()
    parts = [
        ("cpu", rule.host, Decimal(machine.vcpus)),
        ("ram", rule.host, machine.memory_gib),
        ("gpu", rule.gpu_series or machine.accelerator_type, Decimal(machine.accelerators)),
    ]
    ssd = ssd_gib(machine)
    if machine.name.endswith(NO_SSD):
        if "local_ssd" in covers:
            return "its GPU's SKU includes the local SSD that this machine lacks"
        return [part for part in parts if part[0] not in covers]
    if rule.local_ssd == "bundled" and not ssd and "local_ssd" not in covers:
        return "the size of its local SSD is not known"
    if ssd:
        parts.append(("local_ssd", "any", Decimal(ssd)))
    return [part for part in parts if part[0] not in covers]


def price_machines(
    machines: Sequence[Machine], book: RateBook, options: AbstractSet[str], as_of: str
) -> tuple[list[Row], Reconciliation]:
    """Compose prices of machines and reconcile both ways.

    Args:
        machines: machine types with accelerators, one per zone.
        book: rates of the parts.
        options: purchase options wanted.
        as_of: ISO date of the answers.

    Returns:
        Rows of `offers`, and what did not come out.
    """
    rows: list[Row] = []
    unpriced: dict[tuple[str, str, str], Unpriced] = {}
    used: set[tuple[str, str]] = set()
    ordered = [option for option in OPTIONS if option in options]
    for name, region, zones in _places(machines):
        machine = zones[0]
        rule = machine_rule(name)
        parts = "it is not known which SKUs it is billed by" if rule is None else parts_of(machine, rule)
        if isinstance(parts, str):
            unpriced[name, region, ""] = Unpriced(name, region, "any option", (parts,))
            continue
        used.update((component, series) for component, series, _ in parts)
        for option in ordered if rule is not None else ():
            if rule is not None and not rule.sold_by(option):
                continue
            price, missing = _sum(parts, book, option, region)
            if price is not None:
                rows.extend(
                    _offers(name, region, [m.zone for m in zones], option, price, book.currency, as_of)
                )
            elif option in _EXPECTED or len(missing) < len(parts):
                unpriced[name, region, option] = Unpriced(name, region, option, missing)
    return rows, Reconciliation(
        understood=book.understood,
        unused=tuple(sorted(book.unused.items())),
        skus=tuple(book.notes),
        idle=tuple(sorted({(key[0], key[1]) for key in book.rates} - used)),
        machines=tuple(unpriced.values()),
    )


def _places(machines: Iterable[Machine]) -> list[tuple[str, str, list[Machine]]]:
    """Machines by name and region, one per zone."""
    places: dict[tuple[str, str], dict[str, Machine]] = {}
    for machine in machines:
        places.setdefault((machine.name, machine.region), {})[machine.zone] = machine
    return [
        (name, region, [zones[zone] for zone in sorted(zones)])
        for (name, region), zones in sorted(places.items())
    ]


def _sum(
    parts: Sequence[tuple[str, str, Decimal]], book: RateBook, option: str, region: str
) -> tuple[Decimal | None, tuple[str, ...]]:
    total = Decimal(0)
    missing = []
    for component, series, quantity in parts:
        rate = book.rate(component, series, option, region)
        if rate is None:
            missing.append(f"no {component} SKU of {series}")
        else:
            total += rate * quantity
    return (None if missing else total), tuple(missing)


def _offers(
    name: str, region: str, zones: Sequence[str], option: str, price: Decimal, currency: str, as_of: str
) -> list[Row]:
    places = zones if option in ZONAL_OPTIONS else [""]
    term = PurchaseOption(option).term_hours
    row = {
        "provider": PROVIDER,
        "region": region,
        "instance_type": name,
        "purchase_option": option,
        "option_variant": _VARIANTS.get(option, ""),
        "price_per_hour": decimal_text(price, _PLACES),
        "currency": currency,
        "term_hours": decimal_text(str(term)) if term > 0 else "",
        "basis": "observed" if option == "spot" else "list",
        "source": f"{BILLING_API} (Cloud Billing Catalog v1), sum of the machine's parts",
        "as_of": as_of,
    }
    return [{**row, "zone": zone} for zone in places]


def flag_offers(rows: Sequence[Row], retired: AbstractSet[str]) -> list[Row]:
    """Mark offers of retired machines, and spot that costs as much as on-demand in the same zone or more."""
    listed = {
        (row["region"], row["zone"], row["instance_type"]): Decimal(row["price_per_hour"])
        for row in rows
        if row["purchase_option"] == PurchaseOption.ON_DEMAND.value
    }
    out = []
    for row in rows:
        base = listed.get((row["region"], row["zone"], row["instance_type"]))
        spot = row["purchase_option"] == PurchaseOption.SPOT.value
        flags = [RETIRED_FLAG] if row["instance_type"] in retired else []
        if spot and base is not None and Decimal(row["price_per_hour"]) >= base:
            flags.append(NO_DISCOUNT_FLAG)
        out.append({**row, "flags": join_flags(tuple(flags))})
    return out
