"""`planner estimate` where no machine is named: the machines of the workload's plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.estimation.answer import estimate_workload
from planner.workloads.answer import optimize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.asked.options import Options
    from planner.estimation.answer import Estimates
    from planner.inputs.load import LoadedWorkload
    from planner.performance.spec import LayoutPin
    from planner.plan.model import Plan

_NOTE = "no --instance-type was given: these are the machines of the plan (planner optimize)"
_NO_PLAN = (
    "--instance-type: missing, and no plan meets every limit of the workload (planner optimize shows why): "
    "name a type, such as p5.48xlarge"
)


def estimate_planned(
    loaded: LoadedWorkload,
    nodes: Sequence[int] = (),
    pin: LayoutPin | None = None,
    *,
    options: Options,
    catalog_dir: Path | None = None,
) -> Estimates:
    """Estimate a workload on the instance types that `planner optimize` plans with the same options.

    Args:
        loaded: the workload file.
        nodes: node counts, default the plan's, of a fleet those of one run.
        pin: parts of the layout to fix.
        options: moment of the run, day of the prices, whether predictions are calibrated.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: no plan meets every limit, or the layout cannot divide.
    """
    plan = optimize(loaded, options, catalog_dir=catalog_dir).plan
    if not plan.lines:
        raise InputError(_NO_PLAN)
    fleet, providers = loaded.workload.fleet, {line.provider for line in plan.lines}
    estimates = estimate_workload(
        loaded, list(dict.fromkeys(line.instance_type for line in plan.lines)),
        nodes or (_nodes(plan) if fleet is None else fleet.nodes_per_run,), pin,
        plan.lines[0].provider if len(providers) == 1 else None, calibrated=options.calibrated, options=options,
        catalog_dir=catalog_dir,
    )  # fmt: skip
    return replace(estimates, warnings=(_NOTE, *estimates.warnings))


def _nodes(plan: Plan) -> int:
    """Instances that run at once: those of the first line where lines follow each other, else of all together."""
    if plan.launch is not None and plan.launch.in_turn:
        return plan.lines[0].nodes
    return sum(line.nodes for line in plan.lines)
