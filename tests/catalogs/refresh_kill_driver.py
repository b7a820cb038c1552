"""Kill whole refreshes at random points while a reader loops; run as a process of its own.

`python -m tests.catalogs.refresh_kill_driver KILLS SEED` prints JSON; `PLANNER_DATA_DIR` says where. Each refresh
fetches, checks and stores one price for all its offers, so a mix of two refreshes shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from functools import cache
from pathlib import Path

from catalogs.providers.base import FetchOptions
from catalogs.refresh.run import refresh
from catalogs.store.read import history_directory
from catalogs.store.snapshots import source_rows, stored_source
from catalogs.tables.regions import load_regions
from tests.catalogs.kill_driver import PAUSE_S, fork
from tests.fakes.provider import FakeProvider, offer_row, type_row

NAME, MACHINE = "aws", "p4d.24xlarge"


@cache
def regions() -> list[str]:
    table = load_regions()
    return [name for name in table.take(table.equals("provider", NAME))["region"] if "gov" not in name][:8]


def run_refresh(version: int) -> None:
    places = regions()
    offers = [
        offer_row(NAME, place, MACHINE, price_per_hour=f"{20 + version / 1000:.3f}") for place in places
    ]
    provider = FakeProvider(NAME, tuple(places), [type_row(NAME, MACHINE, note=str(version))], offers)
    report = refresh([NAME], FetchOptions(), create=lambda _, options: provider.with_options(options))
    assert report.is_good, report


def read(home: Path) -> int:
    """Version in use, -1 before the first; a mix or a part of one is an error."""
    source = stored_source(home / NAME)
    if source is None:
        return -1
    types, offers = source_rows(source)
    versions = {row["note"] for row in types}
    version = int(versions.pop())
    assert not versions
    assert {row["price_per_hour"] for row in offers} == {f"{20 + version / 1000:.3f}"}
    assert len(offers) == len(regions())
    return version


def refresh_forever(home: Path) -> None:
    version = read(home)
    while True:
        version += 1
        run_refresh(version)


def read_forever(home: Path, report: int) -> None:
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    reads, newest, faults = 0, -1, []
    while not stop:
        try:
            version = read(home)
        except Exception as error:  # noqa: BLE001 - every failure of a reader is a finding
            faults.append(f"{type(error).__name__}: {error}")
            continue
        if version < newest:
            faults.append(f"went back from {newest} to {version}")
        newest = max(newest, version)
        reads += 1
        time.sleep(PAUSE_S)
    os.write(report, json.dumps({"reads": reads, "faults": faults[:5]}).encode())
    os.close(report)


def main(kills: int, seed: int) -> None:
    home, draw = history_directory(), random.Random(seed)
    run_refresh(0)  # with imports: later ones are quicker
    start = time.monotonic()
    run_refresh(1)
    span = max(0.01, time.monotonic() - start)
    incoming, outgoing = os.pipe()
    reader = fork(read_forever, home, outgoing)
    os.close(outgoing)
    try:
        for number in range(kills):
            child = fork(refresh_forever, home)
            time.sleep(draw.uniform(0.0, min(2 * span, 0.15)))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            if number % 20 == 0:  # a busy machine may end no refresh before its kill
                run_refresh(read(home) + 1)
        final = read(home) + 1
        run_refresh(final)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(reader, signal.SIGTERM)
    with os.fdopen(incoming, "rb") as pipe:
        found = json.loads(pipe.read())
    os.waitpid(reader, 0)
    left = [path.name for path in (home / NAME).iterdir() if path.name.startswith(".")]
    print(
        json.dumps(
            {
                **found,
                "kills": kills,
                "written": final,
                "last": read(home) == final,
                "left": left,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
