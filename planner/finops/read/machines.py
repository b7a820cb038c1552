"""GPUs of charges in bills without SkuPriceDetails (FOCUS 1.0), by the machine type that their words name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from planner.finops.read.columns import COST
from planner.finops.read.select import Group, text

DETAILS = "SkuPriceDetails"
# Columns that name the type of a machine, such as the usage types of AWS (BoxUsage:p5.48xlarge).
NAMING = ("SkuMeter", "x_UsageType", "x_InstanceType", "x_SkuDetails", "ChargeDescription", "SkuId")
_WITH_GPUS = ("nvidia", "amd")


@lru_cache(maxsize=1)
def gpu_machines() -> Mapping[str, tuple[float, str]]:
    """Machine types with GPUs in lower case: how many, and which; those of the bundled catalog."""
    from catalogs.store.load import load_catalog
    from catalogs.store.read import bundled_directory
    from catalogs.tables.accelerators import load_accelerators

    known = load_accelerators()
    vendors = dict(zip(map(str, known["accelerator"]), map(str, known["vendor"]), strict=True))
    types = load_catalog(bundled_directory()).instance_types
    columns = (
        types["instance_type"],
        types["accelerator"],
        types.number("accelerator_count"),
    )
    return {
        str(name).lower(): (float(count), str(chip))
        for name, chip, count in zip(*columns, strict=True)
        if vendors.get(str(chip)) in _WITH_GPUS and count > 0
    }


def with_machines(group: Group) -> Group:
    """Charges with the type and GPUs of their machines in the place of a SkuPriceDetails that a file lacks."""
    words = [group.columns[name] for name in NAMING if name in group.columns]
    if DETAILS in group.columns or not words or group.dataset != COST:
        return group
    return replace(group, columns={**group.columns, DETAILS: "x_planner_details"}, beside=_beside(words))


def _beside(words: Sequence[str]) -> str:
    """A join with what is known of the machine that words name: one look at each charge."""
    machines = gpu_machines()
    ranked = sorted(machines, key=lambda name: (-len(name), name))  # of two that fit, the longer
    names = "|".join(name.replace(".", "[.]") for name in ranked)
    pattern = text(f"(?:^|[^a-z0-9])({names})(?:$|[^a-z0-9])")
    found = f"REGEXP_EXTRACT(LOWER(CONCAT_WS(' ', {', '.join(words)})), {pattern}, 1)"
    rows = ", ".join(
        f"({text(name)}, {text(json.dumps(_details(name, *machines[name])))})" for name in ranked
    )
    known = f"(VALUES {rows}) AS machines(x_planner_machine, x_planner_details)"
    return f"LEFT JOIN {known}\n  ON machines.x_planner_machine = {found}"


def _details(name: str, count: float, chip: str) -> dict[str, object]:
    return {"GpuCount": count, "GpuModel": chip, "InstanceType": name}
