"""Kill writers of the history at random points while readers loop; run as a process of its own.

`python -m tests.catalogs.kill_driver KILLS SEED` prints JSON: kills, reads, versions seen, faults.
`PLANNER_DATA_DIR` says where the history lies.
Every version writes the same number into each of its rows, so a mix of two versions shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from datetime import date
from pathlib import Path

from catalogs.store import files as snapshot_files
from catalogs.store.history import save_snapshot
from catalogs.store.read import history_directory
from catalogs.store.retention import prune
from catalogs.store.snapshots import source_rows, stored_source
from tests.catalogs.history_rows import machine, offer

PROVIDER = "acme"
PAUSE_S = 0.002  # of a reader: one that never rests takes a core from the writers, and sees no more versions
REGIONS = [f"region-{number}" for number in range(12)]


def save(version: int) -> None:
    price = str(version)
    types = [machine(note=price)]
    save_snapshot(PROVIDER, types, [offer(price, name) for name in REGIONS], lock_timeout_s=5)


def read() -> int:
    """Version of the snapshot in use; -1 before the first.

    Raises:
        AssertionError: when it is a mix of versions or not whole.
    """
    source = stored_source(history_directory() / PROVIDER)
    if source is None:
        return -1
    types, offers = source_rows(source)
    versions = {row["note"] for row in types} | {row["price_per_hour"] for row in offers}
    assert len(versions) == 1, versions
    assert len(offers) == len(REGIONS), len(offers)
    return int(versions.pop())


def fork(work: object, *args: object) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(*args)  # type: ignore[operator]
    finally:
        os._exit(0)


def write_forever() -> None:
    version = read()
    while True:
        version += 1
        save(version)
        if version % 7 == 0:
            prune(older_than_days=0, today=date(2030, 1, 1))


def write_and_die(step: int) -> None:
    """Save once and die just before the `step`-th change of the file system."""
    left = [step]

    def counted(name: str, module: object) -> None:
        real = getattr(module, name)

        def call(*args: object, **named: object) -> object:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        setattr(module, name, call)

    for name, module in (
        ("mkdir", Path),
        ("rename", Path),
        ("replace", Path),
        ("fsync", os),
        ("_write_synced", snapshot_files),
    ):
        counted(name, module)
    save(read() + 1)
    raise SystemExit(3)  # fewer changes than `step`


def read_forever(report: int) -> None:
    """Read until told to stop; versions must never go back."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    reads, newest, seen, faults = 0, -1, set(), []
    while not stop:
        try:
            version = read()
        except Exception as error:  # noqa: BLE001 - every failure of a reader is a finding
            faults.append(f"{type(error).__name__}: {error}")
            continue
        if version < newest:
            faults.append(f"went back from {newest} to {version}")
        newest = max(newest, version)
        seen.add(version)
        reads += 1
        time.sleep(PAUSE_S)
    os.write(report, json.dumps({"reads": reads, "versions": len(seen), "faults": faults[:5]}).encode())
    os.close(report)


def kill_by_steps() -> int:
    """Kill a writer before each change of the file system in turn; return how many there are."""
    step = 0
    while True:
        step += 1
        child = fork(write_and_die, step)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return step - 1


def kill_at_random(kills: int, seed: int) -> int:
    """Kill `kills` writers at random moments; return versions written. A lock that one left fails the next save."""
    draw = random.Random(seed)
    first = read()
    start = time.monotonic()
    save(first + 1)
    span = max(
        0.02, 2 * (time.monotonic() - start)
    )  # half of the writers die in their first save, half in a later one
    for number in range(kills):
        child = fork(write_forever)
        time.sleep(draw.uniform(0.0, min(span, 0.2)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if number % 10 == 0:  # a busy machine may end no save before its kill
            save(read() + 1)
    return read() - first


def main(kills: int, seed: int) -> None:
    save(0)
    incoming, outgoing = os.pipe()
    reader = fork(read_forever, outgoing)
    os.close(outgoing)
    try:
        steps = kill_by_steps()
        written = kill_at_random(kills, seed)
        final = read() + 1
        save(final)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(reader, signal.SIGTERM)
    with os.fdopen(incoming, "rb") as pipe:
        found = json.loads(pipe.read())
    os.waitpid(reader, 0)
    left = [path.name for path in (history_directory() / PROVIDER).iterdir() if path.name.startswith(".")]
    last = read() == final
    print(
        json.dumps(
            {
                **found,
                "kills": kills,
                "steps": steps,
                "written": written,
                "left": left,
                "last": last,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
