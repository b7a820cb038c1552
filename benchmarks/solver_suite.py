"""Solves every .npz model of a folder with the default backend: `python -m benchmarks.solvers --suite DIR`.

A model has the arrays c, lb, ub, integ (per column), rl, ru (per row) and the matrix in compressed columns: data,
indices, indptr, shape. `manifest.json` beside them (a list of objects with `file`, `gen`, `args`, and perhaps `limit_s`
and `gap`) names and orders them; without it every file is taken by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choice_bound import choice_bound
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from solvers.backends.registry import get_backend
from solvers.execution.solve import solve
from solvers.problem.milp import Block, Milp
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import whole_limits
from solvers.problem.solution import Solution, relative_gap
from solvers.search.bounds import exact_bound


def load_model(path: Path) -> Milp:
    """Read one model; explicit zeros of the matrix are dropped."""
    with np.load(path, allow_pickle=False) as file:
        rows, columns = (int(number) for number in file["shape"])
        data, indices, indptr = file["data"].astype(float), file["indices"], file["indptr"]
        used = data != 0
        column = np.repeat(np.arange(columns), np.diff(indptr))[used]
        starts = np.r_[0, np.cumsum(np.bincount(column, minlength=columns))]
        return Milp(
            c=file["c"].astype(float),
            lb=file["lb"].astype(float),
            ub=file["ub"].astype(float),
            integrality=file["integ"].astype(bool),
            row_lo=file["rl"].astype(float),
            row_hi=file["ru"].astype(float),
            data=data[used],
            indices=indices[used].astype(np.int32),
            indptr=starts.astype(np.int32),
            column_keys=tuple(range(columns)),
            column_blocks=(Block("x", 0, columns),),
            row_blocks=(Block("r", 0, rows),),
            name=path.stem,
        )


def measure(path: str, seed: int, gap: float, limit_s: float, backend: str) -> Figure:
    """Solve one model; the exact bound is made afterwards and timed apart."""
    problem = load_model(Path(path))
    with Clock() as clock:
        solution = solve(problem, SolveOptions(gap=gap, time_limit_s=limit_s, backend=backend))
    with Clock() as proving:
        exact, note = _exact_gap(problem, solution, backend)
    return Figure(
        "suite",
        problem.name,
        seed,
        solution.status.value,
        clock.cpu_s,
        clock.wall_s,
        known(solution.objective),
        known(solution.bound),
        known(solution.gap),
        exact,
        limit_s=limit_s,
        note=f"{note} (+{proving.cpu_s:.2f} CPU s)",
    )


def _exact_gap(problem: Milp, solution: Solution, backend: str) -> tuple[float | None, str]:
    """The gap to the bound that the relaxation's duals prove in exact arithmetic, by knapsacks where they apply."""
    tightened = replace(problem, ub=whole_limits(problem)[0])
    relaxation = get_backend(backend).relax(tightened, 60.0)
    if relaxation.duals is None:
        return None, f"relaxation: {relaxation.termination.value}"
    cutoff = solution.objective if solution.has_point else np.inf
    bound = exact_bound(problem, relaxation.duals, cutoff=cutoff).as_float()
    by_knapsacks = choice_bound(problem, relaxation.duals)
    if by_knapsacks is not None:
        bound = min(max(bound, by_knapsacks), cutoff)
    gap = known(relative_gap(solution.objective, bound)) if solution.has_point else None
    return gap, f"exact bound {bound:.4f}"


def suite(folder: Path) -> list[dict[str, Any]]:
    """Return the models of `folder`, as its manifest lists them.

    Raises:
        SystemExit: there is no model, or the manifest names one that is not there.
    """
    manifest = folder / "manifest.json"
    if manifest.exists():
        entries: list[dict[str, Any]] = json.loads(manifest.read_text(encoding="utf-8"))
    else:
        entries = [{"file": path.name} for path in sorted(folder.glob("*.npz"))]
    missing = [entry["file"] for entry in entries if not (folder / entry["file"]).exists()]
    if missing or not entries:
        raise SystemExit(f"{folder}: {', '.join(missing) + ' missing' if missing else 'no .npz model'}")
    return entries


def run_suite(folder: Path, *, gap: float, limit_s: float, backend: str) -> Iterator[Figure | str]:
    """Yield a figure per model, a text where the measurement failed; a manifest's own gap and limit win."""
    for entry in suite(folder):
        seed = int(entry.get("args", {}).get("seed", 0))
        wishes = float(entry.get("gap", gap)), float(entry.get("limit_s", limit_s))
        try:
            yield in_child(measure, str(folder / entry["file"]), seed, *wishes, backend)
        except RuntimeError as error:
            yield f"{entry['file']}: {error}"
