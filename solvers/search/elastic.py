"""Elastic relaxation of an infeasible model: which limits to relax, and by how much, at least weighted violation.

Every softened row or column bound gets a non-negative slack; the objective becomes the weighted sum of slacks. Unlike
an irreducible infeasible subset of the relaxation, this also explains infeasibility that integrality alone causes. The
weights say what a unit of each limit means to the user.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers.execution.solve import relax, solve
from solvers.problem.errors import ModelError
from solvers.problem.milp import Block, Milp
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import restrict
from solvers.problem.solution import Solution, Status, Termination
from solvers.search.search import Clock
from solvers.search.tighten import caps_from_reduced_costs, safe_bound

BELOW_GAP_SHARE = 0.9  # of the gap: least improvement that is searched for
TOLERANCE = 1e-7  # largest slack that counts as 0


@dataclass(frozen=True)
class Slack:
    """Key of a slack column: the row block (or `column`) and the member that is relaxed."""

    block: str
    member: int


@dataclass(frozen=True)
class LeastViolation:
    """The answer of the softened model.

    Attributes:
        solution: point of the original columns and the slacks.
        amounts: slack per `Slack`, only those above `tolerance`.
        weighted: weighted sum of all slacks.
    """

    solution: Solution
    amounts: Mapping[Slack, float]
    weighted: float

    @property
    def solver_fault(self) -> bool:
        """Whether no limit needs to be relaxed: then an earlier "infeasible" was the solver's fault."""
        return self.solution.has_point and not self.amounts


def soften(problem: Milp, rows: Mapping[str, float], columns: Mapping[Hashable, float] | None = None) -> Milp:
    """Return the model whose objective is the weighted violation.

    Args:
        problem: the model.
        rows: weight (> 0) per row block name; both sides of its rows may be broken.
        columns: weight per column key whose lower bound may be undercut down to 0.

    Raises:
        ModelError: a weight is not positive.
    """
    columns = columns or {}
    weights = [*rows.values(), *columns.values()]
    if any(not weight > 0 for weight in weights):
        raise ModelError(f"{problem.name}: every softened limit needs a weight above 0")
    soft = _Softened(problem)
    for name, weight in rows.items():
        block = problem.row_block(name)
        for member, row in enumerate(range(block.start, block.stop) if block else ()):
            if np.isfinite(problem.row_hi[row]):
                soft.add(Slack(name, member), row, -1.0, weight)
            if np.isfinite(problem.row_lo[row]):
                soft.add(Slack(f"{name}..lo", member), row, 1.0, weight)
    position = {key: number for number, key in enumerate(problem.column_keys)}
    for key, weight in columns.items():
        soft.release(Slack("column", position[key]), position[key], weight)
    return soft.build()


class _Softened:
    """Appends slack columns, and rows for released column bounds, to a model."""

    def __init__(self, problem: Milp) -> None:
        self._problem = problem
        self._lb = problem.lb.copy()
        self._released: list[tuple[int, float]] = []  # (column, former lower bound)
        self._slacks: list[tuple[Slack, int, float, float]] = []

    def add(self, key: Slack, row: int, sign: float, weight: float) -> None:
        self._slacks.append((key, row, sign, weight))

    def release(self, key: Slack, column: int, weight: float) -> None:
        row = self._problem.n_rows + len(self._released)
        self._released.append((column, float(self._lb[column])))
        self._lb[column] = min(0.0, float(self._lb[column]))
        self.add(key, row, 1.0, weight)

    def build(self) -> Milp:
        problem, count, extra = self._problem, len(self._slacks), len(self._released)
        lengths = np.diff(problem.indptr).astype(np.int64)
        data, indices = [problem.data], [problem.indices]
        inserts = np.array([problem.indptr[column + 1] for column, _ in self._released], dtype=np.int64)
        rows = problem.n_rows + np.arange(extra)
        merged = np.insert(problem.data, inserts, 1.0)
        merged_rows = np.insert(problem.indices, inserts, rows.astype(np.int32))
        for column, _ in self._released:
            lengths[column] += 1
        data, indices = [merged], [merged_rows]
        data.append(np.array([sign for _, _, sign, _ in self._slacks]))
        indices.append(np.array([row for _, row, _, _ in self._slacks], dtype=np.int32))
        lengths = np.r_[lengths, np.ones(count, dtype=np.int64)]
        keys = tuple(key for key, *_ in self._slacks)
        names = tuple(f"{key.block}.{key.member}" for key in keys)
        width, height = problem.n_columns, problem.n_rows
        return replace(
            problem,
            c=np.r_[np.zeros(width), [weight for *_, weight in self._slacks]],
            lb=np.r_[self._lb, np.zeros(count)],
            ub=np.r_[problem.ub, np.full(count, np.inf)],
            integrality=np.r_[problem.integrality, np.zeros(count, dtype=np.bool_)],
            row_lo=np.r_[problem.row_lo, [former for _, former in self._released]],
            row_hi=np.r_[problem.row_hi, np.full(extra, np.inf)],
            data=np.concatenate(data),
            indices=np.concatenate(indices).astype(np.int32),
            indptr=np.r_[0, np.cumsum(lengths)].astype(np.int32),
            column_keys=(*problem.column_keys, *keys),
            column_blocks=(*problem.column_blocks, Block("slack", width, width + count, names)),
            row_blocks=(*problem.row_blocks, Block("released", height, height + extra)),
            name=f"{problem.name} (softened)",
        )


def least_violation(
    problem: Milp,
    rows: Mapping[str, float],
    columns: Mapping[Hashable, float] | None = None,
    *,
    options: SolveOptions | None = None,
    below: float = math.inf,
    worth: float = 0.0,
) -> LeastViolation:
    """Solve the softened model (see `soften`).

    Args:
        problem: the model.
        rows: weight per row block name.
        columns: weight per column key.
        options: how to solve.
        below: weighted violation of a known relaxation: only less is searched for, and a solution without a point means
            that there is none (within the gap, or `worth`).
        worth: least relative improvement over `below` that is worth a search; if the relaxation's bound excludes it,
            nothing is solved.
    """
    softened = soften(problem, rows, columns)
    options = replace(options or SolveOptions(), core_columns=0, start={})
    clock = Clock(options.time_limit_s)
    if math.isfinite(below):
        relaxation = relax(softened, clock.for_next_s(), options.backend)
        bound = safe_bound(relaxation)
        if worth > 0 and bound >= below * (1 - worth):
            none = Solution(Status.NO_SOLUTION, Termination.GAP_REACHED, bound=bound)
            return LeastViolation(none, {}, math.nan)
        caps = caps_from_reduced_costs(softened, relaxation, below * (1 - BELOW_GAP_SHARE * options.gap))
        softened = restrict(replace(softened, ub=caps), np.flatnonzero(caps > softened.lb))
    solution = solve(softened, replace(options, time_limit_s=clock.for_next_s()))
    amounts = {
        key: value for key, value in solution.x.items() if isinstance(key, Slack) and value > TOLERANCE
    }
    return LeastViolation(solution, amounts, solution.objective)
