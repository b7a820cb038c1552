"""One prediction for one machine: what `planner estimate` and the benchmark of the performance model both call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.estimation.layout import pinned
from planner.performance.constants import load_constants
from planner.performance.search import estimate_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Table
    from planner.performance.constants import Constants
    from planner.performance.spec import ModelSpec, TrainingSpec

# A layout that somebody asks for is judged by what is likely, not by the care a plan takes.
ASKED_LIMIT = 0.5


def predict_shapes(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    counts: Sequence[int],
    *,
    constants: Constants | None = None,
) -> Table:
    """Predict a job on machines of some types with the best layout, or with the parts of it that are pinned.

    Args:
        model: sizes of the model.
        training: how it is trained, pinned parts of the layout included.
        hardware: one row per instance type.
        counts: cluster sizes in nodes.
        constants: the model's constants, the bundled ones by default.

    Returns:
        The columns of `planner.performance.search.estimate_shapes`.
    """
    constants = constants or load_constants()
    if pinned(training.layout):
        risk = max(ASKED_LIMIT, constants["memory.oom_limit"])
        constants = constants.replace({"memory.oom_limit": risk})
        training = replace(training, memory=replace(training.memory, confidence=None))
    return estimate_shapes(model, training, hardware, counts, constants=constants)
