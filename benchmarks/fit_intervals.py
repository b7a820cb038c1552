"""Widths of the 80 % interval from residuals of rows that the fit had not seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measured import Case
from benchmarks.predict import build_groups, throughput
from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.device import accelerator_family
from planner.performance.interval import AXES, axes
from planner.performance.kernels import default_attention, with_kernel
from planner.performance.spec import ExpertKernels
from planner.performance.work import PRECISION_GROUP, stack_work

COVERAGE = 0.8
# Half-width of the central 80 % of a normal distribution, in standard deviations.
Z80 = 1.2816
# Extra log width of a generation that was never measured, and where the link inside the node is not stated.
NEVER_MEASURED, UNKNOWN_LINK = 0.3, 0.15
NO_ROWS = 0.5
# A stack with fewer rows than this takes the width of its whole family; others are drawn to it the less they tell.
LEAST_ROWS = 30
# Evidence (publishers x root of workload groups) at which own residuals count as much as the prior.
HALF_EVIDENCE = 2.0
# Log width per doubling outside of what was measured: an assumption.
PER_DOUBLING = 0.1
# Share of the rows beyond the bounds of "measured": single extreme rows are no evidence.
TAIL = 0.02


def interval_widths(
    cases: Sequence[Case], unseen: Floats, kinds: Sequence[str], constants: Constants
) -> dict[str, float]:
    """Constants of the interval: a width per family and stack, and what thin families, experts and open choices add.

    Args:
        cases: the measured rows, once for each way in which they were left out of the fit.
        unseen: their predictions from fits without their workload group or publisher, shape `(n_cases,)`.
        kinds: model families to give widths for.
        constants: the fitted constants, for what an open choice moves.
    """
    gap = np.abs(np.log(unseen) - np.log([case.measured.value for case in cases]))
    widths: dict[str, float] = {}
    if "transformer" not in kinds and cases:
        moved = round(class_moves(cases, constants), 4)
        widths |= {f"interval.{kind}.open.stack": moved for kind in kinds}
    for kind in kinds:
        rows = [p for p, case in enumerate(cases) if case.kind == kind and np.isfinite(gap[p])]
        if not rows:
            widths[f"interval.{kind}"] = NO_ROWS
            continue
        own = [cases[p] for p in rows]
        widths |= _of_kind(kind, own, gap[rows])
        if kind == "transformer":
            widths |= open_widths(own, constants) | {"interval.per_doubling": PER_DOUBLING}
    return widths


def _of_kind(kind: str, cases: Sequence[Case], gap: Floats) -> dict[str, float]:
    generations = [case.generation for case in cases]
    families = [accelerator_family(str(case.hardware["accelerator"])) for case in cases]
    stacks = [case.training.stack for case in cases]
    experts = np.asarray([bool(case.model.experts) for case in cases])
    typical = {s: _quantile(gap[[p for p, x in enumerate(stacks) if x == s]]) for s in set(stacks)}
    usual = np.asarray([typical[s] for s in stacks])
    out: dict[str, float] = {}
    thin = np.zeros(len(cases))
    for names in (generations, families):
        for name in sorted(set(names)):
            own = [p for p, x in enumerate(names) if x == name]
            extra = _extra([cases[p] for p in own], gap[own], usual[own])
            thin[own] = extra
            out[f"thin.{kind}.{name}"] = round(extra, 4)
    for name in sorted(set(generations)):
        rates = [
            float(c.hardware["memory_gb_per_s"]) for c, g in zip(cases, generations, strict=True) if g == name
        ]
        out[f"thin.{kind}.{name}.slowest_gb_per_s"] = min(rates)
        out[f"thin.{kind}.{name}.fastest_gb_per_s"] = max(rates)
    if _rows(np.flatnonzero(experts).tolist(), cases) >= LEAST_ROWS:
        squared = gap[experts] ** 2 - thin[experts] ** 2 - usual[experts] ** 2
        extra = math.sqrt(max(float(np.quantile(squared, COVERAGE)), 0.0))
        out[f"interval.{kind}.experts"] = round(extra, 4)
        thin = np.where(experts, np.hypot(thin, extra), thin)
    out[f"interval.{kind}"] = base_width(gap, thin)
    for stack in sorted(set(stacks)):
        own = [p for p, x in enumerate(stacks) if x == stack]
        if _rows(own, cases) >= LEAST_ROWS:
            width = base_width(gap[own], thin[own])
            out[f"interval.{kind}.{stack}"] = _believed(
                width, out[f"interval.{kind}"], evidence_of([cases[p] for p in own])
            )
            out |= _bounds(kind, stack, [cases[p] for p in own])
    return out


def _rows(positions: Sequence[int], cases: Sequence[Case]) -> int:
    """How many measured rows these are; each may have been left out in several ways."""
    return len({cases[p].row_id for p in positions})


def _extra(cases: Sequence[Case], gap: Floats, usual: Floats) -> float:
    """Extra log width of an accelerator family: its own where publishers and workloads are many, else the prior's."""
    evidence = evidence_of(cases)
    prior = NEVER_MEASURED / math.sqrt(1.0 + evidence / 2.0)
    own = max(float(np.quantile(gap * gap - usual * usual, COVERAGE)), 0.0)
    return _believed(math.sqrt(own), prior, evidence)


def evidence_of(cases: Sequence[Case]) -> float:
    """How much rows tell: their publishers x the root of their workload groups."""
    return len({case.group for case in cases}) * math.sqrt(len({case.split_group for case in cases}))


def _believed(own: float, prior: float, evidence: float) -> float:
    """A width of a few rows, drawn to a prior as far as they tell little."""
    return math.sqrt((evidence * own**2 + HALF_EVIDENCE * prior**2) / (evidence + HALF_EVIDENCE))


def _bounds(kind: str, stack: str, cases: Sequence[Case]) -> dict[str, float]:
    """What was measured with a software class, by the axes that jobs are compared by."""
    work = stack_work([(case.model, case.training) for case in cases])
    values = axes(work, np.asarray([float(case.accelerators) for case in cases]))
    out: dict[str, float] = {}
    for axis in AXES:
        low, high = np.quantile(values[axis], [TAIL, 1.0 - TAIL])
        out[f"measured.{kind}.{stack}.{axis}.low"] = float(low)
        out[f"measured.{kind}.{stack}.{axis}.high"] = float(high)
    return out


def open_widths(cases: Sequence[Case], constants: Constants) -> dict[str, float]:
    """How far the default of a choice that a user leaves open moves predictions: the 80 % width of that spread."""
    return {
        "interval.open.stack": round(class_moves(cases, constants), 4),
        "interval.open.attention": round(_moves(cases, _default_kernel, constants), 4),
        "interval.open.software_date": round(_date_width(cases, constants), 4),
    }


def class_moves(cases: Sequence[Case], constants: Constants) -> float:
    """How far the default of the software class moves predictions of `cases`, as log width of 80 %."""
    return _moves(cases, _compiled, constants)


def _moves(cases: Sequence[Case], change: Callable[[Case], Case], constants: Constants) -> float:
    changed = [change(case) for case in cases]
    stated, other = (throughput(build_groups(rows), len(rows), constants) for rows in (cases, changed))
    shift = np.log(other / stated)
    return Z80 * float(np.sqrt(np.mean(shift * shift)))


def _date_width(cases: Sequence[Case], constants: Constants) -> float:
    """How far the date of a recipe's software moves mixtures of experts in 8 bit."""
    concerned = [
        case
        for case in cases
        if case.model.experts
        and case.training.stack == "tuned"
        and PRECISION_GROUP[case.training.precision] == "fp8"
    ]
    if not concerned:
        return 0.0
    older, newer = (
        throughput(build_groups(made), len(made), constants)
        for made in (
            [_with_experts(case, "grouped") for case in concerned],
            [_with_experts(case, "native") for case in concerned],
        )
    )
    shift = np.log(newer / older)
    return Z80 * float(np.sqrt(np.mean(shift * shift)))


def _with_experts(case: Case, kernels: ExpertKernels) -> Case:
    return replace(case, training=replace(case.training, expert_kernels=kernels))


def _compiled(case: Case) -> Case:
    return replace(case, training=replace(case.training, stack="compiled"))


def _default_kernel(case: Case) -> Case:
    from benchmarks.predict import hardware_table

    kernel = default_attention(case.training.stack, case.model, None)
    training = replace(case.training, attention=kernel)
    return replace(case, training=with_kernel(training, hardware_table([case])))


def _quantile(gap: Floats) -> float:
    return float(np.quantile(gap, COVERAGE)) if len(gap) else NO_ROWS


def base_width(gap: Floats, thin: Floats) -> float:
    """The width that, with the extra spread of each row, covers the wanted share of the rows."""
    squared = np.sort(np.maximum(gap * gap - thin * thin, 0.0))
    return float(math.sqrt(squared[math.ceil(COVERAGE * len(squared)) - 1]))
