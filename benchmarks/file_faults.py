"""`python -m benchmarks.file_faults`: a failing file system at every file call of the commands that write.

For each call n of a command and each fault that it can have (no space, no permission, a device that fails, an
interruption, a write of a part): the command ends with a named error or has done its work, every file is the old or the
new one, no temporary is left, and the same command then succeeds. Calls are those of Python below the run's folder;
what DuckDB writes itself is not among them.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.fuzz import SMALLER, SWEEP, TINY, example_with
from benchmarks.injection import Injection, fitting

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
DAY = ("--as-of", "2026-11-20")
Files = dict[str, bytes]
# Moments, and ages at the moment of writing ("the state is 88.5 h old"), which change every six minutes.
_MOMENT = re.compile(
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}[0-9.+:]*|(?<=the state is )[0-9.]+ (?:h|min)(?= old)"
    rb'|"(?:cpu_)?seconds": [0-9.e-]+|"warm": (?:true|false)|"worker": "[^"]*"'  # of a sweep's kept cells
    rb'|"signature": "[^"]*"'  # of a statement, which has its moment
)
JOBS = f"""\
version: 1
kind: portfolio
name: two jobs
start: 2026-12-01
jobs:
  - {{name: encoder, workload: {EXAMPLES / "bert-large.yaml"}, deadline: 2026-12-20}}
  - {{name: another, workload: {EXAMPLES / "bert-large.yaml"}, deadline: 10d}}
"""
NAMED = (0, 2, 4, 7)  # done, or an error that says which file


@dataclass(frozen=True)
class Writing:
    """A command that writes.

    Attributes:
        name: for the report.
        arguments: of `planner`; `RUN` is the folder that is watched, `IN` one with its inputs.
        before: makes what was there before: other arguments of the same command; None: nothing was.
        once: a file that, once it is the new one, makes the command refuse to be asked again.
    """

    name: str
    arguments: tuple[str, ...]
    before: tuple[str, ...] | None = None
    once: str = ""


WRITINGS = (
    Writing(
        "optimize",
        ("optimize", "EX/bert-large.yaml", *DAY, "-o", "json", "--reproducible", "--out", "RUN/plan.json",
         "--certificate", "RUN/proof.json"),
        ("optimize", "EX/bert-large.yaml", *DAY, "-o", "json", "--reproducible", "--set", "name=old", "--out",
         "RUN/plan.json", "--certificate", "RUN/proof.json"),
    ),
    Writing("export", ("export", "IN/plan.json", "--to", "slurm", "--out", "RUN/launch")),
    Writing(
        "forecast",
        ("forecast", "--daily", "EX/daily-costs.csv", "-o", "json", "--reproducible", "--out", "RUN/forecast.json"),
        ("forecast", "--daily", "EX/daily-costs.csv", "-o", "csv", "--out", "RUN/forecast.json"),
    ),
    Writing(
        "review",
        ("review", "--focus", "IN/bill.csv", "-o", "csv", "--out", "RUN/review.csv", "--map",
         "ProviderName=PublisherName", "--map-file", "RUN/mapping.csv"),
    ),
    Writing(
        "calibrate",
        ("calibrate", "EX/bert-large.yaml", "--measured", "125000 tokens/s", "--instance-type", "p4d.24xlarge",
         "--out", "RUN/calibration.json"),
    ),
    Writing(
        "init",
        ("init", "--model", "llama-3.1-8b", "--set", "training.tokens=2e9", "--force", "--out", "RUN/workload.yaml"),
    ),
    Writing(
        "advise",
        ("advise", "IN/plan.json", "--state", "IN/state.json", "--futures", "0", "--record", "RUN/seen.csv",
         "-o", "json", "--reproducible", "--out", "RUN/advice.json"),
    ),
    Writing(
        "track",
        ("track", "IN/spot.json", "--log", "IN/log.csv", "-o", "json", "--reproducible", "--out", "RUN/track.json"),
        ("track", "IN/spot.json", "--log", "IN/log.csv", "-o", "csv", "--out", "RUN/track.json"),
    ),
    Writing(
        "portfolio",
        ("portfolio", "IN/jobs.yaml", *DAY, "-o", "json", "--reproducible", "--out", "RUN/portfolio.json"),
        ("portfolio", "IN/jobs.yaml", *DAY, "-o", "csv", "--out", "RUN/portfolio.json"),
    ),
    Writing(
        "commit",
        ("commit", "IN/commit.yaml", *DAY, "--no-regret", "-o", "json", "--reproducible", "--out", "RUN/commit.json",
         "--certificate", "RUN/proof.json"),
    ),
    Writing(
        "size",
        ("size", "--data", "100GB", "--goal", "image_classification", *DAY, "-o", "json", "--reproducible", "--write",
         "RUN/workload.yaml", "--out", "RUN/size.json"),
    ),
    Writing(
        "tco",
        ("tco", "EX/tco-4xa100.yaml", *DAY, "-o", "json", "--reproducible", "--owned", "RUN/machine.yaml", "--out",
         "RUN/tco.json"),
    ),
    Writing("sweep", ("sweep", "IN/sweep.yaml", "--results", "RUN/results.csv", "--parts", "RUN/parts", "-o", "json",
                      "--reproducible", "--out", "RUN/sweep.json")),
    Writing("ledger", ("review", "--focus", "IN/bill.csv", "--no-forecast", "--ledger", "RUN/ledger.json", "--accept",
                       "move-region-fc3d6a", "-o", "csv", "--out", "RUN/review.csv"), once="ledger.json"),
    Writing("sign", ("catalog", "--catalog-dir", "IN/mirror", "sign", "--key", "IN/prices.key", "--out", "RUN/signed"),
            once="signed/catalog.signed.json"),
    Writing("cube", ("review", "--focus", "IN/bill.csv", "--no-forecast", "--cube", "RUN/cube", "-o", "csv", "--out",
                     "RUN/review.csv"), once="cube/cube-manifest.json"),
)  # fmt: skip


def refresh(version: int) -> int:
    """Store prices that tell `version`; the exit code of a failure as the command gives it."""
    from catalogs.errors import CatalogError
    from catalogs.providers.base import FetchOptions
    from catalogs.refresh.run import refresh as run_refresh
    from tests.fakes.provider import FakeProvider

    one = FakeProvider()
    one.offers = [{**row, "price_per_hour": f"{20 + version / 1000:.3f}"} for row in one.offers]
    try:
        report = run_refresh(["aws"], FetchOptions(), create=lambda _, options: one.with_options(options))
    except CatalogError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    if not report.is_good:
        print(f"error: {report.outcomes[0].failures}", file=sys.stderr)
    return 0 if report.is_good else 4


def stored_version(run: Path) -> int:
    """The version in use, -1 where there is none; a mix is an error."""
    from catalogs.store.snapshots import source_rows, stored_source

    source = stored_source(run / "data" / "catalog" / "aws")
    if source is None:
        return -1
    prices = {row["price_per_hour"] for row in source_rows(source)[1]}
    if len(prices) != 1:
        raise ValueError(f"a mix of {sorted(prices)}")
    return round((float(prices.pop()) - 20) * 1000)


def filled(arguments: tuple[str, ...], run: Path, inputs: Path) -> list[str]:
    """A command's arguments with the places that they name."""
    places = {"RUN": str(run), "IN": str(inputs), "EX": str(EXAMPLES)}
    return [
        "/".join([places.get(word.partition("/")[0], word.partition("/")[0]), *word.split("/")[1:]])
        for word in arguments
    ]


def planner(arguments: tuple[str, ...], run: Path, inputs: Path) -> tuple[int, str]:
    """Exit code and standard error of a command, in this process."""
    from planner.cli import main

    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        code = main(filled(arguments, run, inputs))
    return code, err.getvalue()


def files(run: Path) -> Files:
    """What lies in the run's folder but locks and what may be deleted any time; no moments, ages or path of the run."""
    return {
        str(path.relative_to(run)): _MOMENT.sub(b"", path.read_bytes().replace(bytes(run), b"RUN"))
        for path in sorted(run.rglob("*"))
        if path.is_file() and "cache" not in path.parts and path.suffix != ".lock" and path.name != "lock"
    }


@contextlib.contextmanager
def fresh(parent: Path, before: Callable[[Path], object]) -> Iterator[Path]:
    """A folder of one run, with the user's folders in it."""
    run = Path(tempfile.mkdtemp(dir=parent))
    names = {"PLANNER_DATA_DIR": "data", "PLANNER_CACHE_DIR": "cache", "HOME": "home", "TMPDIR": "tmp"}
    kept = {name: os.environ.get(name) for name in names}
    for name, folder in names.items():
        (run / folder).mkdir()
        os.environ[name] = str(run / folder)
    tempfile.tempdir = None
    tempfile.gettempdir()  # Python tries the folder with a file of its own, which is not what is looked for
    try:
        before(run)
        yield run
    finally:
        for name, value in kept.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
        shutil.rmtree(run, ignore_errors=True)


def faulty(
    writing: Writing, parent: Path, inputs: Path, draw: random.Random, most: int
) -> tuple[int, list[str]]:
    """Try the faults of a command (at most `most`, drawn); how many, and what gave way."""

    def before(run: Path) -> None:
        if writing.before is not None:
            planner(writing.before, run, inputs)

    with fresh(parent, before) as run:
        old = files(run)
        with Injection(run) as counted:
            code, err = planner(writing.arguments, run, inputs)
        if code not in (0, 3, 5):
            raise RuntimeError(f"{writing.name}: exit code {code}: {err}")
        good, done = files(run), code
    tried = list(fitting(counted.calls))
    tried = sorted(draw.sample(tried, most)) if len(tried) > most else tried
    amiss = []
    for at, fault, what in tried:
        with fresh(parent, before) as run:
            with Injection(run, at, fault) as injection:
                code, err = planner(writing.arguments, run, inputs)
            now = files(run)
            said = _amiss(code, err, done, old, good, now)
            if writing.once and now.get(writing.once) == good[writing.once]:
                amiss += (
                    [f"{writing.name}: {fault} at call {at} ({what}): {said}"]
                    if said and injection.hit
                    else []
                )
                continue
            again, err = planner(writing.arguments, run, inputs)
            if not said and (again != done or files(run) != good):
                said = f"the next run ends with {again}: {err[:100]}"
        if said and injection.hit:
            amiss.append(f"{writing.name}: {fault} at call {at} ({what}): {said}")
    return len(tried), amiss


def _amiss(code: int, err: str, done: int, old: Files, good: Files, now: Files) -> str:
    if "internal error" in err or "Traceback" in err or code not in {*NAMED, done}:
        return f"exit code {code}: {err.strip()[-200:]}"
    strange = [name for name in now if now[name] not in (old.get(name), good.get(name))]
    if strange:
        return f"neither old nor new, or left behind: {', '.join(strange)}"
    lost = [name for name in old if name not in now]
    if lost:
        return f"lost: {', '.join(lost)}"
    if code == done and now != good:
        return f"says that it is done, and is not: {err.strip()[-100:]}"
    if code != done and not err.strip():
        return f"exit code {code} without a word"
    return ""


def faulty_refresh(parent: Path, draw: random.Random, most: int) -> tuple[int, list[str]]:
    """The same for the store of prices, whose files carry times: versions are compared."""
    with fresh(parent, lambda _: refresh(1)) as run, Injection(run) as counted:
        refresh(2)
    tried = list(fitting(counted.calls))
    tried = sorted(draw.sample(tried, most)) if len(tried) > most else tried
    amiss = []
    for at, fault, what in tried:
        said = ""
        with (
            fresh(parent, lambda _: refresh(1)) as run,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            try:
                with Injection(run, at, fault) as injection:
                    code = refresh(2)
                version = stored_version(run)
                if version not in (1, 2) or (code == 0 and version != 2):
                    said = f"exit code {code}, version {version}"
                if refresh(3) or stored_version(run) != 3:
                    said = f"the next refresh fails: {err.getvalue()[-100:]}"
                left = [
                    path.name for path in (run / "data" / "catalog" / "aws").iterdir() if path.name[0] == "."
                ]
                said = said or (f"left behind: {left}" if left else "")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                said = f"{type(error).__name__}: {error}"
        if said and injection.hit:
            amiss.append(f"refresh: {fault} at call {at} ({what}): {said}")
    return len(tried), amiss


def inputs_in(folder: Path) -> Path:
    """What the commands read: plans on spot, the log of a run, two jobs and a short bill."""
    from tests.planner.tracking.runs import START, spot_plan

    folder.mkdir()
    plan = ("optimize", "EX/bert-large.yaml", *DAY, "-o", "json", "--out", "IN/plan.json")
    code, err = planner(plan, folder, folder)
    if code:
        raise RuntimeError(err)
    state = (EXAMPLES / "spot-state.json").read_text(encoding="utf-8")
    (folder / "state.json").write_text(state.replace('"6h"', '"2026-11-20T06:00Z"'), encoding="utf-8")
    spot_plan(140.0, "320", 0.8).save(folder / "spot.json")
    began = datetime.fromisoformat(START)
    moments = ((step, began + timedelta(hours=step / 40)) for step in range(0, 2000, 40))
    rows = ["step,time,nodes", *(f"{step},{moment.isoformat()},2" for step, moment in moments)]
    (folder / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "jobs.yaml").write_text(JOBS, encoding="utf-8")
    days = (EXAMPLES / "commit-usage.csv").read_text(encoding="utf-8").splitlines(keepends=True)[: 1 + 3 * 48]
    (folder / "commit-usage.csv").write_text("".join(days), encoding="utf-8")
    (folder / "commit.yaml").write_text(example_with("commit", SMALLER["commit"]), encoding="utf-8")
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    (folder / "tiny.yaml").write_text(TINY, encoding="utf-8")
    shutil.copytree(ROOT / "catalogs" / "data" / "snapshot" / "lambda", folder / "mirror" / "lambda")
    code, err = planner(("catalog", "keygen", "IN/prices.key"), folder, folder)
    if code:
        raise RuntimeError(err)
    bill = gzip.decompress((EXAMPLES / "focus" / "bill-2026-10.csv.gz").read_bytes())
    (folder / "bill.csv").write_bytes(b"".join(bill.splitlines(keepends=True)[:200]))
    return folder


def main() -> int:
    """Run; exit code 1 where something gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--n", type=int, default=400, help="faults of each command at most, drawn where there are more"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        inputs = inputs_in(parent / "inputs")
        kinds = {one.name: one for one in WRITINGS}
        for kind in asked.only or [*kinds, "refresh"]:
            draw, began = random.Random(f"{kind}/{asked.seed}"), time.process_time()
            if kind == "refresh":
                tried, amiss = faulty_refresh(parent, draw, asked.n)
            else:
                tried, amiss = faulty(kinds[kind], parent, inputs, draw, asked.n)
            for line in amiss:
                print(f"  {line}", flush=True)
            print(
                f"{kind}: {tried} faults, {len(amiss)} amiss, {time.process_time() - began:.0f} CPU s",
                flush=True,
            )
            wrong += len(amiss)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
