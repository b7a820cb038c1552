"""Fields of a machine in a user's file, and the checks on them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from catalogs.errors import CatalogError
from catalogs.offers.naming import known_accelerators
from catalogs.offers.owned_cost import OwnedCost, owned_cost_breakdown
from catalogs.tables.accelerators import canonical, load_accelerators
from catalogs.tables.model import PurchaseOption
from catalogs.tariffs.carbon import Grid, Overhead, Site, load_carbon

STATED = "stated"
_SOURCE = "stated in the file of the machine"


def stated_site(
    values: Mapping[str, tuple[str, int]], texts: Mapping[str, str], numbers: Mapping[str, Decimal]
) -> tuple[Site | None, list[tuple[int, str]]]:
    """Where the machine draws its electricity; None where the file states neither grid nor PUE (docs/carbon.md).

    What is not stated is that of the machine's provider and region, as for any offer.

    Args:
        values: fields as written, with their lines.
        texts: checked texts, with defaults.
        numbers: checked numbers, with defaults.
    """
    tables = load_carbon()
    provider, region = texts.get("provider", ""), texts.get("region", "")
    place, figure = values.get("grid", ("", 0)), values.get("grid_gco2e_per_kwh", ("", 0))
    if place[0] and figure[0]:
        return None, [(place[1], "grid: give either grid or grid_gco2e_per_kwh, not both")]
    grid: Grid | None = tables.grid(provider, region)
    if place[0]:
        grid = tables.grid_of(place[0])
        if grid is None:
            return None, [(place[1], f"grid: {place[0]!r} has no figure; {_remedy()}")]
    elif figure[0] and "grid_gco2e_per_kwh" in numbers:
        grid = tables.stated_grid(float(numbers["grid_gco2e_per_kwh"]), _SOURCE)
    overhead = tables.overhead(provider)
    if values.get("pue", ("", 0))[0] and "pue" in numbers:
        pue = float(numbers["pue"])
        overhead = Overhead(pue, pue, pue, STATED, _SOURCE)
    elif not (place[0] or figure[0]):
        return None, []
    return Site(grid, overhead), []


def _remedy() -> str:
    return (
        "name a region of the bundled data (gcp/europe-west3), a country that has a national mean "
        f"({', '.join(load_carbon().countries)}), or state grid_gco2e_per_kwh"
    )


Faults = list[tuple[int, str]]
_LINKS = ("nvswitch", "nvlink", "pcie", "neuronlink", "xgmi", "ici", "single", "unknown")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Field:
    """One field: `low` < value <= `high` (>= `low` if `closed`); `of_type`: describes the hardware."""

    kind: str = "text"
    low: str = "0"
    high: str = "1e12"
    closed: bool = True
    default: str = ""
    choices: tuple[str, ...] = ()
    of_type: bool = False


def _number(low: str = "0", high: str = "1e12", **rest: object) -> Field:
    return Field("number", low, high, **rest)  # type: ignore[arg-type]


FIELDS: Mapping[str, Field] = {
    "instance_type": Field(),
    "provider": Field(default="onprem"),
    "family": Field(of_type=True),
    "region": Field(default="onprem"),
    "zone": Field(),
    "accelerator": Field(of_type=True),
    "accelerator_count": _number("0.01", "1024", of_type=True),
    "accelerator_memory_gib": _number("0.1", "4096", of_type=True),
    "vcpus": _number("0.01", "4096", of_type=True),
    "memory_gib": _number("0.1", "65536", of_type=True),
    "arch": Field(default="x86_64", choices=("x86_64", "arm64"), of_type=True),
    "intra_node": Field(default="unknown", choices=_LINKS, of_type=True),
    "intra_node_gb_per_s": _number("0.01", "10000", of_type=True),
    "link_domain_accelerators": _number("2", "1024", of_type=True),
    "allocation_unit": _number("1", "1000", of_type=True),
    "internode_gbps": _number("0.01", "20000", of_type=True),
    "rdma": Field(of_type=True),
    "local_nvme_gib": _number("0", "1e6", of_type=True),
    "nodes": _number("1", "1e6"),
    "purchase_option": Field(default="owned", choices=tuple(option.value for option in PurchaseOption)),
    "price_per_hour": _number("0", "100000"),
    "currency": Field(default="USD"),
    "cost_basis": Field(choices=("full", "marginal")),
    "purchase_price_usd": _number("0.01", "1e9"),
    "salvage_usd": _number(default="0"),
    "lifetime_years": _number("0.01", "30"),
    "power_kw": _number("0.0001", "1000"),
    "power_watts": _number("0.1", "1e6"),
    "pue": _number("1", "5", default="1"),
    "usd_per_kwh": _number("0", "10"),
    "hosting_usd_per_month": _number(default="0"),
    "utilisation_ratio": _number("0.001", "1", default="1"),
    "grid": Field(),
    "grid_gco2e_per_kwh": _number("0", "2000", closed=False),
    "as_of": Field(),
    "note": Field(),
}
_CURRENCY = re.compile(r"[A-Z]{3}")
OWNING_FIELDS = ("purchase_price_usd", "lifetime_years", "power_kw", "power_watts", "usd_per_kwh")

_MONEY_FIELDS = {*OWNING_FIELDS, "price_per_hour", "currency", "cost_basis", "salvage_usd", "pue"}
_MONEY_FIELDS |= {"hosting_usd_per_month", "utilisation_ratio", "purchase_option"}


@dataclass(frozen=True)
class Entry:
    """A machine as written: `values` maps a field to (text, line)."""

    line: int
    values: Mapping[str, tuple[str, int]]


@dataclass(frozen=True)
class Machine:
    """A checked machine."""

    line: int
    texts: Mapping[str, str]
    numbers: Mapping[str, Decimal]
    cost: OwnedCost | None = field(default=None)
    site: Site | None = field(default=None)

    def text(self, name: str) -> str:
        """Text of a field, "" where it is not given."""
        return self.texts.get(name, "")

    def number(self, name: str) -> Decimal | None:
        """Number of a field, None where it is not given."""
        return self.numbers.get(name)

    def raw(self, name: str) -> object:
        """Text or number of a field, for comparing machines."""
        return self.numbers.get(name, self.texts.get(name, ""))


# What other files and people call the fields.
_OTHER_WORDS = {
    **dict.fromkeys(("name", "type", "machine"), "instance_type"),
    **dict.fromkeys(("gpu", "gpu_type"), "accelerator"),
    **dict.fromkeys(("accelerators", "gpus", "gpu_count", "num_gpus"), "accelerator_count"),
    **dict.fromkeys(("count", "machines", "instances"), "nodes"),
    **dict.fromkeys(("ram", "ram_gib", "ram_gb", "memory", "memory_gb"), "memory_gib"),
    **dict.fromkeys(("cpus", "cores"), "vcpus"),
    **dict.fromkeys(("price", "usd_per_hour", "cost_per_hour"), "price_per_hour"),
    **dict.fromkeys(("country", "location", "place"), "region"),
}


def no_such_field(entry: Entry) -> Faults:
    """Faults of unknown fields, with the field that was probably meant."""
    faults: Faults = []
    for name, (_, line) in entry.values.items():
        if name not in FIELDS:
            close = (
                [_OTHER_WORDS[name]] if name in _OTHER_WORDS else difflib.get_close_matches(name, FIELDS, n=1)
            )
            hint = f" (did you mean {close[0]}?)" if close else ""
            faults.append((line, f"{name[:200]}: no such field{hint}"))
    return faults


def check_machine(entry: Entry) -> tuple[Machine | None, Faults]:
    """Check one machine; returns it, or None with its faults."""
    texts: dict[str, str] = {}
    numbers: dict[str, Decimal] = {}
    faults: Faults = []
    for name, rule in FIELDS.items():
        written, line = entry.values.get(name, ("", entry.line))
        text = written or rule.default
        if not text:
            continue
        fault = _number_fault(rule, text) if rule.kind == "number" else _text_fault(rule, text)
        if fault:
            faults.append((line, f"{name}: {fault}"))
        elif rule.kind == "number":
            numbers[name] = Decimal(text)
        else:
            texts[name] = text
    faults.extend(_required(entry, faults))
    faults.extend(_accelerator(entry, texts))
    faults.extend(_identifiers(entry, texts, numbers))
    cost = None
    if not {message.split(":")[0] for _, message in faults} & _MONEY_FIELDS:
        cost, new_faults = _cost(entry, texts, numbers)
        faults.extend(new_faults)
    site, new_faults = stated_site(entry.values, texts, numbers)
    faults.extend(new_faults)
    if faults:
        return None, faults
    _fill(texts, numbers)
    return Machine(entry.line, texts, numbers, cost, site), []


def _fill(texts: dict[str, str], numbers: dict[str, Decimal]) -> None:
    """Fill what follows from other fields: the accelerator's nominal memory, the link of a single one."""
    if "accelerator_memory_gib" not in numbers:
        table = load_accelerators()
        row = table["accelerator"].tolist().index(texts["accelerator"])
        memory = float(table.number("memory_gib")[row])
        if memory > 0:
            numbers["accelerator_memory_gib"] = Decimal(repr(memory))
    if numbers["accelerator_count"] == 1 and texts["intra_node"] == "unknown":
        texts["intra_node"] = "single"


def _number_fault(rule: Field, text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return f"expected a number, got {text[:60]!r}{'; decimals have a point' if ',' in text else ''}"
    low, high = Decimal(rule.low), Decimal(rule.high)
    if not value.is_finite() or value > high or value < low or (value == low and not rule.closed):
        return f"{text[:60]} is not {'at least' if rule.closed else 'above'} {low} and at most {high:f}"
    return ""


def _text_fault(rule: Field, text: str) -> str:
    if not rule.choices or text in rule.choices:
        return ""
    close = difflib.get_close_matches(text, rule.choices, n=1)
    hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(rule.choices)}"
    return f"unknown value {text!r} ({hint})"


def _required(entry: Entry, faults: Faults) -> Faults:
    bad = {message.split(":")[0] for _, message in faults}
    needed = ("instance_type", "accelerator", "accelerator_count", "vcpus", "memory_gib", "nodes")
    missing = [name for name in needed if not entry.values.get(name, ("", 0))[0] and name not in bad]
    return [(entry.line, f"{name}: required, but missing") for name in missing]


def _accelerator(entry: Entry, texts: dict[str, str]) -> Faults:
    """Replace the accelerator's name by its canonical id."""
    name = texts.get("accelerator", "")
    if not name:
        return []
    for spelled in (name, name.lower()):
        try:
            texts["accelerator"] = canonical(spelled)
        except CatalogError:
            continue
        texts["accelerator_name"] = name
        return []
    identifiers = [str(identifier) for identifier in load_accelerators()["accelerator"]]
    # `H100` is several accelerators: which one decides on memory and links
    close = known_accelerators(name) or difflib.get_close_matches(name.lower(), identifiers, n=3, cutoff=0.5)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    return [(entry.values["accelerator"][1], f"accelerator: {name[:60]!r} is not known{hint}")]


def _identifiers(entry: Entry, texts: dict[str, str], numbers: dict[str, Decimal]) -> Faults:
    faults: Faults = []
    provider = texts.get("provider", "")
    if provider and not _IDENTIFIER.fullmatch(provider):
        line = entry.values["provider"][1]
        faults.append((line, f"provider: {provider!r} is not a lower-case id such as onprem or my-cloud"))
    if "currency" in texts and not _CURRENCY.fullmatch(texts["currency"]):
        message = f"currency: {texts['currency']!r} is not a three-letter code such as USD or EUR"
        faults.append((entry.values["currency"][1], message))
    nodes = numbers.get("nodes")
    if nodes is not None and nodes != nodes.to_integral_value():
        faults.append((entry.values["nodes"][1], f"nodes: {nodes} is not a whole number"))
    return faults


def _cost(
    entry: Entry, texts: dict[str, str], numbers: dict[str, Decimal]
) -> tuple[OwnedCost | None, Faults]:
    """Price of the machine: None when it is given per hour, else computed from purchase and power."""
    owning = [name for name in OWNING_FIELDS if name in numbers]
    if "price_per_hour" in numbers:
        if not numbers["price_per_hour"] and texts["purchase_option"] != "owned":
            line = entry.values["price_per_hour"][1]
            return None, [
                (line, "price_per_hour: only a machine that is owned costs nothing more; give its price")
            ]
        if owning:
            line = entry.values[owning[0]][1]
            return None, [
                (line, f"{owning[0]}: give either price_per_hour or the purchase and power, not both")
            ]
        if entry.values.get("cost_basis", ("", 0))[0] == "marginal":
            line = entry.values["cost_basis"][1]
            return None, [
                (line, "cost_basis: marginal needs power and usd_per_kwh instead of price_per_hour")
            ]
        return None, []
    return _owned_cost(entry, texts, numbers)


def _owned_cost(
    entry: Entry, texts: dict[str, str], numbers: dict[str, Decimal]
) -> tuple[OwnedCost | None, Faults]:
    # a machine that is owned is already paid; any other way to have it still asks for its purchase
    basis = texts.get("cost_basis") or ("marginal" if texts["purchase_option"] == "owned" else "full")
    if not {name for name in OWNING_FIELDS if name in numbers} - {"usd_per_kwh"}:
        remedy = "give it, or power_kw and usd_per_kwh with purchase_price_usd and lifetime_years"
        return None, [(entry.line, f"price_per_hour: the machine has no price; {remedy}")]
    faults: Faults = []
    if ("power_kw" in numbers) == ("power_watts" in numbers):
        faults.append((entry.line, "power_kw: give power_kw or power_watts (or a price_per_hour instead)"))
    needed = ["usd_per_kwh"]
    if basis == "full" or "purchase_price_usd" in numbers:
        needed += ["purchase_price_usd", "lifetime_years"]
    faults += [
        (entry.line, f"{name}: required without price_per_hour") for name in needed if name not in numbers
    ]
    if texts["currency"] != "USD":
        faults.append(
            (entry.values["currency"][1], "currency: a computed price is in USD; give figures in USD")
        )
    if numbers.get("salvage_usd", Decimal(0)) > numbers.get("purchase_price_usd", Decimal("Infinity")):
        faults.append((entry.values["salvage_usd"][1], "salvage_usd: more than the purchase price"))
    if faults:
        return None, faults
    cost = owned_cost_breakdown(
        power_kw=numbers.get("power_kw", numbers.get("power_watts", Decimal(0)) / 1000),
        usd_per_kwh=numbers["usd_per_kwh"],
        pue=numbers["pue"],
        purchase_price_usd=numbers.get("purchase_price_usd"),
        salvage_usd=numbers["salvage_usd"],
        lifetime_years=numbers.get("lifetime_years", Decimal(1)),
        hosting_usd_per_month=numbers["hosting_usd_per_month"],
        utilisation_ratio=numbers["utilisation_ratio"],
        cost_basis=basis,
    )
    if cost.usd_per_hour <= 0:
        return None, [
            (
                entry.line,
                "usd_per_kwh: an hour of the machine would cost nothing; give what power or hosting cost, "
                "cost_basis: full to count the purchase, or price_per_hour: 0 if nothing is to count",
            )
        ]
    return cost, []
