"""`python -m benchmarks.load`: what large questions cost, in sizes, and how the cost grows.

Rows of a bill, jobs of a portfolio, offers of a catalog, launches of a simulation: each size in a process of its own,
with its CPU seconds and the most resident memory that it took; and the exponents of growth between the two largest
sizes (log of the ratio of costs over log of the ratio of sizes). `--to N` says what the exponents make of a size that
was not run. Bills, jobs and prices are generated and go to a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from unittest import mock

from benchmarks.file_faults import DAY, ROOT
from benchmarks.startup import run

ENDED = (0, 3, 5)
_HEAD = "version: 1\nkind: portfolio\nname: load\nstart: 2026-12-01\njobs_csv: jobs.csv\ncandidates_csv: ways.csv\n"


@dataclass(frozen=True)
class Kind:
    """A question that comes in sizes.

    Attributes:
        unit: what is counted.
        sizes: from small to large; growth is told of the last two.
        asked: writes what a size needs into a folder, and returns the arguments of `planner`.
    """

    unit: str
    sizes: tuple[int, ...]
    asked: Callable[[int, Path], tuple[str, ...]]


def bill(rows: int, folder: Path) -> tuple[str, ...]:
    """A generated bill of two months, reviewed without a forecast."""
    from benchmarks.finops import Shape, generate

    with contextlib.redirect_stdout(io.StringIO()):  # it says how far it is
        generate(folder, rows, Shape())
    return ("review", "--focus", str(folder), "--no-forecast", "-o", "json")


def portfolio(jobs: int, folder: Path) -> tuple[str, ...]:
    """Jobs sized elsewhere, three ways each, under a quota that holds a third of them at once."""
    draw = random.Random(jobs)
    ways = ["job,provider,region,instance_type,purchase_option,nodes,hours,cost_usd,family,quota_units"]
    for number in range(jobs):
        hours, nodes = draw.uniform(1, 90), draw.choice((1, 2, 4))
        for region, price in (("us-east-1", 32.77), ("us-west-2", 34.1), ("eu-west-1", 35.4)):
            cost = hours * nodes * price
            asked = f"p4d.24xlarge,on_demand,{nodes},{hours:.2f},{cost:.2f},L-417A185B,{96 * nodes}"
            ways.append(f"job-{number},aws,{region},{asked}")
    limit = {
        "provider": "aws",
        "region": "us-east-1",
        "quota": "L-417A185B",
        "unit": "vCPU",
        "limit": 96 * jobs,
    }
    quota = f"quota: {json.dumps([limit])}\n"
    (folder / "ways.csv").write_text("\n".join(ways) + "\n", encoding="utf-8")
    (folder / "jobs.csv").write_text(
        "\n".join(["name", *(f"job-{n}" for n in range(jobs))]) + "\n", encoding="utf-8"
    )
    (folder / "load.yaml").write_text(_HEAD + quota, encoding="utf-8")
    return ("portfolio", str(folder / "load.yaml"), *DAY, "-o", "json")


def catalog(offers: int, folder: Path) -> tuple[str, ...]:
    """One job under generated offers of up to 1,300 types beside the bundled ones, the first time they are read."""
    from benchmarks.catalog_store import PROVIDER, generate
    from catalogs.store.history import save_snapshot

    types, rows = generate(offers)
    with mock.patch.dict(os.environ, PLANNER_DATA_DIR=str(folder.parent / "data")):
        save_snapshot(PROVIDER, types, rows, as_of=date(2026, 11, 1))
    return ("optimize", f"{ROOT}/examples/bert-large.yaml", "--as-of", "2026-11-20", "-o", "json")


def simulation(launches: int, _: Path) -> tuple[str, ...]:
    """Random launches on two generated traces, without the offline optimum."""
    job = ("--work-hours", "40h", "--deadline", "3d", "--instance-type", "p3.2xlarge")
    return ("simulate", *job, "--generate", "2", "--no-optimum", "--starts", str(launches), "-o", "json")


KINDS = {
    "bill": Kind("rows", (100_000, 300_000, 1_000_000), bill),
    "portfolio": Kind("jobs", (2_000, 10_000, 50_000), portfolio),
    "catalog": Kind("offers", (25_000, 80_000, 250_000), catalog),
    "simulation": Kind("launches", (100, 1_000, 10_000), simulation),
}


def measured(kind: Kind, size: int) -> tuple[float, float]:
    """CPU seconds and GB, of 1e9 bytes, of the process that answers a size.

    Raises:
        RuntimeError: it ends otherwise than it may.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {"PLANNER_DATA_DIR": f"{name}/data", "PLANNER_CACHE_DIR": f"{name}/cache", "TMPDIR": name}
        inputs = folder / "inputs"
        inputs.mkdir()
        # Elsewhere, as Linux counts what a parent took before `exec` as its child's.
        with multiprocessing.Pool(1) as elsewhere:
            words = elsewhere.apply(kind.asked, (size, inputs))
        cost, _ = run(["-m", "planner", *words], {**os.environ, **places}, ENDED)
    return cost.cpu_ms / 1e3, cost.rss_mib * 2**20 / 1e9


def exponent(sizes: tuple[int, ...], costs: list[float]) -> float:
    """Of the growth from the size before the last to the last."""
    return math.log(costs[-1] / costs[-2]) / math.log(sizes[-1] / sizes[-2])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=list(KINDS))
    parser.add_argument("--sizes", type=int, nargs="+", help="in place of a kind's own")
    parser.add_argument("--to", type=int, help="extrapolate to this size, by the exponents")
    asked = parser.parse_args()
    for name in asked.only or KINDS:
        kind = KINDS[name]
        sizes = tuple(asked.sizes or kind.sizes)
        found = []
        for size in sizes:
            found.append(measured(kind, size))
            print(f"| {name} | {size:,} {kind.unit} | {found[-1][0]:.1f} | {found[-1][1]:.2f} |", flush=True)
        if len(sizes) > 1:
            cpu, gb = (exponent(sizes, [row[at] for row in found]) for at in (0, 1))
            print(f"| {name} | growth | n^{cpu:.2f} | n^{gb:.2f} |", flush=True)
            if asked.to:
                ratio = asked.to / sizes[-1]
                further = found[-1][0] * ratio**cpu, found[-1][1] * ratio**gb
                print(
                    f"| {name} | {asked.to:,} {kind.unit}, extrapolated | {further[0]:,.0f} | {further[1]:.2f} |"
                )


if __name__ == "__main__":
    main()
