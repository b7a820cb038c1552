"""Whether the bill of materials is a machine that works: supply, lanes, racks, memory, drives, and the printed sum.

Each test says what is needed and what is there, in numbers, beside a published rule of planner/data/sizing_rules.csv
with its verdict. What the parts do not say is `unknown`, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from catalogs.tables.accelerators import load_accelerators
from planner.bundled import bundled_rows
from planner.inputs.tco_load import hardware_prices
from planner.owning.inputs import ends, hardware, load_watts, power, sites
from planner.owning.model import Check
from planner.render.numbers import percent, usd
from planner.render.precision import dollars

if TYPE_CHECKING:
    from planner.inputs.tco_schema import Machine, Part, Tco

HOLDS, BROKEN, UNKNOWN = "holds", "broken", "unknown"
_WORKERS = 2  # loader workers per accelerator that text needs; images need more
_MEMORY_ITEM, _MEMORY_GB = "64 GB DDR5 RDIMM", 64.0
_STATE_BYTES, _CHECKPOINT_BYTES = (
    16.0,
    14.0,
)  # per parameter: mixed precision with Adam; what a checkpoint keeps
_SAME = 0.005  # a printed sum this near is that sum
_NEAR = 1.25  # a price this near is not outdated


@cache
def _rules() -> dict[str, dict[str, str]]:
    return {row["rule_id"]: row for row in bundled_rows("sizing_rules.csv")}


@cache
def _demands() -> tuple[dict[str, str], ...]:
    return tuple(bundled_rows("read_demand.csv"))


def checks_of(tco: Tco) -> tuple[Check, ...]:
    """Test one machine; in the order: what stops it first."""
    return (
        _supply(tco),
        _lanes(tco.machine),
        *_racks(tco),
        *_memory_type(tco.machine),
        _memory(tco),
        *_old_memory(tco.machine),
        _cores(tco.machine),
        _drives(tco),
        *_reads(tco),
        *_printed(tco),
    )


def _check(key: str, words: str, needs: str, has: str, holds: bool | None, rule: str, why: str = "") -> Check:
    row = _rules().get(rule, {})
    verdict = UNKNOWN if holds is None else HOLDS if holds else BROKEN
    return Check(key, words, needs, has, verdict, rule, row.get("rule", ""), row.get("verdict", ""), why)


def _of(machine: Machine, *kinds: str) -> list[Part]:
    return [part for part in machine.parts if part.kind in kinds]


def _sum(parts: Iterable[Part], field: str) -> float | None:
    """Sum over pieces; None where no part says it."""
    stated = [(part.count, getattr(part, field)) for part in parts if getattr(part, field) is not None]
    return sum(count * value for count, value in stated) if stated else None


def _supply(tco: Tco) -> Check:
    """Power supplies give what all parts draw together, one of them having failed where it is a spare."""
    load = power(tco).value * 1000.0 if tco.machine.power_kw is not None else load_watts(tco)
    supplies = _of(tco.machine, "power_supply")
    supplied_watts = _sum(supplies, "watts")
    if supplied_watts is None:
        return _check(
            "power_supply", "power supply", f"{load:,.0f} W", "the parts name no power supply", None, "R40"
        )
    usable = supplied_watts - sum(part.watts or 0.0 for part in supplies if part.spare)
    spare = " without the spare" if usable < supplied_watts else ""
    why = "" if any(part.spare for part in supplies) else "no second supply: one failure stops the machine"
    return _check(
        "power_supply",
        "power supply",
        f"{load:,.0f} W",
        f"{usable:,.0f} W{spare}",
        usable >= load,
        "R40",
        why,
    )


def _lanes(machine: Machine) -> Check:
    users = _of(machine, "accelerator", "nvme", "network")
    needed, offered = _sum(users, "pcie_lanes"), _sum(_of(machine, "cpu", "board"), "pcie_lanes")
    parts = [
        f"{p.count} x {p.pcie_lanes:g} {p.kind.replace('nvme', 'NVMe')}"
        for p in users
        if p.pcie_lanes is not None
    ]
    needs = f"{needed:g} ({' + '.join(parts)})" if needed is not None else "not given"
    has = f"{offered:g}" if offered is not None else "not given"
    holds = None if needed is None or offered is None else offered >= needed
    return _check("pcie_lanes", "PCIe lanes", needs, has, holds, "R37")


def _racks(tco: Tco) -> Iterator[Check]:
    """One machine at full load fits into a rack, and how many do."""
    kw = power(tco).high
    for name, site in sites(tco):
        if site.rack_kw is not None:
            fit = int(site.rack_kw / kw)
            racks = -(-tco.machine.machines // fit) if fit else None
            why = (
                f"{fit} machines a rack: {racks} racks for {tco.machine.machines}"
                if fit
                else "not even one machine"
            )
            yield _check(
                f"rack_power.{name}", f"rack power, {name.replace('_', ' ')}", f"{kw:g} kW a machine",
                f"{site.rack_kw:g} kW a rack", fit >= 1, "", why,
            )  # fmt: skip


def _memory_type(machine: Machine) -> Iterator[Check]:
    cpu_types = {p.memory_type for p in _of(machine, "cpu") if p.memory_type}
    memory_types = {p.memory_type for p in _of(machine, "memory") if p.memory_type}
    if cpu_types and memory_types:
        names = [", ".join(sorted(types)).upper() for types in (cpu_types, memory_types)]
        yield _check(
            "memory_type", "kind of memory", f"{names[0]} (CPU)", names[1], memory_types <= cpu_types, "R37"
        )


def device_memory_gb(tco: Tco) -> float:
    """Memory of all accelerators of one machine: what its parts say, else the catalog's nominal size."""
    stated_gb = _sum(_of(tco.machine, "accelerator"), "memory_gb")
    if stated_gb is not None:
        return stated_gb
    table = load_accelerators()
    at = table["accelerator"].tolist().index(tco.machine.accelerator)
    return float(table.number("memory_gib")[at]) * tco.machine.accelerators


def _memory(tco: Tco) -> Check:
    """Host memory of at least that of the accelerators; what the published rule asks stands beside it."""
    device, host_gb = device_memory_gb(tco), _sum(_of(tco.machine, "memory"), "memory_gb")
    rule = _rules()["R38"]
    why = f"the published rule asks {float(rule['low']) * device:,.0f} to {float(rule['high']) * device:,.0f} GB"
    needs = f"{device:,.0f} to {2 * device:,.0f} GB (1 to 2 x accelerator memory)"
    if host_gb is None:
        return _check("memory", "host memory", needs, "the parts name no memory", None, "R38", why)
    has = f"{host_gb:,.0f} GB, {host_gb / device:.1f} x"
    return _check("memory", "host memory", needs, has, host_gb >= device, "R38", why)


def _old_memory(machine: Machine) -> Iterator[Check]:
    """What a GB of memory costs on the list, against the newest contract prices."""
    rows = [r for r in hardware_prices() if r.item == _MEMORY_ITEM and r.condition == "contract"]
    newest = max(row.as_of for row in rows)
    ends_now = [end / _MEMORY_GB for r in rows if r.as_of == newest for end in (r.low, r.high)]
    for part in _of(machine, "memory"):
        low, _, high = ends(part.usd)
        if part.memory_gb and high > 0.0:
            has = f"{usd(low / part.memory_gb)} to {usd(high / part.memory_gb)} a GB ({part.usd.as_of or 'undated'})"
            yield _check(
                "memory_price", f"price of {part.name}",
                f"{usd(min(ends_now))} to {usd(max(ends_now))} a GB by contracts of {newest}", has,
                high / part.memory_gb * _NEAR >= min(ends_now), "",
                "memory prices of before 2025-10 are too low by 3 to 10 times",
            )  # fmt: skip


def _cores(machine: Machine) -> Check:
    needed = machine.accelerators * (_WORKERS + 1) + 4
    cores = _sum(_of(machine, "cpu"), "cores")
    needs = f"{needed} ({machine.accelerators} x ({_WORKERS} workers + 1) + 4); more for images"
    holds = None if cores is None else cores >= needed
    return _check(
        "cores", "CPU cores", needs, f"{cores:g}" if cores is not None else "not given", holds, "R37"
    )


def _drives(tco: Tco) -> Check:
    """Fast drives hold two checkpoints of the largest model whose training state fits the accelerators."""
    needed = 2.0 * device_memory_gb(tco) * _CHECKPOINT_BYTES / _STATE_BYTES / 1000.0
    capacity_tb = _sum(_of(tco.machine, "nvme"), "capacity_tb")
    needs = f"{needed:.2f} TB (two checkpoints of what the accelerators hold)"
    if capacity_tb is None:
        return _check("nvme", "NVMe capacity", needs, "the parts name no NVMe drive", None, "R28")
    return _check(
        "nvme",
        "NVMe capacity",
        needs,
        f"{capacity_tb:g} TB",
        capacity_tb >= needed,
        "R28",
        "data to be cached comes on top",
    )


def _reads(tco: Tco) -> Iterator[Check]:
    """Sequential reads of all fast drives against what measured workloads ask of this generation."""
    table = load_accelerators()
    at = table["accelerator"].tolist().index(tco.machine.accelerator)
    generation, gb_per_s = str(table["generation"][at]), _sum(_of(tco.machine, "nvme"), "read_gb_per_s")
    for row in _demands():
        if row["generation"] == generation:
            needed = float(row["mb_per_s"]) * tco.machine.accelerators / 1000.0
            name = row["workload"]
            has = "not given" if gb_per_s is None else f"{gb_per_s:g} GB/s by data sheet"
            yield _check(
                f"nvme_read.{name}", f"reads for {name}", f"{needed:.2f} GB/s", has,
                None if gb_per_s is None else gb_per_s >= needed, "R39",
                "small files reach a third to a seventh of the sheet",
            )  # fmt: skip


def _printed(tco: Tco) -> Iterator[Check]:
    """The sum that the list prints, against the sum of its parts in the numbers that it describes."""
    printed = tco.machine.printed_usd
    if printed is None:
        return
    printed_ends, computed = ends(printed), hardware(tco)
    ours = (computed.low, computed.high)
    holds = all(
        abs(stated - other) <= _SAME * max(stated, other, 1.0)
        for stated, other in zip((printed_ends[0], printed_ends[2]), ours, strict=True)
    )
    why = (
        ""
        if holds
        else _explained(tco, (printed_ends[0], printed_ends[2]))
        or f"off by {percent(ours[0] / printed_ends[0] - 1.0, 0)}"
    )
    yield _check(
        "printed_sum", "printed sum", f"{dollars(ours[0], 0)} to {dollars(ours[1], 0)}, the sum of the parts",
        f"{dollars(printed_ends[0], 0)} to {dollars(printed_ends[2], 0)}", holds, "R40", why,
    )  # fmt: skip


def _explained(tco: Tco, printed: tuple[float, float]) -> str:
    """Which part was counted too few times for the printed sum to be right; empty where none is."""
    factor = hardware(tco)
    for part in tco.machine.parts:
        low, _, high = ends(part.usd)
        for count in range(part.count):
            less = part.count - count
            if all(
                abs(whole - less * each - stated) <= _SAME * max(stated, 1.0)
                for whole, each, stated in zip((factor.low, factor.high), (low, high), printed, strict=True)
            ):
                return f"right only with {count} x {part.name} in place of {part.count}"
    return ""
