"""The machine as a file for `prices.offers` of a workload, so that it competes in `optimize` and `portfolio`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.owning.figures import HOURS_PER_MONTH, MONTHS_PER_YEAR
from planner.owning.model import COLOCATION, Fixed, Handover
from planner.render.numbers import usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.inputs.tco_schema import Machine, Tco

_GB_PER_GIB = 1.073741824
_DIGITS = 10


def handover_of(
    tco: Tco, site: str, values: Mapping[str, float], fixed: Fixed, usd_per_useful_hour: float
) -> Handover:
    """Write the machine at a site.

    Args:
        tco: the question.
        site: where it stands.
        values: of every factor.
        fixed: what has no range.
        usd_per_useful_hour: cost of owning it there.
    """
    machine, life = tco.machine, values["years"]
    power = values["power_kw"] * values[f"{site}.pue"] * values[f"{site}.usd_per_kwh"]
    running = (
        values[f"{site}.hosting_usd_per_month"] + values["power_kw"] * values[f"{site}.usd_per_kw_month"]
    )
    running += values[f"{site}.staff_fte"] * values[f"{site}.staff_usd_per_year"] / MONTHS_PER_YEAR
    running += values["hardware_usd"] * values["maintenance_ratio"] / MONTHS_PER_YEAR
    salvage = values["hardware_usd"] * values["residual_ratio"] ** (life / fixed.residual_after_years)
    hardware, lacks = _hardware(machine)
    full = usd_per_useful_hour * machine.accelerators
    hourly = running / HOURS_PER_MONTH / values["utilisation_ratio"]
    lines = [
        f"# {_plain(tco.name)}, {'in a colocation' if site == COLOCATION else 'in own rooms'}: "
        "for `prices: {offers: [this file]}` of a workload.",
        f"# An hour costs {usd(power)} at the margin (power alone: the machine is paid) and {usd(full)} in full, all",
        "# costs of `planner tco` over the hours that it works. `cost_basis: full` lets the purchase compete too.",
        "version: 1",
        "machines:",
        f"  - instance_type: {_identifier(machine.name or tco.name)}",
        f"    accelerator: {machine.accelerator}",
        f"    accelerator_count: {machine.accelerators}",
        *(f"    {line}" for line in hardware),
        f"    nodes: {machine.machines}",
        f"    power_kw: {_text(values['power_kw'])}",
        f"    pue: {_text(values[f'{site}.pue'])}",
        f"    usd_per_kwh: {_text(values[f'{site}.usd_per_kwh'])}",
        f"    purchase_price_usd: {_text(values['hardware_usd'])}",
        f"    salvage_usd: {_text(salvage)}",
        f"    lifetime_years: {_text(life)}",
        f"    utilisation_ratio: {_text(values['utilisation_ratio'])}",
        f"    # hosting_usd_per_month: {_text(running)}  rent, staff and support: owed whether it works or not, so an",
        f"    # hour more costs none of it. Uncommented it adds {usd(hourly)} to each hour.",
    ]
    return Handover("\n".join(lines) + "\n", power, full, lacks)


def _hardware(machine: Machine) -> tuple[list[str], tuple[str, ...]]:
    """Lines on CPU, memory, links and drives; and what the parts do not say but the reader of the file wants."""
    of = {
        "vcpus": 2 * sum(p.count * (p.cores or 0) for p in machine.parts if p.kind == "cpu"),
        "memory_gib": sum(p.count * (p.memory_gb or 0.0) for p in machine.parts if p.kind == "memory"),
    }
    lacks = tuple(name for name, value in of.items() if not value)
    lines = [f"# {name}: the parts do not say it, and it must be given" for name in lacks]
    lines += [f"{name}: {_text(value)}" for name, value in of.items() if value]
    if machine.intra_node is not None:
        lines.append(f"intra_node: {machine.intra_node}")
    if machine.internode_gbps:
        lines.append(f"internode_gbps: {_text(machine.internode_gbps)}")
    if machine.rdma is not None:
        lines.append(f"rdma: {_identifier(machine.rdma)}")
    drives = sum(p.count * (p.capacity_tb or 0.0) for p in machine.parts if p.kind == "nvme")
    if drives:
        lines.append(f"local_nvme_gib: {_text(round(drives * 1000.0 / _GB_PER_GIB))}")
    return lines, lacks


def _identifier(text: str) -> str:
    """Letters, digits, dots and dashes: what breaks out of no YAML."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "own-machine"


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _text(value: float) -> str:
    """A number in plain digits."""
    text = f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".")
    return text or "0"
