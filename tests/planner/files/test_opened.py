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


def _said(folder: Path, act: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{ACT}", act), str(folder)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _noted(folder: Path, act: str) -> dict[str, str] | None:
    states: dict[str, str] | None = json.loads(_said(folder, act))
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


@pytest.mark.parametrize("folder_of_link", [".", "known"])
def test_a_name_that_goes_up_behind_a_link_is_noted_as_it_was_opened(
    folder: Path, folder_of_link: str
) -> None:
    """The name alone says that the file lies beside the link, or where something else keeps track of it."""
    (folder / "far" / "off").mkdir(parents=True)
    (folder / "far" / "a.yaml").write_text("another")
    (folder / folder_of_link / "link").symlink_to(folder / "far" / "off")
    time.sleep(0.05)
    name = f"here / {folder_of_link!r} / 'link' / '..' / 'a.yaml'"
    states, other = (
        _noted(folder, f"({name}).read_text()"),
        _noted(folder, "(here / 'far/a.yaml').read_text()"),
    )
    assert states is not None
    assert other is not None
    assert list(states.values()) == list(other.values())


def test_what_changed_within_whole_seconds_is_no_ground_where_stamps_are_cut_to_them(folder: Path) -> None:
    """As on FAT, HFS+ and some network folders: the file was last written in the second in which the notes began."""
    act = (
        "about = os.stat(here / 'a.yaml'); cut = int(reading._began_ns // 10**9) * 10**9\n"
        "from planner.files import opened; from types import SimpleNamespace as Stat\n"
        "print(opened._latest_ns(Stat(st_mtime_ns=cut, st_ctime_ns=cut)) >= reading._began_ns, "
        "opened._latest_ns(about) < reading._began_ns)\nsys.exit()"
    )
    assert _said(folder, act) == "True True\n"


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
        "from planner.inputs.load import STDIN, read_limited as read; read(STDIN)",
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
