"""Equal questions give equal bytes, but for seconds spent and the moment of a review; `--reproducible` drops both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.render.model import Answer
from planner.render.timings import without_timings
from tests.conftest import CliResult

DAY = ("--as-of", "2026-11-20")


@pytest.mark.parametrize(
    "question",
    [
        ("optimize", "examples/bert-large.yaml", *DAY),
        ("portfolio", "examples/portfolio.yaml", "--gap", "5%", *DAY),
        ("schedule", "examples/schedule.yaml", "--gap", "5%"),
        ("review", "--focus", "examples/focus/bill-2026-10.csv.gz"),
    ],
    ids=lambda question: question[0],
)
def test_equal_questions_give_equal_bytes(
    run_cli: Callable[..., CliResult], question: tuple[str, ...]
) -> None:
    first, second = (run_cli(*question, "-o", "json", "--reproducible").stdout for _ in range(2))
    assert first == second
    timed = run_cli(*question, "-o", "json").stdout
    assert timed != first and json.loads(timed).keys() == json.loads(first).keys()


def test_a_plan_without_seconds_verifies(run_cli: Callable[..., CliResult], tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    assert run_cli("--reproducible", "optimize", "examples/bert-large.yaml", *DAY, "--out", out).code == 0
    assert json.loads(Path(out).read_text(encoding="utf-8"))["proof"]["seconds"] == 0
    assert run_cli("verify", out, "--workload", "examples/bert-large.yaml").code == 0


def test_the_last_digits_of_sums_over_a_bill_are_left_out() -> None:
    """Threads add up in another order each time; a plan has no moment, and keeps all digits."""

    def values(total: float, **more: object) -> object:
        answer = Answer("review", "Review", (), (), values={"rows": [{"usd": total}], **more})
        return without_timings(answer).values

    first, second = 9160.296162785904, 9160.296162785906
    assert values(first, created="2026-11-01T00:00:00+00:00") == values(second, created=None)
    assert values(first) != values(second)
