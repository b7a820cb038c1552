"""How the memory of measured rows was taken and what their runs keep, by source, never by row.

Rules are in `data/memory_rules.csv`. Conventions: `allocated` and `reserved` are peaks of the framework's allocator,
without and with its waste; `device` is what the accelerator holds in all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmarks.rows import number, read_csv
from planner.performance.memory_options import MemoryOptions

RULES = Path(__file__).resolve().parent / "data" / "memory_rules.csv"


@dataclass(frozen=True)
class MemoryRule:
    """One source's habits: how it counts memory, options of its runs, and whether a row states its layout in full."""

    convention: str = "device"
    options: MemoryOptions = field(default_factory=MemoryOptions)
    micro_batches: str = ""


@lru_cache(maxsize=1)
def _rules() -> list[dict[str, str]]:
    return read_csv(RULES)


def memory_rule(row: dict[str, str], zero: int) -> MemoryRule:
    """The first rule that matches a row's source, document, family and ZeRO stage."""
    for rule in _rules():
        if (
            row["source"].startswith(rule["source_prefix"])
            and rule["url_contains"] in row.get("url_or_repo_path", "")
            and row["family"].startswith(rule["family_prefix"])
            and zero >= (number(rule, "min_zero") or 0)
        ):
            break
    options = MemoryOptions(
        loss=rule["loss"] or "auto",  # type: ignore[arg-type]
        dropout=None if rule["dropout"] == "" else rule["dropout"] == "1",
        offload_optimizer=rule["offload_optimizer"] == "1",
        offload_activations=rule["offload_activations"] == "1",
    )
    return MemoryRule(rule["convention"], options, rule["micro_batches"])
