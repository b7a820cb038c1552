"""Two refreshes at once, and a refresh while somebody reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from catalogs.errors import CatalogError
from catalogs.store.history import list_snapshots, open_snapshot, save_snapshot
from catalogs.store.load import load_catalog
from catalogs.store.retention import prune
from catalogs.store.snapshots import source_rows, stored_source
from tests.catalogs.history_rows import machine, offer, refresh
from tests.catalogs.kill_driver import PAUSE_S
from tests.conftest import ROOT, CliResult

_WRITER = """
import sys
from pathlib import Path
from catalogs.store.history import save_snapshot
from tests.catalogs.history_rows import refresh
first, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(first, first + count):
    save_snapshot("acme", *refresh("2026-11-01", {"north": str(number), "south": str(number)}))
"""


_REFRESHER = """
import sys
from pathlib import Path
from catalogs.store.history import save_snapshot
from catalogs.store.snapshots import source_rows
from catalogs.store.read import bundled_directory, read_provider
first, count = int(sys.argv[1]), int(sys.argv[2])
types, offers = source_rows(read_provider(bundled_directory() / "aws"))
offers = offers[::10]
for number in range(first, first + count):
    rows = [{**row, "as_of": "2026-11-01", "price_per_hour": f"{row['price_per_hour']}{number}"} for row in offers]
    save_snapshot("aws", types, rows)
"""


def start_writer(first: int, count: int, program: str = _WRITER) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, str(first), str(count)]
    return subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE
    )


def test_two_refreshes_at_once_and_a_reader(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", {"north": "999", "south": "999"}))
    writers = [start_writer(first, 25) for first in (1000, 2000)]
    reads, seen = 0, set()
    while any(writer.poll() is None for writer in writers):
        source = stored_source(home / "acme")
        assert source is not None
        prices = {row["price_per_hour"] for row in source_rows(source)[1]}
        assert len(prices) == 1
        seen |= prices
        reads += 1
        time.sleep(PAUSE_S)
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], errors
    found = list_snapshots("acme")
    assert sorted(one.sequence for one in found) == list(range(1, 52))
    assert [one.sequence for one in found if one.is_current] == [51]
    assert reads > len(seen) > 1
    last = open_snapshot("acme@latest").offers["price_per_hour"]
    assert set(last) < {"1024", "2024"}


def test_optimize_during_refreshes_uses_one_whole_snapshot(
    home: Path, run_cli: Callable[..., CliResult]
) -> None:
    writer = start_writer(1000, 100_000, _REFRESHER)
    used = []
    try:
        while not (home / "aws" / "current.json").exists() and writer.poll() is None:
            time.sleep(0.05)
        for _ in range(2):
            done = run_cli("optimize", str(ROOT / "examples" / "bert-large.yaml"), "-o", "json")
            assert done.code in (0, 3), done.stderr
            assert not done.stderr
            sources = {source["provider"]: source["sha256"] for source in json.loads(done.stdout)["catalog"]}
            used.append(sources["aws"])
        while len(list_snapshots("aws")) <= 2 and writer.poll() is None:
            time.sleep(0.1)
    finally:
        alive = writer.poll() is None
        writer.kill()
        errors = writer.communicate()[1]
    assert alive, errors
    found = list_snapshots("aws")
    assert set(used) <= {one.manifest.sha256 for one in found}
    assert len(found) > 2


def test_two_refreshes_of_the_same_content_add_it_once(home: Path) -> None:
    rows = refresh("2026-11-01", {"north": "5"})
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: save_snapshot("acme", *rows), range(16)))
    assert sorted(one.status for one in results).count("added") == 1
    assert len(list_snapshots("acme")) == 1


def test_providers_do_not_wait_for_each_other(home: Path) -> None:
    home.mkdir()
    with FileLock(home / ".acme.lock"):
        saved = save_snapshot("other", [machine(provider="other")], [offer(provider="other")])
        assert saved.status == "added"


def test_a_lock_that_is_held_is_a_clear_error_and_readers_do_not_wait(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-11-01", {"north": "5"}))
    with FileLock(home / ".acme.lock"):
        with pytest.raises(
            CatalogError, match=r"another planner has been writing the acme catalog .* for 0.1 s"
        ):
            save_snapshot("acme", *refresh("2026-11-02", {"north": "6"}), lock_timeout_s=0.1)
        assert len(open_snapshot("acme@latest").manifests) == 1
    assert save_snapshot("acme", *refresh("2026-11-02", {"north": "6"})).status == "added"


def test_a_lock_file_left_behind_holds_nobody(home: Path) -> None:
    home.mkdir()
    (home / ".acme.lock").write_text("4711")
    saved = save_snapshot("acme", *refresh("2026-11-01", {"north": "5"}), lock_timeout_s=1)
    assert saved.status == "added"


def test_reading_while_old_snapshots_go(home: Path) -> None:
    save_snapshot("acme", *refresh("2026-01-01", {"north": "1"}))
    done = threading.Event()
    faults: list[Exception] = []

    def write() -> None:
        try:
            for number in range(2, 40):
                save_snapshot("acme", *refresh("2026-01-01", {"north": str(number)}))
                prune(older_than_days=0)
        except Exception as error:  # noqa: BLE001 - shown by the test
            faults.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    newest = 0
    while not done.is_set():
        offers = load_catalog().offers
        (price,) = offers.take(offers.equals("provider", "acme"))["price_per_hour"]
        assert int(price) >= newest
        newest = int(price)
    writer.join()
    assert not faults
