"""The project's accelerator table under the names that the measured rows use."""

from __future__ import annotations

from typing import Any

from catalogs.accelerators import load_accelerators, load_aliases

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


def _value(value: Any) -> Any:
    """Numbers may travel as text where a whole column is decimal; text stays text."""
    return value
