"""The project's accelerator table under the names that the measured rows use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from catalogs.tables.accelerators import load_accelerators, load_aliases

COLUMNS = (
    "accelerator", "vendor", "generation", "memory_gib", "memory_gb_per_s", "fp32_tflops", "tf32_tflops", "fp16_tflops",
    "bf16_tflops", "fp8_tflops", "fp4_tflops", "achievable_bf16_tflops", "link_gb_per_s", "pcie_gen",
)  # fmt: skip


def load_devices() -> dict[str, dict[str, Any]]:
    """Accelerators by the name in the measured rows; names without an alias are left out and counted by the caller."""
    table = load_accelerators()
    by_id = {row["accelerator"]: row for row in table.rows()}
    devices = {}
    for alias in load_aliases("performance"):
        row = by_id.get(alias.accelerator)
        if row is not None:
            devices[alias.provider_name] = {name: _value(row[name]) for name in COLUMNS}
    return devices


def find_device(devices: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The accelerator of that name, or of that name in other capitals and punctuation: `RTX 4090`, `tpu v6e`."""
    found = devices.get(name)
    if found is None and name:
        bare = _bare(name)
        found = next((device for alias, device in devices.items() if _bare(alias) == bare), None)
    return found


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _value(value: Any) -> Any:
    """Numbers may travel as text where a whole column is decimal; text stays text."""
    return value
