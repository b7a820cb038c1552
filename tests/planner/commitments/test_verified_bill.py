"""`planner verify --bill` recomputes an answer of `planner commit --from-focus`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.planner.commitments.test_begins import answered, as_json, ending
from tests.planner.commitments.test_commit_bill import DAYS, FIRST, FLAT, REGION, charge, write

Answer = dict[str, Any]
OWNED = {
    "PricingCategory": "Committed", "CommitmentDiscountId": "res-1", "CommitmentDiscountStatus": "Used",
    "CommitmentDiscountType": "Reservation",
}  # fmt: skip


def a_bill(folder: Path, machines: float) -> Path:
    """So many machines all the time, and six more under a reservation."""
    days = [FIRST + timedelta(number) for number in range(DAYS - 200, DAYS)]
    rows = [row for day in days for row in (charge(day, FLAT, machines), charge(day, FLAT, 6, **OWNED))]
    folder.mkdir(exist_ok=True)
    return write(folder / "bill.csv", rows)


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_bill(tmp_path_factory.mktemp("bill"), 20)


_ANSWERS: dict[tuple[str, ...], str] = {}


def saved(run_cli: Run, bill: Path, file: Path, *options: str) -> Answer:
    """The answer to the bill of this module, written to a file; with the same options asked once."""
    if options not in _ANSWERS:
        found = run_cli("commit", "--from-focus", bill, "-o", "json", "--no-regret", *options)
        assert found.code == 0, found.stderr
        _ANSWERS[options] = found.stdout
    file.write_text(_ANSWERS[options])
    answer: Answer = json.loads(_ANSWERS[options])
    return answer


@pytest.mark.parametrize(
    "options",
    [(), ("--seed", "3", "--expires", "res-1=2027-02-28"), ("--avoid-loss", "--currency", "usd")],
    ids=["plain", "seed and end", "avoid loss"],
)
def test_an_answer_holds_however_the_bill_was_asked(
    bill: Path, tmp_path: Path, run_cli: Run, options: tuple[str, ...]
) -> None:
    answer = saved(run_cli, bill, tmp_path / "answer.json", *options)
    assert answer["lines"] and answer["bill"]["seed"] == (3 if "--seed" in options else 1)
    found = run_cli("verify", tmp_path / "answer.json", "--bill", bill)
    assert found.code == 0, found.stdout
    moved = a_bill(tmp_path / "elsewhere", 20)  # the same bytes
    assert run_cli("verify", tmp_path / "answer.json", "--bill", moved).code == 0


def _line(answer: Answer) -> Answer:
    line: Answer = answer["lines"][0]
    return line


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer["plan"].update(expected_usd=answer["plan"]["expected_usd"] * 0.99),
        lambda answer: answer["nothing"].update(worst_usd=answer["nothing"]["worst_usd"] + 1),
        lambda answer: _line(answer).update(units=_line(answer)["units"] + 1),
        lambda answer: _line(answer).update(usd_per_hour=_line(answer)["usd_per_hour"] * 0.9),
        lambda answer: answer["loss"].update(chance_ratio=0.5),
        lambda answer: answer["bill"].update(seed=2),
        lambda answer: answer["bill"].update(expires=["res-1=2027-02-28"]),
        lambda answer: answer["files"][0].update(sha256="0" * 64),
        lambda answer: answer.update(risk_weight=0.2),
        lambda answer: answer["break_evens"][0].update(hours_per_year=1.0),
    ],
)
def test_what_is_changed_is_found(
    bill: Path,
    tmp_path: Path,
    run_cli: Run,
    asked_once: Callable[[str], None],
    change: Callable[[Answer], None],
) -> None:
    asked_once("planner.commitments.from_bill.question_from_bill")  # the bill stays as it is
    answer = saved(run_cli, bill, tmp_path / "answer.json")
    change(answer)
    (tmp_path / "changed.json").write_text(json.dumps(answer))
    assert run_cli("verify", tmp_path / "changed.json", "--bill", bill).code == 5


def test_another_bill_and_another_kind_of_answer_are_refused(
    bill: Path, tmp_path: Path, run_cli: Run
) -> None:
    saved(run_cli, bill, tmp_path / "answer.json")
    found = run_cli("verify", tmp_path / "answer.json", "--bill", a_bill(tmp_path / "other", 19))
    assert (found.code, f"{FLAT} {REGION}" in found.stdout or "expected_usd" in found.stdout) == (5, True)
    twice = run_cli("verify", tmp_path / "answer.json", "--bill", bill, "--workload", bill)
    assert (twice.code, "in place of --workload" in twice.stderr) == (2, True)
    (tmp_path / "of_question.json").write_text(json.dumps(as_json(answered(ending()))))
    asked = run_cli("verify", tmp_path / "of_question.json", "--bill", bill)
    assert (asked.code, "give its file with --workload" in asked.stderr) == (2, True)
