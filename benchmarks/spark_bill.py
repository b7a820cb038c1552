"""`python -m benchmarks.spark_bill`: the whole review of a generated bill on a local Spark session, in three sizes.

Each size in a process of its own: CPU seconds of Python and of Spark's JVM, and the most resident memory of each; then
the exponents of growth over all sizes, and with `--to` what a straight line through them (a start that every bill
pays, and a cost per row) and the exponent make of a size that was not run. The smallest bill is reviewed on
DuckDB too, and every figure of the two reviews must be equal to the cent. Spark needs Java 17 and the extra `spark`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.finops import MONTHS, Shape, generate
from planner.records import record

SIZES = (100_000, 1_000_000, 3_000_000)
CENT = 0.005
ROOT = Path(__file__).parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")


@record(frozen=True)
class Cost:
    """What one review took.

    Attributes:
        rows: of the bill.
        python_cpu_s, jvm_cpu_s: processor time, s; no JVM where DuckDB sums.
        python_gb, jvm_gb: most resident memory, 1e9 bytes.
    """

    rows: int
    python_cpu_s: float
    jvm_cpu_s: float
    python_gb: float
    jvm_gb: float

    @property
    def cpu_s(self) -> float:
        """Of both, s."""
        return self.python_cpu_s + self.jvm_cpu_s

    @property
    def gb(self) -> float:
        """Of both, 1e9 bytes; their peaks may lie at different moments."""
        return self.python_gb + self.jvm_gb


def _of_process(pid: int) -> tuple[float, float]:
    """Processor time, s, and most resident memory, 1e9 bytes, of a process that runs."""
    times = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return (int(times[11]) + int(times[12])) / _TICKS, peak * 1024 / 1e9


def review(folder: Path, engine: str, rows: int) -> dict[str, Any]:
    """Review the last month of the bill in this process: its cost, and the answer as JSON gives it."""
    from planner.finops.read import open_bill
    from planner.finops.review.answer import review_bill

    moment = datetime(2026, 11, 2, tzinfo=UTC)
    jvm = (0.0, 0.0)
    with open_bill([folder], engine=engine) as bill:
        answer = review_bill(bill, month=MONTHS[-1], forecast=False, created=moment)
        if engine == "spark":
            from pyspark import SparkContext

            gateway: Any = SparkContext._gateway
            jvm = _of_process(gateway.proc.pid)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = Cost(rows, used.ru_utime + used.ru_stime, jvm[0], used.ru_maxrss * 1024 / 1e9, jvm[1])
    return {"cost": asdict(cost), "sections": json.loads(json.dumps(asdict(answer)["sections"], default=str))}


def measured(folder: Path, engine: str, rows: int) -> tuple[Cost, Any]:
    """Review in a process of its own.

    Raises:
        RuntimeError: it ends with an error.
    """
    words = [sys.executable, "-m", "benchmarks.spark_bill", "--one", engine, "--folder", str(folder)]
    done = subprocess.run(
        [*words, "--sizes", str(rows)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{engine}, {rows:,} rows: {done.stderr.strip()[-500:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Cost(**found["cost"]), found["sections"]


def differences(first: Any, second: Any, where: str = "") -> list[str]:
    """Places at which two answers differ by more than half a cent, or in anything but a number."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [one for key in first for one in differences(first[key], second[key], f"{where}/{key}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True))
        return [one for at, (a, b) in pairs for one in differences(a, b, f"{where}/{at}")]
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    if numbers and math.isclose(first, second, rel_tol=1e-9, abs_tol=CENT):
        return []
    return [] if first == second else [f"{where}: {first!r} and {second!r}"]


def figures(value: Any) -> int:
    """Numbers of an answer that were compared."""
    if isinstance(value, dict | list):
        return sum(map(figures, value.values() if isinstance(value, dict) else value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def extrapolated(costs: list[Cost], rows: int) -> str:
    """What all sizes make of one that was not run: by a line and by a power of the rows, both of least squares."""
    sizes, cpu = [float(cost.rows) for cost in costs], [cost.cpu_s for cost in costs]
    each, start = statistics.linear_regression(sizes, cpu)
    logs = [math.log(size) for size in sizes]
    power, at_one = statistics.linear_regression(logs, [math.log(one) for one in cpu])
    memory, _ = statistics.linear_regression(logs, [math.log(cost.gb) for cost in costs])
    return (
        f"{len(costs)} sizes: growth n^{power:.2f} of CPU, n^{memory:.2f} of memory; {start:.0f} CPU s for any bill, "
        f"{each * 1e6:.1f} more per million rows; {rows:,} rows by extrapolation: {start + each * rows:.0f} CPU s by "
        f"the line, {math.exp(at_one) * rows**power:.0f} by the exponent"
    )


def main() -> int:
    """Measure and print; exit code 1 where Spark and DuckDB differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--to", type=int, default=100_000_000)
    parser.add_argument("--one", choices=("duckdb", "spark"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(review(asked.folder, asked.one, asked.sizes[0])))
        return 0
    costs: list[Cost] = []
    differ: list[str] = []
    for rows in sorted(asked.sizes):
        with tempfile.TemporaryDirectory() as name:
            with contextlib.redirect_stderr(io.StringIO()):  # it says how far it is
                generate(Path(name), rows, Shape())
            cost, sections = measured(Path(name), "spark", rows)
            costs.append(cost)
            print(
                f"| {rows:,} | {cost.cpu_s:.1f} | {cost.jvm_cpu_s:.1f} | {cost.jvm_gb:.2f} | {cost.python_gb:.2f} |",
                flush=True,
            )
            if len(costs) == 1:
                _, others = measured(Path(name), "duckdb", rows)
                differ = differences(others, sections)
                print(f"{rows:,} rows: {figures(sections):,} figures, {len(differ)} differ from DuckDB's")
                print("\n".join(differ[:20]), flush=True)
    if len(costs) > 1:
        print(extrapolated(costs, asked.to))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
