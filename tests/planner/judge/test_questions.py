"""Frontiers, serving fleets and schedules are recomputed: real answers hold, a change of any field is caught."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgeries import Forger, put, scaled, steps, texts_of
from benchmarks.instances.answers import (
    EXAMPLES,
    PORTFOLIOS,
    Saved,
    fleets_that_serve,
    frontiers,
    pipelines,
    portfolios,
    schedules,
)
from planner.errors import InputError
from planner.judge.document import leaves
from planner.judge.findings import general, is_stated
from tests.conftest import CliResult

RunCli = Callable[..., CliResult]

KINDS: dict[str, Callable[[], Iterator[Saved]]] = {
    "frontier": frontiers, "serving": fleets_that_serve, "schedule": schedules, "pipeline": pipelines,
    **{name: partial(portfolios, (name,)) for name in PORTFOLIOS},
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(KINDS))
def saved(request: pytest.FixtureRequest) -> Saved:
    found: Saved = list(KINDS[request.param]())[-1]
    return found


def holds(saved: Saved, answer: Any) -> bool:
    try:
        return not saved.judge(answer)
    except InputError:
        return False


def test_an_answer_holds_and_every_leaf_is_checked_or_stated(saved: Saved) -> None:
    assert saved.judge(saved.answer) == []


def test_every_field_that_is_not_stated_is_caught_when_it_changes(saved: Saved) -> None:
    through, rng = [], random.Random(saved.name)
    fields: dict[str, list[tuple[str, Any]]] = {}
    for path, value in leaves(saved.answer):
        fields.setdefault(general(path), []).append((path, value))
    for found in fields.values():
        if is_stated(found[0][0], saved.stated):
            continue
        path, value = rng.choice(found)
        forged = copy.deepcopy(saved.answer)
        other: Any = "x" if value is None else [1] if isinstance(value, list) else f"{value}x"
        if isinstance(value, bool):
            other = not value
        elif isinstance(value, int | float):
            other = scaled(value, 1.001)
        put(forged, steps(path), other)
        if holds(saved, forged):
            through.append(path)
    assert through == []


def test_random_forgeries_are_caught(saved: Saved) -> None:
    forger, rng = Forger(saved.answer, saved.stated, texts_of([saved])), random.Random(3)
    drawn = [forger.draw(rng) for _ in range(40)]
    assert [one.where for one in drawn if one is not None and holds(saved, one.answer)] == []


@pytest.mark.parametrize(("command", "example"), [("serving", "serving"), ("schedule", "schedule")])
def test_the_command_takes_the_question(run_cli: RunCli, tmp_path: Path, command: str, example: str) -> None:
    target, question = tmp_path / "answer.json", str(EXAMPLES / f"{example}.yaml")
    assert run_cli(command, question, "-o", "json", "--out", str(target)).code == 0
    done = run_cli("verify", str(target), "--workload", question)
    assert (done.code, done.stderr) == (0, "")
    assert run_cli("verify", str(target)).code == 2
    made = json.loads(target.read_text(encoding="utf-8"))
    made["proof"]["gap_ratio"] = 0.5
    target.write_text(json.dumps(made), encoding="utf-8")
    assert run_cli("verify", str(target), "--workload", question).code == 5


@pytest.mark.parametrize("mark", [{"kind": "portfolio_frontier"}, {"break_evens": []}])
def test_what_is_not_recomputed_says_so(run_cli: RunCli, tmp_path: Path, mark: dict[str, Any]) -> None:
    target = tmp_path / "answer.json"
    target.write_text(json.dumps(mark), encoding="utf-8")
    done = run_cli("verify", str(target))
    assert done.code == 2
    assert "not recomputed" in done.stderr
