"""`planner schema commit-answer`: answers of every kind follow it, and what does not is found."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.commitments.answer import commit_answer_schema
from planner.inputs.commit_schema import CommitQuestion
from tests.conftest import Run
from tests.planner.commitments.test_begins import answered, as_json, ending
from tests.planner.commitments.test_commit_bill import DAYS, FIRST, FLAT, charge, write
from tests.schema_check import schema_faults

SCHEMA = commit_answer_schema()


def test_the_command_prints_it(run_cli: Run) -> None:
    found = run_cli("schema", "commit-answer")
    assert found.code == 0
    assert json.loads(found.stdout) == SCHEMA
    said = (
        SCHEMA["properties"]["bill"]["description"],
        SCHEMA["$defs"]["Level"]["properties"]["worst_usd"]["description"],
    )
    assert said[0].startswith("How the bill was asked")
    assert said[1] == "Mean of the worst outcomes (CVaR at the question's level), commitments included"


@pytest.mark.parametrize(
    "asked",
    [
        ending(),
        ending(commitments=[]),
        ending(demand={"planned": []}),  # no use at all
        ending(horizon_years=3, options={"upfront_limit_usd": 1.0}, risk={"loss_price": 1.5}),
    ],
)
def test_answers_follow_it(asked: CommitQuestion) -> None:
    assert schema_faults(as_json(answered(asked)), SCHEMA) == []


def test_an_answer_of_a_bill_follows_it(tmp_path: Path, run_cli: Run) -> None:
    rows = [charge(FIRST + timedelta(number), FLAT, 20) for number in range(DAYS - 60, DAYS)]
    bill = write(tmp_path / "bill.csv", rows)
    found = run_cli("commit", "--from-focus", bill, "--expires", "none=2027-01-01", "-o", "json")
    assert found.code == 2
    found = run_cli("commit", "--from-focus", bill, "-o", "json")
    answer = json.loads(found.stdout)
    assert answer["bill"] == {"currency": None, "seed": 1, "expires": [], "mapping": []}
    assert schema_faults(answer, SCHEMA) == []


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, item in enumerate(value) for leaf in _leaves(item, (*path, key))]
    return [path]


def test_every_value_of_another_type_is_a_fault() -> None:
    answer = as_json(answered(ending()))
    for path in _leaves(answer):
        part = answer
        for key in path[:-1]:
            part = part[key]
        kept, part[path[-1]] = part[path[-1]], ["other"]
        assert schema_faults(answer, SCHEMA), path
        part[path[-1]] = kept
    assert schema_faults(answer | {"more": 1}, SCHEMA)
    del answer["plan"]["worst_usd"]
    assert schema_faults(answer, SCHEMA)


def test_printing_it_imports_no_numpy() -> None:
    code = (
        "import sys\nfrom planner.commands.schema import schema\n"
        "schema(['commit-answer'], standalone_mode=False)\nsys.exit('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=Path(__file__).parents[3], check=False
    )
    assert done.returncode == 0, done.stderr
