"""What a further review of a small bill costs in a process that made some before.

`python -m benchmarks.small_bills [BILL ...]` opens and reviews each bill 12 times, by default the example bill and one
of its rows in 500, and prints CPU ms of opening and of the review, the lower quartile of the last ten, and how many
statements DuckDB is asked in one of them.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

TIMES, WARM = 12, 2
EVERY = 500
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "focus"


def thinned(target: Path) -> Path:
    """Write one in so many rows of the example bill."""
    rows: list[list[str]] = []
    for path in sorted(EXAMPLE.glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            head, *own = csv.reader(file)
        rows += own
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows[::EVERY]])
    return target


def measure(bill: Path) -> tuple[float, float]:
    """CPU ms of opening and of the review: the lower quartile, which other processes disturb least."""
    from planner.finops.read import open_bill
    from planner.finops.review.answer import review_bill

    times: list[tuple[float, float]] = []
    for _ in range(TIMES):
        begun = time.process_time()
        with open_bill([bill]) as opened:
            read = time.process_time()
            review_bill(opened)
            times.append((1000 * (read - begun), 1000 * (time.process_time() - read)))
    opening, review = (sorted(own)[(TIMES - WARM) // 4] for own in zip(*times[WARM:], strict=True))
    return opening, review


def statements(bill: Path) -> int:
    """How many statements one opening and review executes."""
    import duckdb

    from planner.finops.read import open_bill
    from planner.finops.review.answer import review_bill

    asked: list[str] = []
    connect = duckdb.connect

    class Counted:
        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self.connection, name)

        def execute(self, sql: str, *more: Any) -> Any:
            asked.append(sql)
            return self.connection.execute(sql, *more)

    with mock.patch("duckdb.connect", lambda **given: Counted(connect(**given))), open_bill([bill]) as opened:
        review_bill(opened)
    return len(asked)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        bills = [Path(name) for name in sys.argv[1:]] or [EXAMPLE, thinned(Path(folder) / "thinned.csv")]
        print("| bill | opening, CPU ms | review, CPU ms | statements |\n|---|---:|---:|---:|")
        for bill in bills:
            opening, review = measure(bill)
            print(f"| {bill.name} | {opening:.0f} | {review:.0f} | {statements(bill)} |", flush=True)


if __name__ == "__main__":
    main()
