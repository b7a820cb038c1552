"""`python -m benchmarks.solvers`: families keep their contract, suites are solved within their limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.solver_families.base import Figure, families, in_child, known
from benchmarks.solver_suite import load_model, suite
from solvers.problem.milp import Milp
from tests.conftest import ROOT
from tests.solvers import cases


def save(problem: Milp, path: Path, *, with_zero: bool = False) -> None:
    """Write a model as a suite holds it; `with_zero` adds an explicit zero to the first column."""
    data, indices, indptr = problem.data, problem.indices, problem.indptr.copy()
    if with_zero:
        data, indices = np.insert(data, 0, 0.0), np.insert(indices, 0, 0)
        indptr[1:] += 1
    np.savez_compressed(
        path, c=problem.c, rl=problem.row_lo, ru=problem.row_hi, lb=problem.lb, ub=problem.ub,
        integ=problem.integrality.astype(np.uint8), data=data, indices=indices, indptr=indptr,
        shape=np.array([problem.n_rows, problem.n_columns]),
    )  # fmt: skip


def run(*arguments: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    out = Path(arguments[-1])
    command = [sys.executable, "-m", "benchmarks.solvers", *arguments[:-1], "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return done, json.loads(out.read_text(encoding="utf-8")) if out.exists() else []


def test_a_suite_is_solved_model_by_model(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    save(cases.cover(), folder / "cover.npz", with_zero=True)
    save(cases.infeasible_only_whole(), folder / "parity.npz")
    save(cases.hard(), folder / "hard.npz")
    manifest = [
        {"file": "cover.npz", "gen": "cover", "args": {"seed": 7}},
        {"file": "parity.npz"},
        {"file": "hard.npz", "limit_s": 1.0},
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done, figures = run("--suite", str(folder), "--time-limit", "20", str(tmp_path / "out.json"))
    cover, parity, hard = figures
    assert done.returncode == int(not hard["kept"]), done.stderr
    assert (cover["status"], cover["seed"], cover["kept"]) == ("optimal", 7, True)
    assert cover["objective"] == pytest.approx(43.354, rel=1e-3)
    assert 0 <= cover["gap_solver_ratio"] <= 1e-3
    assert cover["gap_exact_ratio"] >= 0
    assert (parity["status"], parity["objective"]) == ("infeasible", None)
    assert hard["limit_s"] == 1.0
    # on a busy machine importing the solver may take the whole limit or more: then there is the bound alone
    assert hard["status"] == ("no_solution" if hard["objective"] is None else "feasible")
    assert hard["bound"] == 0.0
    assert all(figure["peak_mib"] > 20 and figure["cpu_s"] > 0 for figure in figures)


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    save(cases.mixed(), tmp_path / "mixed.npz", with_zero=True)
    read, own = load_model(tmp_path / "mixed.npz"), cases.mixed()
    for name in ("c", "lb", "ub", "integrality", "row_lo", "row_hi", "data", "indices", "indptr"):
        assert np.array_equal(getattr(read, name), getattr(own, name)), name


def test_a_folder_without_models_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no \.npz model"):
        suite(tmp_path)
    (tmp_path / "manifest.json").write_text('[{"file": "gone.npz"}]', encoding="utf-8")
    with pytest.raises(SystemExit, match=r"gone\.npz missing"):
        suite(tmp_path)


def test_a_family_runs_in_processes_of_its_own(tmp_path: Path) -> None:
    done, figures = run("--family", "single", "--quick", "--seed", "3", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    assert [(figure["family"], figure["seed"], figure["gap_exact_ratio"]) for figure in figures] == [
        ("single", 3, 0)
    ]
    assert "# single: " in done.stdout


def test_every_family_keeps_the_contract() -> None:
    found = families()
    assert {"fleet", "hours", "single"} <= set(found)
    for name, module in found.items():
        assert name == module.NAME
        assert module.GOALS and all(isinstance(goal, str) for goal in module.GOALS)
        assert module.__doc__ and callable(module.run)


def fails() -> Figure:
    raise ValueError("no figure today")


def test_a_failed_measurement_says_why() -> None:
    with pytest.raises(RuntimeError, match="no figure today"):
        in_child(fails)


def test_numbers_that_json_does_not_know_become_none() -> None:
    assert [known(value) for value in (float("nan"), float("inf"), None, 2.5)] == [None, None, None, 2.5]


def test_late_is_late() -> None:
    assert Figure("f", "s", 0, "optimal", 1.0, 11.0, limit_s=10.0).kept
    assert Figure("f", "s", 0, "optimal", 1.0, 11.2, limit_s=10.0).kept is False
    assert Figure("f", "s", 0, "optimal", 1.0, 11.2).kept is None
