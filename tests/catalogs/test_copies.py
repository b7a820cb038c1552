"""Compiled copies are written whole or not at all; parts of killed writers do not stay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from catalogs.cache.copies import write_copy


def test_a_signal_leaves_no_part_of_a_copy(tmp_path: Path) -> None:
    def interrupted(file: BinaryIO) -> None:
        file.write(b"a part")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_copy(tmp_path / "spot-1.npz", interrupted, pattern="spot-*.npz", most=2)
    assert list(tmp_path.iterdir()) == []


def test_old_parts_of_killed_writers_are_removed_and_new_ones_of_others_are_not(tmp_path: Path) -> None:
    left, writing = tmp_path / "spot-0.npz.17.tmp", tmp_path / "spot-2.npz.18.tmp"
    for part in (left, writing):
        part.write_bytes(b"a part")
    os.utime(left, (0, 0))
    write_copy(tmp_path / "spot-1.npz", lambda file: file.write(b"whole"), pattern="spot-*.npz", most=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spot-1.npz", "spot-2.npz.18.tmp"]


def test_the_newest_copies_are_kept_and_never_more_than_said(tmp_path: Path) -> None:
    other = tmp_path / "shapes-1.npz"
    other.write_bytes(b"of another kind")
    for number in range(60):
        path = tmp_path / f"spot-{number}.npz"
        write_copy(path, lambda file: file.write(b"whole"), pattern="spot-*.npz", most=16)
        os.utime(path, (number, number))
        kept = {int(path.stem.removeprefix("spot-")) for path in tmp_path.glob("spot-*.npz")}
        assert kept == set(range(number + 1 - len(kept), number + 1))  # the last ones, without a gap
        assert min(number + 1, 14) <= len(kept) <= 16
    assert other.exists()
