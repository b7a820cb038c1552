"""Snapshots that nobody changes, read and checked once per test session.

Each of thousands of commands under test would read the bundled catalog anew and take the sums of its files, for a
millisecond. What reads snapshots has tests of its own, on folders that this memory does not know.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from catalogs.store import snapshots
from catalogs.store.read import bundled_directory, read_provider


@contextlib.contextmanager
def remembered_snapshots() -> Iterator[set[Path]]:
    """Let what is below the bundled directory be read once, within; yields such directories, which may be more."""
    roots = {bundled_directory()}

    def once(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        known = functools.cache(read)
        return lambda directory: known(directory) if directory.parent in roots else read(directory)

    with contextlib.ExitStack() as stack:
        for asking in ("load", "snapshots"):
            stack.enter_context(mock.patch(f"catalogs.store.{asking}.read_provider", once(read_provider)))
        described = once(snapshots.bundled_snapshot)
        stack.enter_context(mock.patch("catalogs.store.snapshots.bundled_snapshot", described))
        yield roots
