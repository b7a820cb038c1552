"""Answers kept for the next time: the same to the last digit, and never used where anything may differ."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.asked.options import Options
from planner.files.opened import _state
from planner.plan.model import Plan
from planner.workloads import kept
from tests.planned_examples import plan_of

NOW = datetime(2026, 11, 20, 11, 6, tzinfo=UTC)
FIVE = timedelta(minutes=5)
ASKED = {"command": "planner optimize", "workload": Path("w.yaml"), "values": ("constraints.deadline=2d",)}


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What the stand-in for the notes of this process says was read; the real ones would stay for all tests."""
    states: dict[str, str] = {}

    class Reading:
        def states(self, *, apart_from: Any) -> Mapping[str, str]:
            assert apart_from
            return states

    monkeypatch.setattr(kept, "Reading", Reading)
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    yield states


def _answer(now: datetime = NOW, within: timedelta | None = FIVE, **more: object) -> kept.KeptAnswer:
    return kept.KeptAnswer({**ASKED, **more}, now, within)


def _keep(
    plan: Plan | None = None, now: datetime = NOW, within: timedelta | None = FIVE, **options: Any
) -> Path:
    plan = plan_of("bert-large") if plan is None else plan
    answer = _answer(now, within)
    answer.watch()
    answer.keep(plan, Options(now, **options))
    return answer._path


@pytest.mark.parametrize("name", ["bert-large", "hpo-fleet", "grpo-8b", "batch-inference-70b"])
def test_a_kept_plan_is_the_plan(name: str) -> None:
    plan = plan_of(name)
    _keep(plan)
    assert _answer().plan == plan
    assert _answer().plan.to_dict() == plan.to_dict()  # type: ignore[union-attr]


@pytest.mark.parametrize(("minutes", "used"), [(-1, False), (0, True), (5, True), (6, False)])
def test_a_question_of_now_is_of_the_same_minute_for_a_few_minutes(minutes: int, used: bool) -> None:
    _keep()
    answer = _answer(NOW + timedelta(minutes=minutes))
    assert (answer.plan is not None) == used
    assert answer.asked_at == (NOW if used else NOW + timedelta(minutes=minutes))


def test_a_question_of_a_day_has_the_same_answer_on_any_day() -> None:
    _keep(within=None)
    assert _answer(within=None).plan is not None
    assert _answer(NOW + timedelta(days=1), None).plan is None
    assert _answer().plan is None, "a question of now is another one"


@pytest.mark.parametrize(
    "other",
    [{"values": ()}, {"workload": Path("v.yaml")}, {"max_results": 3}, {"command": "planner frontier"}],
)
def test_another_question_is_another_one(other: dict[str, object]) -> None:
    _keep()
    assert _answer(**other).plan is None


@pytest.mark.parametrize("name", ["PLANNER_DATA_DIR", "XDG_DATA_HOME", "OPENBLAS_CORETYPE"])
def test_another_environment_is_another_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _keep()
    monkeypatch.setenv(name, "elsewhere")
    assert _answer().plan is None


def test_another_folder_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _keep()
    monkeypatch.chdir(tmp_path)
    assert _answer().plan is None


def test_any_file_of_the_program_that_changes_makes_answers_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "planner"
    (package / "data").mkdir(parents=True)
    table, link = package / "data" / "table.csv", package / ".#lock"
    table.write_text("1\n")
    link.symlink_to("nowhere")  # as an editor leaves one
    (package / "__pycache__").mkdir()
    monkeypatch.setattr(kept, "PACKAGES", (package,))
    _keep()
    (package / "__pycache__" / "x.pyc").write_text("")
    assert _answer().plan is not None
    before = table.stat()
    table.write_text("2\n")  # as long as it was, and at the same time by its own account
    kept.os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _answer().plan is None
    _keep()
    (package / "new.py").write_text("")
    assert _answer().plan is None


def test_what_was_read_must_be_as_it_was(tmp_path: Path, read: dict[str, str]) -> None:
    file, folder, missing = tmp_path / "w.yaml", tmp_path / "prices", tmp_path / "none"
    file.write_text("a")
    folder.mkdir()
    read |= {str(path): str(_state(str(path), None)) for path in (file, folder, missing)}
    _keep()
    assert _answer().plan is not None
    for change, undo in (
        (lambda: file.write_text("b"), lambda: file.write_text("a")),
        (lambda: (folder / "x").touch(), (folder / "x").unlink),
        (missing.mkdir, missing.rmdir),
        (file.unlink, lambda: file.write_text("a")),
    ):
        change()
        assert _answer().plan is None
        undo()
        assert _answer().plan is not None


def _flip(data: bytes) -> bytes:
    at = data.index(b'"hours"')
    return data[:at] + b'"hourz"' + data[at + 7 :]


@pytest.mark.parametrize(
    "damage",
    [
        _flip,
        lambda data: data[:-1],
        lambda _: b"",
        lambda data: data[:32],
        lambda data: b"x" * 32 + data[32:],
    ],
)
def test_a_damaged_copy_is_not_used_and_is_replaced(damage: Any) -> None:
    path = _keep()
    path.write_bytes(damage(path.read_bytes()))
    assert _answer().plan is None
    _keep()
    assert _answer().plan is not None


def test_a_copy_of_another_shape_is_not_used() -> None:
    path = _keep()
    values = json.loads(path.read_bytes()[32:])
    for wrong in (
        {**values, "plan": {}},
        {**values, "read": 5},
        {"asked_at": "now"},
        [],
        {**values, "asked_at": 1},
    ):
        body = json.dumps(wrong).encode()
        path.write_bytes(kept._sum(_answer()._key, body) + body)
        assert _answer().plan is None


def test_a_copy_of_another_question_under_this_name_is_not_used() -> None:
    path = _keep()
    other = _answer(max_results=3)
    path.rename(other._path)
    assert _answer(max_results=3).plan is None


def test_a_copy_that_others_can_write_is_not_used() -> None:
    path = _keep()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "it names what somebody runs"
    path.chmod(0o666)
    assert _answer().plan is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "file" / "cache"))
    _keep()
    assert _answer().plan is None


def test_few_answers_and_no_large_one_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_COPIES", 3)
    for number in range(5):
        answer = _answer(max_results=number)
        answer.watch()
        answer.keep(plan_of("bert-large"), Options(NOW))
    assert len(list(answer._path.parent.glob("answer-*"))) == 3
    monkeypatch.setattr(kept, "MAX_BYTES", 1000)
    answer = _answer(max_results=9)
    answer.watch()
    answer.keep(plan_of("bert-large"), Options(NOW))
    assert not answer._path.exists()


def test_what_a_clock_or_ctrl_c_decided_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = plan_of("hpo-fleet")
    assert fleet.proof is not None
    slow = replace(fleet, proof=replace(fleet.proof, seconds=4.0))
    assert not _keep(slow).exists()
    assert not _keep(replace(fleet, proof=None)).exists()
    assert not _keep(solver="both").exists()
    with monkeypatch.context() as pressed:
        pressed.setattr(kept, "is_interrupted", lambda: True)
        assert not _keep().exists()
    assert _keep(slow, time_limit_s=60.0).exists()


def test_an_answer_that_was_looked_up_is_not_kept_again() -> None:
    path = _keep()
    again = _answer(NOW + timedelta(minutes=3))
    before = path.stat().st_mtime_ns
    again.watch()
    again.keep(plan_of("grpo-8b"), Options(NOW))
    assert path.stat().st_mtime_ns == before, "its five minutes go on"
