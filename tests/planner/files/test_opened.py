"""What a process read is noted whole: an answer is kept on that ground. Each case is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# `{ACT}` reads; the script prints what was noted
SCRIPT = """
import json, os, socket, sqlite3, subprocess, sys
from pathlib import Path
from catalogs.cache.copies import is_folder, open_copy, write_copy
from planner.files.limited import read_limited
from planner.files.opened import Reading
here = Path(sys.argv[1])
reading = Reading()
{ACT}
print(json.dumps(reading.states(apart_from=[here / "known"])))
"""


def _noted(folder: Path, act: str, **more: str) -> dict[str, str] | None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{ACT}", act), str(folder)],
        env={**os.environ, **more}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    states: dict[str, str] | None = json.loads(done.stdout)
    return (
        None if states is None else {os.path.relpath(path, folder): state for path, state in states.items()}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file, a folder with a file, and a folder that something else knows; all older than the process."""
    for name in ("a.yaml", "in/b.csv", "known/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    time.sleep(0.05)
    return tmp_path


@pytest.mark.parametrize(
    ("act", "noted"),
    [
        ("(here / 'a.yaml').read_text()", {"a.yaml": "file"}),
        ("read_limited(here / 'a.yaml', 100)", {"a.yaml": "file"}),
        ("os.chdir(here); open('a.yaml').read()", {"a.yaml": "file"}),
        ("os.chdir(here); os.listdir()", {".": "folder"}),
        ("sorted((here / 'in').iterdir())", {"in": "folder"}),
        ("sorted(here.glob('in/*.csv'))", {"in": "folder"}),
        ("is_folder(here / 'in')", {"in": "folder"}),
        ("is_folder(here / 'none')", {"none": "absent"}),
        ("is_folder(here / 'none' / 'below')", {"none/below": "absent"}),
        ("(here / 'known' / 'c.py').read_text()", {}),
        ("(here / 'new').write_text('x')", {}),
    ],
)
def test_files_found_and_missing_and_folders_are_noted(folder: Path, act: str, noted: dict[str, str]) -> None:
    states = _noted(folder, act)
    assert states is not None
    assert {path: state.split()[0] for path, state in states.items()} == noted


def test_a_missing_file_is_noted_for_it_may_come(folder: Path) -> None:
    act = "try: open(here / 'none')\nexcept FileNotFoundError: pass"
    assert _noted(folder, act) == {"none": "absent"}


@pytest.mark.parametrize(
    "act",
    [
        "p = here / 'a.yaml'; p.read_text(); p.write_text('b')",
        "p = here / 'a.yaml'; p.read_text(); p.unlink()",
        "p = here / 'a.yaml'; p.read_text(); (here / 'in' / 'b.csv').replace(p)",
        "p = here / 'a.yaml'; p.read_text(); p.write_text('b'); os.utime(p, (0, 0))",
        "os.listdir(here / 'in'); (here / 'in' / 'd').write_text('')",
        "is_folder(here / 'none'); (here / 'none').mkdir()",
    ],
)
def test_what_changed_while_it_was_read_is_no_ground(folder: Path, act: str) -> None:
    assert _noted(folder, act) is None


@pytest.mark.parametrize(
    "act",
    [
        "socket.socket().connect_ex(('127.0.0.1', 9))",
        "subprocess.run([sys.executable, '-c', ''])",
        "sqlite3.connect(here / 'a.yaml')",
        "open(0).read()",
        "open('/dev/null').read()",
        "sys.audit('planner.warned', 'old prices')",
    ],
)
def test_what_no_file_tells_is_no_ground(folder: Path, act: str) -> None:
    assert _noted(folder, act) is None


def test_copies_are_left_out_though_they_lie_beside_what_is_read(folder: Path) -> None:
    act = (
        "write_copy(here / 'copy-1', lambda f: f.write(b'x'), pattern='copy-*', most=2)\n"
        "open_copy(here / 'copy-1').read(); open(here / 'a.yaml').read(); import difflib"
    )
    states = _noted(folder, act)
    assert states is not None
    assert states.keys() == {"a.yaml"}


def test_a_fault_of_the_notes_reaches_nobody(folder: Path) -> None:
    """The folder that names are relative to is gone: Python can open the file, and nothing says where it lies."""
    act = "os.mkdir(here / 'x'); os.chdir(here / 'x'); os.rmdir(here / 'x'); os.listdir('.')"
    assert _noted(folder, act) is None
