"""What a caller may ask of a solve."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from solvers.problem.errors import ModelError
from solvers.problem.milp import Bools, Ints

ISOLATE_ABOVE = 3_000  # integer columns; below it HiGHS keeps its own time limit well enough


@dataclass(frozen=True)
class SolveOptions:
    """How to solve.

    Attributes:
        gap: relative gap at which an answer counts as optimal.
        time_limit_s: wall-clock limit for everything, stages and process start included (inf: none).
        backend: name in the registry, or `auto` (the fastest one present).
        start: a known point by column key; used as the first incumbent when it is feasible.
        isolate: run in a child process that can be ended (`auto`: above `ISOLATE_ABOVE` integer columns).
        core_columns: size of the restricted model that gives the first incumbent; 0 turns the stage off.
        keep_blocks: column blocks that always stay in the restricted model (switches such as `y`).
        most_nodes: of branch and bound, at which a solver stops as at a time limit (None: no limit). Equal questions
            stop at equal points, on a busy machine too.
    """

    gap: float = 1e-3
    time_limit_s: float = 60.0
    backend: str = "scipy"
    start: Mapping[Hashable, float] = field(default_factory=dict)
    isolate: bool | Literal["auto"] = "auto"
    core_columns: int = 400
    keep_blocks: tuple[str, ...] = ("y", "total")
    most_nodes: int | None = None

    def __post_init__(self) -> None:
        if not (self.gap >= 0 and math.isfinite(self.gap)):
            raise ModelError(f"gap must be 0 or more, not {self.gap}")
        if not self.time_limit_s > 0:
            raise ModelError(f"time limit must be above 0 s, not {self.time_limit_s}")
        if self.most_nodes is not None and self.most_nodes < 1:
            raise ModelError(f"branch and bound needs 1 node or more, not {self.most_nodes}")


@dataclass(frozen=True, eq=False)
class Sifting:
    """What a relaxation begins with.

    Attributes:
        first: columns of the first model, which must have a point; others wait at 0, shape `(n_columns,)`.
        group: few columns of a group join at once, shape `(n_columns,)`.
    """

    first: Bools
    group: Ints
