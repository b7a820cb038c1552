"""Equal questions give equal bytes, but for seconds spent and the moment of a review; `--reproducible` drops both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.render.model import Answer
from planner.render.timings import without_timings
from tests.cli import test_schedule
from tests.conftest import CliResult

DAY = ("--as-of", "2026-11-20")
pytestmark = pytest.mark.catalog("small")


@pytest.mark.parametrize(
    ("search", "question"),
    [
        ("workloads.answer.optimize", ("optimize", "examples/bert-large.yaml", *DAY)),
        (
            "portfolios.answer.plan_portfolio",
            ("portfolio", "examples/portfolio.yaml", "--gap", "20%", *DAY),
        ),
        ("schedules.answer.plan_schedule", ("schedule", "TWO_HOURS")),
        ("finops.review.answer.review_bill", ("review", "--focus", "examples/focus/bill-2026-10.csv.gz")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_equal_questions_give_equal_bytes(
    run_cli: Callable[..., CliResult],
    search: str,
    question: tuple[str, ...],
    asked_once: Callable[[str], None],
    tmp_path: Path,
) -> None:
    question = tuple(test_schedule.write(tmp_path) if word == "TWO_HOURS" else word for word in question)
    first = run_cli(*question, "-o", "json", "--reproducible").stdout
    if question[0] != "review":  # an open bill is no key
        asked_once(f"planner.{search}")  # from here on: the second answer is shown with its seconds, too
    second = run_cli(*question, "-o", "json", "--reproducible").stdout
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
