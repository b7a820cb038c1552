"""A file system that fails at the n-th call: every call of one write, and a sample of `benchmarks.file_faults`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from benchmarks.file_faults import WRITINGS, faulty, faulty_refresh, files, inputs_in
from benchmarks.injection import FAULTS, Injection, fitting
from planner.errors import InputError, OutputError
from planner.files import write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="names of POSIX errors")
SEED = int(os.environ.get("PLANNER_FAULTS_SEED", "1"))
CHEAP = {"export": 20, "init": 8, "calibrate": 3}  # commands, and how many of their faults


@pytest.mark.parametrize("mode", [None, 0o600])
def test_every_fault_of_every_call_of_a_write(mode: int | None, tmp_path: Path) -> None:
    path, old, new = tmp_path / "plan.json", b"old", b"new" * 10_000
    path.write_bytes(old)
    with Injection(tmp_path) as counted:
        write_atomically(path, new, mode=mode)
    tried = list(fitting(counted.calls))
    assert {fault for _, fault, _ in tried} == set(FAULTS)
    for at, fault, what in tried:
        path.write_bytes(old)
        done = True
        with Injection(tmp_path, at, fault) as injection:
            try:
                write_atomically(path, new, mode=mode)
            except (OutputError, InputError) as error:
                done = False
                assert str(path) in str(error), (fault, what)
                assert (type(error) is InputError) == (fault == "EACCES"), (fault, what)
        assert injection.hit
        assert path.read_bytes() == (new if done else old), (fault, what)
        assert [one.name for one in tmp_path.iterdir()] == ["plan.json"], (fault, what)
        assert not done or fault in ("EINTR", "partial") or what.startswith("list"), (fault, what)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inputs_in(tmp_path_factory.mktemp("faults") / "inputs")


@pytest.mark.parametrize("name", CHEAP)
def test_a_command_ends_with_old_files_or_new_ones_and_a_named_error(
    name: str, inputs: Path, tmp_path: Path
) -> None:
    writing = next(one for one in WRITINGS if one.name == name)
    tried, amiss = faulty(writing, tmp_path, inputs, random.Random(SEED), CHEAP[name])
    assert tried and amiss == [], f"PLANNER_FAULTS_SEED={SEED}"


def test_a_refresh_stores_the_old_prices_or_the_new_ones(tmp_path: Path) -> None:
    tried, amiss = faulty_refresh(tmp_path, random.Random(SEED), 10)
    assert tried and amiss == [], f"PLANNER_FAULTS_SEED={SEED}"


def test_files_are_compared_without_the_moment_and_the_age_of_their_writing(tmp_path: Path) -> None:
    seen = []
    for said in (
        "the state is 88.4 h old; made 2026-11-23T22:28:01Z",
        "the state is 45 min old; made 2026-11-23T22:34Z",
        "the state is 88.4 h ahead; made 2026-11-23T22:34Z",
    ):
        (tmp_path / "advice.json").write_text(said, encoding="utf-8")
        seen.append(files(tmp_path))
    assert seen[0] == seen[1] != seen[2]
