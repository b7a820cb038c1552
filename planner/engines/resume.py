"""A run over many items that goes on where it stopped: results are kept in files that are added and never changed.

    results = map_items(function, {"a": 1, "b": 2}, folder=Path("results.parts"), engine="dask", workers=2)

An item's key says all that its result depends on (a hash of the file, the date, the version): an item whose key has a
result is not computed again, whichever engine computed it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from planner.engines.executors import Engine, make_executor
from planner.errors import InputError
from planner.files import write_atomically
from planner.files.limited import MAX_RECORD_BYTES, read_limited

Item = TypeVar("Item")
Value = Any  # of JSON
KEEP_EVERY_S = 2.0
_KEEP_EVERY = 256  # results
_PART = re.compile(r"part-([0-9]{6})\.jsonl")


class Parts:
    """Results in a folder: `part-000001.jsonl`, ..., each written whole or not at all, one result a line.

    What a killed run had not yet written (at most `KEEP_EVERY_S` seconds or 256 results) is computed again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._new: list[str] = []
        self._written = time.monotonic()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot keep results there: {error.strerror}") from error

    def read(self) -> dict[str, Value]:
        """Results by key.

        Raises:
            InputError: a part is damaged; says which.
        """
        found: dict[str, Value] = {}
        for path in self._paths():
            try:
                for line in read_limited(path, MAX_RECORD_BYTES).decode("utf-8").splitlines():
                    entry = json.loads(line)
                    found[entry["key"]] = entry["value"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(
                    f"{path}: is not a part of results ({error}); remove it: what it held is computed again"
                ) from None
        return found

    def add(self, key: str, value: Value) -> None:
        """Keep a result; it is on disk after the next part is written."""
        self._new.append(json.dumps({"key": key, "value": value}, allow_nan=False))
        if len(self._new) >= _KEEP_EVERY or time.monotonic() - self._written > KEEP_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write the results that are not on disk yet as one more part."""
        if self._new:
            last = max((int(_PART.fullmatch(path.name)[1]) for path in self._paths()), default=0)  # type: ignore[index]
            write_atomically(self.folder / f"part-{last + 1:06d}.jsonl", "\n".join([*self._new, ""]))
            self._new = []
        self._written = time.monotonic()

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if _PART.fullmatch(path.name))


@contextmanager
def parts_of(folder: Path) -> Iterator[Parts]:
    """The results of a folder, for this process alone; new ones are written at the end, whatever ends the block.

    Raises:
        InputError: another process is at work there, or the folder cannot be used.
    """
    from filelock import FileLock, Timeout

    parts = Parts(folder)
    try:
        with FileLock(folder / "lock", timeout=0):
            try:
                yield parts
            finally:
                parts.write()
    except Timeout:
        raise InputError(
            f"{folder}: another run stores its results there; wait for it, or name another folder"
        ) from None


def map_items(
    function: Callable[[Item], Value],
    items: Mapping[str, Item],
    *,
    folder: Path,
    engine: str = "local",
    address: str = "",
    workers: int = 1,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[str, Value]:
    """Compute a function of every item on an engine, or take its result from an earlier run.

    Args:
        function: gives plain values of JSON, without NaN; importable by name on the workers.
        items: by key; see the module.
        folder: of the results.
        engine: a name in `planner.engines.executors.ENGINES`.
        address: of a running Dask or Ray cluster; empty: one of this machine.
        workers: processes of this machine.
        on_done: told how many results there are, and how many items.

    Returns:
        Results by key, in the order of the items.

    Raises:
        InputError: an engine or folder cannot be used; and whatever the function raises. What is computed is kept.
        WorkerLostError: an item's workers died every time. What is computed is kept.
    """
    executor = make_executor(engine, workers, address)
    with parts_of(folder) as parts:
        return dict(resumed(function, items, executor, parts, on_done=on_done))


def resumed(
    function: Callable[[Item], Value],
    items: Mapping[str, Item],
    executor: Engine,
    parts: Parts,
    *,
    on_lost: Callable[[Item, str], Value] | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[str, Value]:
    """As `map_items`, on an executor and parts that are open.

    Args:
        function: as of `map_items`.
        items: as of `map_items`.
        executor: who computes.
        parts: where results are.
        on_done: as of `map_items`.
        on_lost: gives the result of an item whose workers died, from it and the reason; it is not kept.
    """
    known = parts.read()
    keys = [key for key in items if key not in known]
    found = {key: known[key] for key in items if key in known}
    lost: list[Item] = []  # the one whose result comes next

    def without(item: Item, why: str) -> Value:
        assert on_lost is not None
        lost.append(item)
        return on_lost(item, why)

    tasks = (items[key] for key in keys)
    for place, value in executor.completed(function, tasks, without if on_lost is not None else None):
        found[keys[place]] = value
        if not lost:
            parts.add(keys[place], value)
        lost.clear()
        if on_done is not None:
            on_done(len(found), len(items))
    return {key: found[key] for key in items}
