"""Files of every kind, broken at random, end in an answer or a named error; `python -m benchmarks.fuzz` tries more."""

from __future__ import annotations

import contextlib
import functools
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from benchmarks.fuzz import Reader, broken_file, folder_of, outcome, put_file, readers, saved_plans, words_of
from benchmarks.fuzz_parts import Part
from benchmarks.fuzz_parts import outcome as read_outcome
from planner.errors import InputError
from planner.finops import read
from planner.finops.forecast.daily import load_daily
from planner.finops.quality import assess_quality
from planner.finops.read import Bill, open_bill
from planner.finops.review.sections.registry import SECTIONS
from planner.finops.review.verdict import verdict
from planner.plan.file import load_plan
from tests.conftest import CliResult
from tests.long_values import VALUES, quoted_whole, with_long_values
from tests.one_bill import opened_once

SEED = int(os.environ.get("PLANNER_FUZZ_SEED", "1"))
FILES = {"workload": 2_000}
OTHERS = 300
BILLS = ("bill", "bill in another format")
# bills that go through the command, which reviews them whole; the others through their reader alone
REVIEWED = 40
ANSWERED = {0, 3, 5}  # a plan, none that fits, a gate exceeded
OUT_OF_TIME = 6
KINDS = (
    "workload", "portfolio", "pipeline", "schedule", "serving", "budget", "commit", "tco", "state", "plan", "bill",
    "showback", "daily", "log", "measured log", "training configuration", "training script", "sweep", "machines",
    "evidence", "certificate", "bill in another format", "settings", "snapshot",
)  # fmt: skip
# what is read once, as it lies whole beside all broken files of a kind
BESIDE = {"showback": "bill_once", "state": "plan_once", "evidence": "plan_once"}
pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the time limit is an alarm of POSIX"),
    pytest.mark.catalog("small"),
]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Reader]:
    folder = tmp_path_factory.mktemp("saved")
    saved_plans(folder)
    return {reader.name: reader for reader in readers(folder)}


@pytest.fixture
def bill_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As `_bill_once`."""
    with _bill_once(monkeypatch):
        yield


@contextlib.contextmanager
def _bill_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open the bill once, and review no more of it than what reads the rules of showback.

    The bill beside the broken rules is whole, the same for all of them.
    """

    def once(work_out: Callable[..., Any]) -> Callable[..., Any]:
        kept: list[Any] = []

        def answered(*args: Any, **given: Any) -> Any:
            if not kept:
                kept.append(work_out(*args, **given))
            return kept[0]

        return answered

    made = tuple(one for one in SECTIONS if one[0] == "showback")
    monkeypatch.setattr("planner.finops.review.answer.SECTIONS", made)
    for beside in (assess_quality, verdict):
        monkeypatch.setattr(f"planner.finops.review.answer.{beside.__name__}", once(beside))
    with opened_once() as bills:
        first: list[Any] = []

        def open_first(*args: Any, **given: Any) -> Bill:
            first.append((args, given))  # the bill lies in another folder each time
            return bills(*first[0][0], **first[0][1])

        # not by `monkeypatch`: it ends later than `opened_once`, and would put its memory back
        with mock.patch("planner.finops.read.open_bill", open_first):
            yield


@pytest.fixture
def plan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the plan once that lies, whole, beside broken states and evidence."""
    monkeypatch.setattr("planner.advice.saved_plan.load_plan", functools.cache(load_plan))


def test_later_tests_open_their_own_bills() -> None:
    """They went on with the memory of bills: a file that was written anew was reviewed as it had been before."""
    with pytest.MonkeyPatch.context() as patch, _bill_once(patch):
        assert read.open_bill is not open_bill
    assert read.open_bill is open_bill


def test_every_kind_is_broken(known: Mapping[str, Reader]) -> None:
    assert set(known) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_file_is_answered_so_that_broken_ones_are_read_beyond_their_names(
    known: Mapping[str, Reader], kind: str, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """A question whose files are not beside it would be refused for that, however it is broken."""
    reader = known[kind]
    for command in reader.commands:
        files = (put_file(reader, seed, seed.read_bytes(), tmp_path) for seed in reader.seeds)
        assert any(_answers(run_cli, reader, command, file) for file in files), command


def _answers(run_cli: Callable[..., CliResult], reader: Reader, command: tuple[str, ...], file: Path) -> bool:
    words = words_of(command, file)
    with folder_of(reader, file):
        code = run_cli(*words).code
        if code == OUT_OF_TIME:  # the short limit of broken files, on a busy machine
            code = run_cli(*words, "--time-limit", "10m").code
    return code in ANSWERED


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_file_ends_in_an_answer_or_a_named_error(
    known: Mapping[str, Reader], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if beside := BESIDE.get(kind):
        request.getfixturevalue(beside)
    reader = known[kind]
    if kind in BILLS:
        folder = tmp_path / "few"
        folder.mkdir()
        reader = replace(reader, seeds=tuple(_few(seed, folder, _OF_ALL_DAYS) for seed in reader.seeds))
    for number in range(REVIEWED if kind in BILLS else FILES.get(kind, OTHERS)):
        file = broken_file(reader, random.Random(f"{kind}/{SEED}/{number}"), tmp_path)
        command = words_of(reader.commands[0], file)
        with folder_of(reader, file):
            gave, _ = outcome(command, latest_s=60)
        assert not gave, (f"PLANNER_FUZZ_SEED={SEED}, file {number}", command, gave)


@pytest.mark.parametrize("kind", BILLS)
def test_a_broken_bill_is_read_or_refused_by_name(
    known: Mapping[str, Reader], kind: str, tmp_path: Path
) -> None:
    """Through the reader of bills; few rows, for it is the columns that are read in many ways.

    Each file has a third of them, and all files together have all.
    """
    seeds = list[Path]()
    for part in range(_PARTS):
        folder = tmp_path / f"part {part}"
        folder.mkdir()
        seeds += [_few(seed, folder, "LIMIT 40", part) for seed in known[kind].seeds]
    for seed in seeds:
        _opened(seed)  # one that were refused whole would be read no further however it is broken
    few, read = replace(known[kind], seeds=tuple(seeds)), Part((), _opened)
    for number in range(REVIEWED, OTHERS):
        file = broken_file(few, random.Random(f"{kind}/{SEED}/{number}"), tmp_path)
        gave = read_outcome(read, file)
        assert not gave, (f"PLANNER_FUZZ_SEED={SEED}, file {number}", gave)


def _opened(path: Path) -> None:
    with open_bill((str(path),)):
        pass


_PARTS = 3  # of the columns of a bill
# without which a bill is refused whatever else it holds
_NEEDED = ("BilledCost", "EffectiveCost", "BillingCurrency", "ChargeCategory", "ChargePeriodStart")
# about 80 rows, of all days and kinds that lie in order in a bill
_OF_ALL_DAYS = "QUALIFY row_number() OVER () % (count(*) OVER () // 80) = 0"


def _few(bill: Path, folder: Path, which: str, part: int | None = None) -> Path:
    """Some rows of a bill, in its format and order: with all columns, or the needed ones and a part of the others."""
    few = folder / bill.name
    form = {".csv": "csv", ".gz": "csv", ".parquet": "parquet", ".jsonl": "json"}[bill.suffix]
    with duckdb.connect() as connection:
        names = connection.sql(f"FROM '{bill}' LIMIT 0").columns
        kept = [n for at, n in enumerate(names) if part in (None, at % _PARTS) or n in _NEEDED]
        columns = ", ".join(f'"{name}"' for name in kept)
        connection.execute(f"COPY (SELECT {columns} FROM '{bill}' {which}) TO '{few}' (FORMAT {form})")
    return few


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("date,scope,cost\r2026-10-01,a\rb,5\r\n", "new-line character seen in unquoted field"),
        (f"date,scope,cost\n2026-10-01,{'x' * 140_000},5\n", "field larger than field limit"),
    ],
)
def test_csv_that_cannot_be_read_is_named_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "daily.csv"
    file.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputError, match=says) as caught:
        load_daily(file)
    assert str(caught.value).startswith(f"{file}:")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in BILLS])
def test_no_message_quotes_a_long_value_of_a_file_whole(
    known: Mapping[str, Reader], kind: str, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """Keys, units, optimizers and lists of one value of 3,000 characters were quoted to their end."""
    reader = known[kind]
    for seed in reader.seeds[:2]:
        for text in with_long_values(seed.read_bytes().decode("utf-8", "surrogateescape"), seed.suffix):
            file = put_file(reader, seed, text.encode("utf-8", "surrogateescape"), tmp_path)
            with folder_of(reader, file):
                done = run_cli(*words_of(reader.commands[0], file))
            assert not quoted_whole(done.stderr) and done.code != 1, done.stderr


def test_a_bill_with_a_long_name_of_a_column_is_refused_without_all_of_it(
    known: Mapping[str, Reader], tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    text = (known["bill"].seeds[0]).read_text(encoding="utf-8")
    head, *rows = text.splitlines()
    for name in ("ChargePeriodStart", "BilledCost"):
        for value in VALUES.values():
            file = tmp_path / "bill.csv"
            file.write_text("\n".join((head.replace(name, value), *rows[:20], "")), encoding="utf-8")
            done = run_cli("review", "--focus", str(file))
            assert not quoted_whole(done.stderr) and done.code in (0, 2), done.stderr
