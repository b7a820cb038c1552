"""Files are written whole, with the permissions they had; links stay links, devices and pipes are never replaced."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.injection import Injection, fitting
from planner import files
from planner.errors import InputError, OutputError
from planner.export.files import ExportFile, write_files
from planner.files import PRIVATE, remove_folder, temporary_folder, write_atomically


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def killed_process() -> int:
    """The number of a process that ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


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


def test_a_full_disk_is_no_fault_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_atomically(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text(encoding="utf-8") == "old"


def test_a_signal_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "plan.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_the_file_is_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def interrupted(*arguments: int) -> None:  # the interpreter raises once the call has returned
        os.close(opened(*arguments))
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "plan.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_is_there_already_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    job = ExportFile("job.sbatch", "text\n")
    (path,) = write_files([job], tmp_path)
    dead = tmp_path / f"{files._prefix(path)}{killed_process()}-0123abcd"
    dead.write_text("te", encoding="utf-8")
    write_files([job], tmp_path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "plan.json", "new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "plan.json") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_old_file_keeps_its_mode_and_a_private_one_has_its_own(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    write_atomically(path, "new")
    assert mode_of(path) == mode
    write_atomically(path, "bill", mode=PRIVATE)
    assert mode_of(path) == 0o600


def test_what_a_killed_writer_left_is_swept_and_that_of_others_is_not(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    prefix = files._prefix(path)
    dead = tmp_path / f"{prefix}{killed_process()}-0123abcd"
    writing = tmp_path / f"{prefix}{os.getpid()}-0123abcd"
    elsewhere = tmp_path / f".plan.json.abcdef01-{killed_process()}-0123abcd"
    theirs = tmp_path / ".plan.json.swp"
    for file in (dead, writing, elsewhere, theirs):
        file.write_text("", encoding="utf-8")
    write_atomically(path, "new")
    assert not dead.exists()
    assert writing.exists() and elsewhere.exists() and theirs.exists()
    os.utime(elsewhere, (0, 0))
    write_atomically(path, "new")
    assert not elsewhere.exists()


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "new"


def test_folders_of_killed_processes_are_swept(tmp_path: Path) -> None:
    dead = tmp_path / f"planner-bill-{killed_process()}-abcdefgh"
    other = tmp_path / "planner-bill-notes"
    for folder in (dead, other):
        folder.mkdir()
        (folder / "charges.csv").write_text("", encoding="utf-8")
    made = temporary_folder(tmp_path, "planner-bill-")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([made.name, other.name])
    assert mode_of(made) == 0o700
    again = temporary_folder(tmp_path, "planner-bill-")
    assert made.exists() and again != made


def test_a_fault_of_a_moment_leaves_no_temporary_folder(tmp_path: Path) -> None:
    def filled() -> Path:
        made = temporary_folder(tmp_path, "planner-bill-")
        (made / "spill").mkdir()
        (made / "spill" / "rows.parquet").write_bytes(b"rows")
        return made

    made = filled()
    with Injection(tmp_path) as counted:
        remove_folder(made)
    tried = list(fitting(counted.calls))
    assert tried
    for at, fault, what in tried:
        made = filled()
        with Injection(tmp_path, at, fault):
            remove_folder(made)
        assert not made.exists(), (fault, what)
