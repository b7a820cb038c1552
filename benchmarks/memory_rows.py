"""How the memory of measured rows was taken and what their runs keep, by source, never by row.

Rules are in `data/memory_rules.csv`. Conventions: `allocated` and `reserved` are peaks of the framework's allocator,
without and with its waste; `device` is what the accelerator holds in all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from benchmarks.rows import number, read_csv
from planner.performance.memory_options import MemoryOptions

RULES = Path(__file__).resolve().parent / "data" / "memory_rules.csv"
_RECOMPUTE = ("none", "selective", "full")


@dataclass(frozen=True)
class MemoryRule:
    """What a row tells of its memory.

    Attributes:
        convention: how its source counts memory.
        options: what its run keeps.
        stages_of_batch: without a stated micro-batch, a replica's batch comes in as many pieces as there are stages.
        recompute_stated, batch_stated: whether the row gives its recompute level and its micro-batch.
    """

    convention: str = "device"
    options: MemoryOptions = field(default_factory=MemoryOptions)
    stages_of_batch: bool = False
    recompute_stated: bool = True
    batch_stated: bool = True


@lru_cache(maxsize=1)
def _rules() -> list[dict[str, str]]:
    return read_csv(RULES)


def _line(row: dict[str, str]) -> int:
    """The line of its document that a row was read from, 0 where none is given."""
    found = re.search(r" L(\d+)$", row.get("url_or_repo_path", ""))
    return int(found[1]) if found else 0


def memory_rule(row: dict[str, str], zero: int) -> MemoryRule:
    """The first rule that matches a row's source, document, family, precision and ZeRO stage."""
    for rule in _rules():
        if (
            row["source"].startswith(rule["source_prefix"])
            and rule["url_contains"] in row.get("url_or_repo_path", "")
            and row["family"].startswith(rule["family_prefix"])
            and row["precision"].startswith(rule["precision_prefix"])
            and zero >= (number(rule, "min_zero") or 0)
            and _line(row) >= (number(rule, "from_line") or 0)
        ):
            break
    options = MemoryOptions(
        gradients=rule["gradients"] or "auto",  # type: ignore[arg-type]
        loss=rule["loss"] or "auto",  # type: ignore[arg-type]
        groups=rule["groups"] or "auto",  # type: ignore[arg-type]
        dropout=None if rule["dropout"] == "" else rule["dropout"] == "1",
        offload_optimizer=rule["offload_optimizer"] == "1",
        offload_activations=rule["offload_activations"] == "1",
    )
    word = row["activation_ckpt"]
    whole_word = word.split("+")[0].strip() in _RECOMPUTE
    return MemoryRule(
        rule["convention"],
        options,
        rule["micro_batches"] == "pp",
        whole_word,
        bool(number(row, "micro_batch")),
    )
