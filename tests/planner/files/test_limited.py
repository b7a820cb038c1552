"""One reader for what users name: no file, device, pipe or packed file is read beyond its limit or for ever."""

from __future__ import annotations

import errno
import gzip
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from planner.files import limited
from planner.files.limited import open_text, read_limited, read_start, read_unpacked

MIB = 1 << 20
needs_devices = pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device files here")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * MIB)
    assert read_limited(path, MIB) == b"x" * MIB
    with pytest.raises(OSError, match="larger than") as told:
        read_limited(path, MIB - 1)
    assert told.value.errno == errno.EFBIG


def test_a_sparse_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_limited(path, MIB)


@needs_devices
def test_a_device_without_end_is_left_at_the_limit() -> None:
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_limited(Path("/dev/zero"), MIB)
    assert read_limited(Path("/dev/null"), MIB) == b""


@needs_devices
def test_what_is_read_of_a_device_is_not_copied_before_it_is_refused() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="larger than 32 MiB"):
            read_limited(Path("/dev/zero"), 32 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 48 * MIB
    finally:
        tracemalloc.stop()


@needs_pipes
def test_the_start_of_a_file_is_read_where_the_rest_can_be_read_later(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"step,time\n")
    assert read_start(tmp_path / "log", 4) == b"step"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file; save it to one, for it is read twice"):
        read_start(tmp_path / "pipe", 4)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_limited(tmp_path, MIB)


@needs_pipes
def test_a_pipe_to_which_nobody_writes_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "PIPE_WAIT_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TimeoutError, match="a pipe to which nobody wrote"):
        read_limited(tmp_path / "pipe", MIB)


@needs_pipes
@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_what_is_written_to_a_pipe_is_read(tmp_path: Path, pause_s: float) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb") as file:
            file.write(b"one,")
            file.flush()
            threading.Event().wait(pause_s)
            file.write(b"two" * MIB)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_limited(path, 4 * MIB) == b"one," + b"two" * MIB
    writer.join()


def test_packed_files_are_unpacked_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n") + b"\0" * 10)
    assert read_unpacked(path, MIB) == b"one\ntwo\n"


def test_a_packed_file_cannot_unpack_to_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\0" * (64 * MIB)))
    assert path.stat().st_size < MIB
    with pytest.raises(OSError, match="unpacks to more than 1 MiB") as told:
        read_unpacked(path, MIB)
    assert told.value.errno == errno.EFBIG


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_packed_files_say_so(tmp_path: Path, damage: str) -> None:
    whole = bytearray(gzip.compress(os.urandom(4096)))
    if damage == "cut":
        whole = whole[:-500]
    else:
        whole[-3] ^= 0xFF
    path = tmp_path / "log.gz"
    path.write_bytes(whole)
    with pytest.raises(OSError, match="damaged gzip"):
        read_unpacked(path, MIB)


def test_text_keeps_its_line_ends_and_loses_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n")
    assert open_text(path, MIB).read() == "a,b\r\n"
