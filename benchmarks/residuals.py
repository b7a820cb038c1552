"""Where the error of predictions is: tables of bias and size by one property of the rows at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from benchmarks.measured import Case
from catalogs.tables.table import Floats

# Values of a property with fewer rows than this share one line.
LEAST_ROWS = 8


class Predictions(Protocol):
    """Cases with predictions beside them, arrays of shape `(n_cases,)`."""

    @property
    def cases(self) -> list[Case]:
        """The rows."""
        ...

    @property
    def predicted(self) -> Floats:
        """Predicted throughput."""
        ...

    @property
    def measured(self) -> Floats:
        """Measured throughput."""
        ...


def _layout(case: Case, name: str) -> float:
    return float((case.layout or {}).get(name, 1))


def _power(value: float) -> str:
    """A size as the power of two below it, so that sizes share lines."""
    return f"{2 ** int(math.log2(max(value, 1.0))):>8}"


PROPERTIES: dict[str, Callable[[Case], str]] = {
    "publisher": lambda case: case.group,
    "accelerator": lambda case: str(case.hardware["accelerator"]),
    "precision": lambda case: case.training.precision,
    "stack": lambda case: case.training.stack,
    "attention": lambda case: case.training.attention,
    "tensor parallel": lambda case: f"{_layout(case, 'tp'):>4.0f}",
    "pipeline parallel": lambda case: f"{_layout(case, 'pp'):>4.0f}",
    "accelerators": lambda case: _power(case.accelerators),
    "micro-batch": lambda case: _power(_layout(case, "micro_batch")),
    "sequence": lambda case: _power(case.training.sequence_length),
    "hidden": lambda case: _power(float(case.model.hidden or 1)),
    "recompute": lambda case: f"{_layout(case, 'recompute'):.0f}",
    "ZeRO stage": lambda case: f"{_layout(case, 'zero'):.0f}",
    "link": lambda case: str(case.hardware["intra_node"]),
}


def by_property(
    cases: Sequence[Case], log_ratio: Floats, key: Callable[[Case], str]
) -> dict[str, tuple[int, float, float]]:
    """Rows, bias (median ratio) and MAPE in percent per value of a property; rare values are pooled."""
    found: dict[str, list[float]] = {}
    for case, gap in zip(cases, log_ratio.tolist(), strict=True):
        found.setdefault(key(case), []).append(gap)
    rare = [gap for values in found.values() if len(values) < LEAST_ROWS for gap in values]
    common = {name: values for name, values in found.items() if len(values) >= LEAST_ROWS}
    if rare:
        common["(rare)"] = rare
    return {
        name: (len(v), float(np.exp(np.median(v))), float(np.abs(np.expm1(v)).mean()) * 100.0)
        for name, v in sorted(common.items())
    }


def residual_lines(scored: Predictions) -> list[str]:
    """Tables for transformers as text."""
    at = [p for p, case in enumerate(scored.cases) if case.kind == "transformer"]
    cases = [scored.cases[p] for p in at]
    gap = np.log(scored.predicted[at] / scored.measured[at])
    lines: list[str] = []
    for name, key in PROPERTIES.items():
        lines.append(f"by {name:26} {'n':>6} {'bias':>6} {'MAPE':>7}")
        table = by_property(cases, gap, key)
        lines += [
            f"  {value[:27]:27} {n:6d} {bias:6.2f} {mape:7.1f}" for value, (n, bias, mape) in table.items()
        ]
    return lines
