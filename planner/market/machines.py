"""Instance types by name: a row of the catalog's types and of the distinct hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.offers.naming import fitting_names
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.table import Coded, Ints, Table
from planner.errors import InputError
from planner.inputs.faults import near
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt


_SOME = 4  # machines that a message names
HARDWARE_COLUMNS = (
    "accelerator", "accelerator_count", "accelerator_memory_gib", "memory_gib", "vcpus", "intra_node",
    "intra_node_gb_per_s", "link_domain_accelerators", "internode_gbps", "rdma", "local_nvme_gib",
)  # fmt: skip
ACCELERATOR_COLUMNS = (
    "generation", "vendor", "memory_gb_per_s", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops",
    "fp8_tflops", "fp4_tflops", "achievable_bf16_tflops", "link_gb_per_s", "pcie_gen", "trainable",
)  # fmt: skip


@record(frozen=True, eq=False)
class MachineSet:
    """Instance types and their distinct hardware, joined by index; no prices.

    Attributes:
        types: one row per instance type.
        hardware: one row per distinct hardware, with its accelerator's columns (input of the performance model).
        hardware_of_type: row of `hardware` per type.
    """

    types: Table
    hardware: Table
    hardware_of_type: Ints


@record(frozen=True)
class Machine:
    """An instance type of the catalog: rows of the type and hardware tables."""

    provider: str
    instance_type: str
    accelerator: str
    accelerators: float
    row: int
    hardware: int


def build_hardware(types: Table) -> tuple[Table, Ints]:
    """Return the distinct hardware among `types` with accelerator columns, and the hardware row of each type."""
    own = [types[name].tolist() for name in HARDWARE_COLUMNS]
    keys = list(zip(*(map(str, column) for column in own), strict=True))
    first: dict[tuple[str, ...], int] = {}
    rows = [first.setdefault(key, position) for position, key in enumerate(keys)]
    picked = sorted(first.values())
    code = {position: at for at, position in enumerate(picked)}
    hardware = types.take(np.asarray(picked, dtype=np.int64)).select(HARDWARE_COLUMNS)
    accelerators = load_accelerators()
    at = hardware.lookup(accelerators, ("accelerator",))
    joined: dict[str, Coded | npt.NDArray[Any]] = {}
    for name in ACCELERATOR_COLUMNS:
        column = accelerators.column(name)
        if isinstance(column, Coded):
            joined[name] = Coded(column.codes[at], column.values)
        else:
            joined[name] = np.asarray(column)[at]
    return hardware.with_columns(**joined), np.asarray([code[row] for row in rows], dtype=np.int64)


def machine_at(machine_set: MachineSet, row: int) -> Machine:
    """The machine of row `row` of the instance types."""
    types = machine_set.types
    return Machine(
        provider=str(types["provider"][row]),
        instance_type=str(types["instance_type"][row]),
        accelerator=str(types["accelerator"][row]),
        accelerators=float(types["accelerator_count"][row]),
        row=row,
        hardware=int(machine_set.hardware_of_type[row]),
    )


def find_machine(machine_set: MachineSet, name: str, provider: str | None) -> Machine:
    """Find an instance type by its exact name.

    Args:
        machine_set: the known types.
        name: instance type, in the provider's spelling.
        provider: provider id, needed where several have a type of that name.

    Raises:
        InputError: there is none, or several; says what was probably meant.
    """
    types = machine_set.types
    hit = types.equals("instance_type", name)
    if provider is not None:
        if not types.equals("provider", provider).any():
            close = near(provider, sorted(set(types.coded("provider").values) - {""}))
            hint = f" (did you mean {close!r}?)" if close else "; `planner catalog list` shows them"
            raise InputError(f"--provider: no provider called {provider!r} in the catalog{hint}")
        hit &= types.equals("provider", provider)
    rows = np.flatnonzero(hit)
    if not len(rows):
        known = types if provider is None else types.take(types.equals("provider", provider))
        what = "instance type" if provider is None else f"{provider} instance type"
        raise InputError(
            f"--instance-type: no {what} called {name!r} in the catalog{machine_hint(known, name)}"
        )
    if len(rows) > 1:
        names = ", ".join(sorted({str(types["provider"][row]) for row in rows}))
        raise InputError(
            f"--instance-type {name}: more than one provider has it; add --provider, one of {names}"
        )
    return machine_at(machine_set, int(rows[0]))


def machine_hint(types: Table, name: str) -> str:
    """What to write in place of a name that no instance type has: a near one, or machines with that accelerator.

    Args:
        types: instance types that may be named.
        name: as written.
    """
    fitting = fitting_names(name, tuple(sorted(set(types.coded("accelerator").values) - {""})))
    rows = np.flatnonzero(types.is_in("accelerator", fitting))
    if len(rows):
        counts = types["accelerator_count"]
        order = sorted(rows.tolist(), key=lambda row: (float(counts[row]), str(types["instance_type"][row])))
        first = {
            str(types["provider"][row]): str(types["instance_type"][row]) for row in order
        }  # the largest
        some = ", ".join(first[provider] for provider in sorted(first)[:_SOME])
        return f"; it is an accelerator: name a machine that has it, such as {some}"
    close = near(name, sorted(set(map(str, types["instance_type"])) - {""}))
    return f" (did you mean {close!r}?)" if close else "; `planner catalog list` shows them"
