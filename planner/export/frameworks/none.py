"""No framework: the layout as environment variables `PLANNER_*`, for programs of one's own."""

from __future__ import annotations

from planner.export.frameworks.model import Parallel, Part, from_variables, layout_variables


def render(parallel: Parallel) -> Part:
    """Return the layout as variables."""
    return Part(env=layout_variables(parallel))


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the variables state.

    Raises:
        ValueError: they are of another number of machines.
    """
    stated = part.env["PLANNER_NODES"], part.env["PLANNER_GPUS_PER_NODE"]
    if stated != (str(nodes), str(gpus)):
        raise ValueError(f"variables of {' x '.join(stated)}, started on {nodes} x {gpus}")
    return from_variables(part, nodes, gpus)
