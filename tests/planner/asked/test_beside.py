"""What hours of several jobs have beside their steps: only those that leave it to the planner are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.asked.assumptions import Beside, beside_by_default, load_assumptions
from planner.inputs.load import LoadedWorkload, load_workload
from planner.inputs.portfolio_load import load_portfolio
from planner.plan.words import beside_steps
from planner.portfolios.spread import beside_of

BERT = Path("examples/bert-large.yaml").read_text(encoding="utf-8")
RATIO = load_assumptions().beside_steps_ratio


def _loaded(folder: Path, said: str) -> LoadedWorkload:
    path = folder / f"{said or 'default'}.yaml"
    path.write_text(
        BERT + (f"\nassumptions: {{beside_steps_ratio: {said}}}\n" if said else ""), encoding="utf-8"
    )
    return load_workload(path)


@pytest.mark.parametrize(
    ("said", "counts", "whose"),
    [
        (("", ""), (1, 4), ""),
        (("", "0.2"), (3, 2), "3 of 5 jobs"),
        (("0.9", "", ""), (1, 1, 1_500), "1,501 of 1,502 jobs"),
        (("", None), (2, 1), "2 of 3 jobs"),
        (("0.36", ""), (1, 1), "1 of 2 jobs"),
    ],
)
def test_jobs_that_state_it_and_those_sized_elsewhere_are_not_told(
    said: tuple[str | None, ...], counts: tuple[int, ...], whose: str, tmp_path: Path
) -> None:
    beside = beside_by_default([None if one is None else _loaded(tmp_path, one) for one in said], counts)
    assert beside.ratio == RATIO and beside.whose("jobs") == whose
    words = beside_steps(beside.ratio, beside.whose("jobs"))
    assert words == f"run time{' of ' if whose else ''}{whose} is {1 + RATIO:g} x the steps' time"


def test_nothing_is_told_where_nobody_leaves_it_to_the_planner(tmp_path: Path) -> None:
    assert beside_by_default([_loaded(tmp_path, "0.9"), None]) == Beside(0.0, 0, 2)
    assert beside_steps(0.0, "0 of 2 jobs") == ""


def test_copies_of_a_job_are_counted(tmp_path: Path) -> None:
    for said in ("", "0.2"):
        _loaded(tmp_path, said)
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "version: 1\nkind: portfolio\nname: two\njobs:\n  - {name: a, workload: default.yaml, count: 7}\n"
        "  - {name: b, workload: 0.2.yaml, count: 2}\n"
    )
    assert beside_of(load_portfolio(path)) == f"run time of 7 of 9 jobs is {1 + RATIO:g} x the steps' time"
