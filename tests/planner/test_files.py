"""Files are written whole; links stay links, devices and pipes are written to and never replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.files import write_atomically


def test_a_device_is_not_replaced() -> None:
    write_atomically(Path(os.devnull), "text")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_passes_the_text_on(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_atomically(pipe, "plan\n")
    reader.join(timeout=10)
    assert read == ["plan\n"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "plan.json", tmp_path / "latest.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink() and target.read_text(encoding="utf-8") == "new"


def test_a_folder_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically(tmp_path, "text")
    with pytest.raises(InputError, match="cannot write there"):
        write_atomically(tmp_path / "nowhere" / "plan.json", "text")
