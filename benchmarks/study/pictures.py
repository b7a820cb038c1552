"""The charts of the study's page, drawn by the planner's chart engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.study.arms import HEADLINES
from benchmarks.study.calibration import calibration
from benchmarks.study.savings import HIGH, LOW, figures, is_sure, pairs_of
from benchmarks.study.summary import classes_of
from planner.render.charts import draw
from planner.render.model import Chart

Record = dict[str, Any]
HAIR = 1e-9  # the owner's own machine, planned again, is not dearer
BANDS = (-np.inf, 0.0, 0.2, LOW, 0.55, HIGH, 0.85, np.inf)
BAND_NAMES = ("dearer", "0-20 %", "20-40 %", "40-55 %", "55-70 %", "70-85 %", "over 85 %")
STEPS = ("plain layout", "baseline", "count", "place", "type", "option", "timing")
STEP_NAMES = {
    "baseline": "layout", "count": "number of machines", "place": "place, same accelerator", "type": "machine type",
    "option": "way to buy", "timing": "time to the deadline",
}  # fmt: skip


def distribution(records: Sequence[Record]) -> Chart:
    """How many workloads save how much, by arm."""
    series = []
    for arm, words in HEADLINES.items():
        savings = HAIR + np.asarray([pair.saving for pair in pairs_of(records, arm, "named")[0]])
        counts = [float(((savings >= low) & (savings < high)).sum()) for low, high in pairwise(BANDS)]
        series.append((words, tuple(counts)))
    return Chart(
        key="study-savings", title="Workloads by what they save against the owner's cluster", kind="bars",
        labels=BAND_NAMES, series=tuple(series), unit="count",
        alt="Number of workloads in each band of savings, for four arms.",
    )  # fmt: skip


def by_class(records: Sequence[Record]) -> Chart:
    """Median and quartiles of each class, on demand anywhere and with spot."""
    kinds = classes_of(records)
    series: list[tuple[str, tuple[float | None, ...]]] = []
    for arm in ("anywhere", "spot"):
        pairs = pairs_of(records, arm, "named")[0]
        each = [figures([pair for pair in pairs if pair.kind == kind]) for kind in kinds]
        for suffix, name in (("", "median"), (" low", "q25"), (" high", "q75")):
            values = tuple(getattr(one, name) if one.n else None for one in each)
            series.append((HEADLINES[arm] + suffix, values))
    return Chart(
        key="study-classes", title="Saved by class: median and quartiles; lines: 40 and 70 %", kind="dots",
        labels=tuple(kinds), series=tuple(series), unit="ratio", marks=(LOW, HIGH),
        alt="Median savings by class with quartiles, on demand and with spot.",
    )  # fmt: skip


def step_shares(records: Sequence[Record]) -> tuple[dict[str, float], int]:
    """Mean cost of each step over the baseline's, and of how many rows; a step without a figure keeps the last.

    Rows whose baseline is not as sure to be in time as the plan are left out: their plan buys more than they did.
    """
    rows = []
    for record in records:
        if is_sure(record) and pairs_of([record], "spot", "named")[0]:
            values = {step["step"]: step["cost_usd"] for step in record["steps"]}
            base = values["baseline"]
            costs, level = [], values["plain layout"] or base
            for name in STEPS:
                level = values[name] if values[name] is not None else level
                costs.append(level / base)
            rows.append(costs)
    means = np.mean(np.asarray(rows), axis=0) if rows else np.zeros(len(STEPS))
    return dict(zip(STEPS, means.tolist(), strict=True)), len(rows)


def waterfall(records: Sequence[Record]) -> Chart:
    """Where the savings come from: mean cost after each freedom, the named baseline = 100 %."""
    means, count = step_shares(records)
    labels, values = ["plain layout"], [means["plain layout"]]
    for before, after in pairwise(STEPS):
        labels.append(STEP_NAMES[after])
        values.append(means[after] - means[before])
    return Chart(
        key="study-waterfall", title=f"From the owner's cluster to the plan, mean of {count} workloads", kind="bridge",
        labels=(*labels, "plan with spot"), series=(("cost", (*values, means["timing"])),), unit="ratio",
        alt="Mean cost relative to the named baseline after each freedom.",
    )  # fmt: skip


def times(records: Sequence[Record]) -> Chart:
    """Predicted over published hours of each class."""
    made = calibration(records)["by_class"]
    kinds = [kind for kind, one in made.items() if one["n"]]
    series = tuple(
        (f"predicted / published{suffix}", tuple(made[kind][name] for kind in kinds))
        for suffix, name in (("", "median"), (" low", "q25"), (" high", "q75"))
    )
    return Chart(
        key="study-times", title="Predicted over published hours: median and quartiles", kind="dots",
        labels=tuple(kinds), series=series, unit="quantity", marks=(1 / 1.5, 1.0, 1.5),
        alt="Predicted over published hours by class; lines at 1/1.5, 1 and 1.5.",
    )  # fmt: skip


def pictures(records: Sequence[Record]) -> dict[str, str]:
    """SVG text by file name."""
    charts = (distribution(records), waterfall(records), by_class(records), times(records))
    return {f"{chart.key}.svg": draw(chart, headed=True) + "\n" for chart in charts}
