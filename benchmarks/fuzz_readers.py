"""What reads files of users and of the program itself: one registry for all fuzzers, and what code each kind reaches.

`benchmarks.fuzz` breaks what commands are asked, `benchmarks.fuzz_parts` the files beside it, and
`benchmarks.coverage_fuzz` all of them by the code that they reach. `READS` names, for each module that reads bytes, the
kinds that reach it; `tests/architecture/test_fuzz_readers.py` compares it with the source and with what whole files
reach.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

from benchmarks.fuzz import DAY, EXAMPLES, FIXTURES, ROOT, SETTINGS, SMALLER, ending_of, example_with, outcome
from benchmarks.fuzz_parts import Part, parts, text_seed

# Modules that read bytes from outside the package, and the kinds of file that reach them. A kind is one of `every`,
# or one of `benchmarks.fuzz`, which goes through a command.
READS: Mapping[str, tuple[str, ...]] = {
    "catalogs.cache.copies": ("compiled workload",),
    "catalogs.offers.static_file": ("machines", "quotations"),
    "catalogs.providers.etags": ("kept list",),
    "catalogs.providers.quotas": ("kept quotas",),
    "catalogs.store.cache": ("compiled prices",),
    "catalogs.store.files": ("pointer",),
    "catalogs.store.read": ("manifest", "snapshot"),
    "catalogs.store.statement": ("signed statement", "public key", "private key"),
    "planner.advice.recording": ("record of a loop",),
    "planner.calibration.logs": ("log",),
    "planner.calibration.logs.nsys": ("log",),
    "planner.calibration.logs.tensorboard": ("log",),
    "planner.calibration.store": ("calibration",),
    "planner.commitments.history": ("demand",),
    "planner.commitments.scenarios": ("scenarios",),
    "planner.config": ("settings",),
    "planner.engines.resume": ("results of a sweep",),
    "planner.finops.cube": ("manifest of a cube",),
    "planner.finops.forecast.daily": ("daily",),
    "planner.finops.forecast.plans": ("planned cost",),
    "planner.finops.forecast.score": ("saved forecast",),
    "planner.finops.ledger.book": ("ledger",),
    "planner.finops.read.files": ("bill", "bill in another format"),
    "planner.finops.read.mapping": ("map file",),
    "planner.finops.read.rates": ("rates",),
    "planner.finops.review.files": ("forecast of a review",),
    "planner.finops.usage.read": ("usage",),
    "planner.finops.utilisation": ("utilisation",),
    "planner.inputs.documents": (
        "budget",
        "commit",
        "pipeline",
        "schedule",
        "serving",
        "showback",
        "sweep",
        "tco",
    ),
    "planner.inputs.fio": ("fio",),
    "planner.inputs.load": ("workload", "waiting records"),
    "planner.inputs.portfolio_load": ("portfolio", "jobs of a portfolio"),
    "planner.inputs.schedule_load": ("forecast of a schedule",),
    "planner.inputs.serving_load": ("speeds",),
    "planner.inputs.state_load": ("state",),
    "planner.judge.commits.demand": ("verified demand",),
    "planner.judge.document": ("certificate",),
    "planner.judge.portfolio_sized": ("verified candidates",),
    "planner.plan.file": ("plan",),
    "planner.portfolios.sized_jobs": ("verified candidates",),
    "planner.spot.hazards_evidence": ("preemption log",),
    "planner.spot.hints": ("spot prices",),
    "planner.spot.traces.own": ("traces",),
    "planner.spot.traces.public": ("traces",),
    "planner.spot.traces.registry": ("traces",),
    "planner.spot.traces.run_length": ("traces",),
    "planner.tracking.progress": ("progress",),
    "planner.trainer_files.files": ("training configuration", "script in Python", "notebook"),
}
# Modules that read bytes and take nothing from them: hashes, comparisons, the package's own data, its own output.
ONLY_BYTES = {
    "catalogs.store.load": "hashes data of the package",
    "planner.advice.hazards": "hashes records that planner.spot reads",
    "planner.advice.kept": "hashes data of the package",
    "planner.commitments.advise": "hashes files that planner.commitments.history and scenarios read",
    "planner.export.files": "compares a file with what would be written",
    "planner.files.limited": "the reader that the others call",
    "planner.inputs.compiled": "hashes data of the package; copies go through catalogs.cache.copies",
    "planner.judge.commits.check": "hashes files that planner.judge.commits.demand reads",
    "planner.performance.kept": "hashes data of the package",
    "planner.tracking.replan": "hashes a workload that planner.inputs.load reads",
    "planner.workloads.kept": "an answer kept with a sum over its bytes; where anything is wrong it is not used",
    "planner.workloads.sweeps.cells": "hashes files that planning reads",
    "planner.workloads.sweeps.table": "returns what it has just written",
    "planner.workloads.validate": "hands the text to planner.inputs.load",
}


def every(folder: Path) -> dict[str, Part]:
    """Every kind of file with the function that reads it, without the command around it.

    Args:
        folder: where answers of the program lie, which are made unless they are there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {name: part for group in _GROUPS for name, part in group(folder).items()}


def _examples(*globs: str) -> tuple[tuple[str, bytes], ...]:
    found = [path for glob in globs for path in sorted(EXAMPLES.glob(glob))]
    return tuple(("".join(path.suffixes[-1:]), path.read_bytes()) for path in found)


def _documents(_: Path) -> dict[str, Part]:
    from planner.inputs.budget_load import load_budgets
    from planner.inputs.commit_load import load_commit
    from planner.inputs.load import load_workload
    from planner.inputs.pipeline_load import load_pipeline
    from planner.inputs.portfolio_load import load_portfolio
    from planner.inputs.schedule_load import load_schedule
    from planner.inputs.serving_load import load_serving
    from planner.inputs.showback_load import load_showback
    from planner.inputs.state_load import load_state
    from planner.inputs.sweep_load import load_sweep
    from planner.inputs.tco_load import load_tco

    beside = {path.name: path.read_bytes() for glob in ("*.yaml", "*.csv") for path in EXAMPLES.glob(glob)}
    return {
        "workload": Part(
            _examples("bert-large.yaml", "embed-images-fleet.yaml"),
            lambda path: load_workload(path, cache=False),
        ),
        "portfolio": Part(_examples("*portfolio*.yaml"), load_portfolio, beside=beside),
        "pipeline": Part(_examples("*pipeline*.yaml"), load_pipeline, beside=beside),
        "schedule": Part(_examples("*schedule*.yaml"), load_schedule, beside=beside),
        "serving": Part(_examples("*serving*.yaml"), load_serving),
        "commit": Part(_examples("*commit*.yaml"), load_commit),
        "budget": Part(_examples("budgets.yaml"), load_budgets),
        "sweep": Part(_examples("*sweep*.yaml"), load_sweep, beside=beside),
        "showback": Part(_examples("*showback*.yaml"), load_showback),
        "tco": Part(_examples("*tco*.yaml"), load_tco),
        "state": Part(_examples("spot-state.json"), load_state),
        "machines": Part(_examples("onprem-machines.yaml"), _machines),
        "settings": Part((text_seed(".toml", SETTINGS),), _settings),
        "training configuration": _trainers(),
    }


def _machines(path: Path) -> object:
    from catalogs.offers.static import load_static

    return load_static(path)


def _settings(path: Path) -> object:
    from planner.config import load_settings

    return load_settings(directory=path.parent / "none", user_file=path, environ={})


def _trainers() -> Part:
    from planner.errors import InputError
    from planner.trainer_files.answer import workload_from
    from planner.trainer_files.gather import Wishes
    from tests.planner.trainer_files.test_formats import FIXTURES as TRAINERS

    seeds = tuple(text_seed(ending_of(text), text) for text in TRAINERS.values())

    def read(path: Path) -> object:
        try:
            return workload_from([path], Wishes())
        except InputError:  # many state no model
            return workload_from([path], Wishes(model="llama-3.1-8b"))

    return Part(seeds, read)


def _answers(folder: Path) -> dict[str, Part]:
    """Answers of the program that it reads again, and records of runs."""
    from planner.calibration.logs import read_log
    from planner.finops.forecast.daily import load_daily
    from planner.finops.forecast.plans import load_plans
    from planner.finops.review.files import load_forecasts
    from planner.judge.document import read_answer
    from planner.plan.certificates import check_certificate, is_certificate
    from planner.plan.file import load_plan
    from planner.tracking.progress import read_progress

    def proven(path: Path) -> object:
        saved = read_answer(path)
        return check_certificate(saved) if is_certificate(saved) else None  # as `planner verify` asks

    plan, proof = folder / "plan.json", folder / "proof.json"
    _asked(plan, "optimize", str(EXAMPLES / "bert-large.yaml"), *DAY, "--certificate", str(proof))
    forecast = {"last_day": "2026-10-10", "scopes": [{"scope": "all", "periods": []}]}
    days = (EXAMPLES / "daily-costs.csv").read_bytes().splitlines(keepends=True)
    logs = tuple(
        (path.suffix, path.read_bytes()[: 1 << 14])
        for kind in ("calibration", "tracking")
        for path in sorted((FIXTURES / kind).iterdir())
    )
    steps = "".join(f"{step},2026-11-20T{step // 60:02d}:{step % 60:02d}Z,2\n" for step in range(0, 240, 10))
    tracked = (FIXTURES / "tracking" / "cpu-bound.csv").read_bytes()
    return {
        "plan": Part(((".json", plan.read_bytes()),), load_plan),
        "planned cost": Part(((".json", plan.read_bytes()),), lambda path: load_plans([str(path)])),
        "certificate": Part(((".json", proof.read_bytes()),), proven),
        "forecast of a review": Part(
            ((".json", json.dumps(forecast).encode()),), lambda path: load_forecasts([path])
        ),
        "daily": Part(((".csv", b"".join(days[:60])),), load_daily),
        "log": Part(logs, read_log),
        "progress": Part((text_seed(".csv", f"step,time,nodes\n{steps}"), (".csv", tracked)), read_progress),
    }


def _asked(out: Path, *words: str) -> None:
    if out.exists():
        return
    gave, _ = outcome((*words, "--out", str(out)), latest_s=60)
    if gave:
        raise RuntimeError(f"{words[0]}: {gave}")


def _kept(folder: Path) -> dict[str, Part]:
    """What the program keeps for itself: copies, lists, quotas, pointers, snapshots, the record of a loop."""
    from catalogs.providers.etags import EtagStore
    from catalogs.store.files import POINTER, Pointer, read_pointer, write_pointer
    from catalogs.store.read import parse_file, read_manifest
    from planner.advice.recording import append_rows
    from planner.spot.traces.own import COLUMNS

    kept = EtagStore(folder / "lists", "https://example.org/list", None)
    kept.save('"tag"', b"a,b\n1,2\n")
    write_pointer(folder, Pointer("2026-11-20-0123456789ab", "2026-11-20"))
    row = dict.fromkeys(COLUMNS, "")
    seen = {"time": "2026-11-20T06:00:00+00:00", "zone": "us-east-1a", "gang": "2", "available": "2"}
    snapshot = ROOT / "catalogs" / "data" / "snapshot" / "gcp"
    offers = gzip.decompress((snapshot / "offers.csv.gz").read_bytes()).splitlines(keepends=True)
    loop = f"{','.join(COLUMNS)}\n{','.join({**row, **seen}.values())}\n"
    return {
        "kept list": Part(
            ((".etag", kept.path.read_bytes()),),
            lambda path: EtagStore(path.parent, "https://example.org/list", None).load(),
            name=kept.path.name,
        ),
        "kept quotas": _quotas(),
        "pointer": Part(
            ((".json", (folder / POINTER).read_bytes()),), lambda path: read_pointer(path.parent), name=POINTER
        ),
        "manifest": Part(((".json", (snapshot / "manifest.json").read_bytes()),), read_manifest),
        "offers": Part(
            ((".csv", b"".join(offers[:20])),),
            lambda path: parse_file("offers", path, gzip.compress(path.read_bytes(), compresslevel=1)),
        ),
        "record of a loop": Part(
            (text_seed(".csv", loop),), lambda path: append_rows(path, [{**row, **seen, "time": "2026-11-20T07:00"}])
        ),
        "compiled workload": _compiled(folder),
        "compiled prices": _prices(folder),
    }  # fmt: skip


def _quotas() -> Part:
    from catalogs.providers.quotas import fetch_live_quotas, kept_file

    quota = {"provider": "aws", "region": "us-east-1", "quota": "p4d", "code": "L-1", "unit": "vCPU", "limit": 96.0,
             "as_of": "2026-11-20T00:00:00+00:00"}  # fmt: skip
    saved = json.dumps({"saved_at_s": 1000.0, "quotas": [quota]}).encode()

    def read(path: Path) -> object:
        return fetch_live_quotas((), (), cache_dir=path.parent, max_age_s=60.0, now_s=lambda: 1001.0)

    return Part(((".json", saved),), read, name=kept_file((), (), Path()).name)


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"PLANNER_CACHE_DIR": str(folder)}):
        yield


def _compiled(folder: Path) -> Part:
    from planner.inputs.compiled import copy_key, load_copy, save_copy
    from planner.inputs.load import load_workload

    example = EXAMPLES / "bert-large.yaml"
    key = copy_key(example.read_bytes())
    with _cache_in(folder / "cache"):
        save_copy(key, load_workload(example, cache=False).workload)
    copy = next((folder / "cache").rglob("workload-1-*.json"))

    def read(path: Path) -> object:
        with _cache_in(path.parent):
            return load_copy(key)

    return Part(((".json", copy.read_bytes()),), read, name=copy.name)


def _prices(folder: Path) -> Part:
    from catalogs.store.cache import load_compiled, save_compiled
    from catalogs.tables.table import Table

    table = Table({"provider": ["aws", "gcp"], "region": ["us-east-1", "us-central1"]}, length=2)
    with _cache_in(folder / "prices"):
        save_compiled("0" * 64, {"offers": table})
    copy = next((folder / "prices").glob("catalog-*.bin"))

    def read(path: Path) -> object:
        with _cache_in(path.parent):
            return load_compiled("0" * 64, ["offers"])

    return Part(((".bin", copy.read_bytes()),), read, name=copy.name)


def _judged(folder: Path) -> dict[str, Part]:
    """Files that an answer's judge reads by code of its own, and records that no key of a workload names."""
    from planner.spot.hazards_evidence import LOG_COLUMNS, model_from_files
    from tests.planner.judge.test_questions import WAYS, WINDOWS

    jobs = folder / "jobs"
    jobs.mkdir(exist_ok=True)
    (jobs / "asked.yaml").write_text(WINDOWS.replace("ways.csv", "broken.csv"), encoding="utf-8")
    (jobs / "broken.csv").write_text(WAYS, encoding="utf-8")
    _asked(folder / "jobs.json", "portfolio", str(jobs / "asked.yaml"), "-o", "json")
    pools = folder / "pools"
    pools.mkdir(exist_ok=True)
    days = (EXAMPLES / "commit-usage.csv").read_text(encoding="utf-8").splitlines(keepends=True)[: 1 + 3 * 48]
    (pools / "asked.yaml").write_text(example_with("commit", SMALLER["commit"]), encoding="utf-8")
    (pools / "commit-usage.csv").write_text("".join(days), encoding="utf-8")
    asked = str(pools / "asked.yaml")
    _asked(folder / "pools.json", "commit", asked, *DAY, "--no-regret", "-o", "json")
    ended = f"{','.join(LOG_COLUMNS)},provider,region,instance_type,gang\n" + "".join(
        f"2026-10-{day:02d}T00:00Z,2026-10-{day:02d}T09:00Z,{why},us-east-1a,aws,us-east-1,p4d.24xlarge,2\n"
        for day, why in ((1, "preempted"), (2, "finished"), (3, "reclaimed"))
    )
    return {
        "verified candidates": Part(
            (text_seed(".csv", WAYS),), _verified(folder / "jobs.json"),
            beside={"asked.yaml": (jobs / "asked.yaml").read_bytes()},
        ),
        "verified demand": Part(
            (text_seed(".csv", "".join(days)),), _verified(folder / "pools.json"), name="commit-usage.csv",
            beside={"asked.yaml": (pools / "asked.yaml").read_bytes()},
        ),
        "preemption log": Part((text_seed(".csv", ended),), lambda path: model_from_files([path])),
    }  # fmt: skip


def _verified(answer: Path) -> Callable[[Path], object]:
    """`planner verify` of an answer whose question, `asked.yaml`, names the broken file."""
    from planner.cli import main

    def read(path: Path) -> object:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["verify", str(answer), "--workload", str(path.with_name("asked.yaml"))])
        if code not in (0, 2, 3, 5):
            raise RuntimeError(f"exit code {code}: {err.getvalue()[-200:]}")
        return code

    return read


def _bills(folder: Path) -> dict[str, Part]:
    """Bills of few rows in every format: it is the columns that are read in many ways."""
    import duckdb

    from planner.finops.read import open_bill

    rows = gzip.decompress((EXAMPLES / "focus" / "bill-2026-10.csv.gz").read_bytes()).splitlines(
        keepends=True
    )
    few = b"".join(rows[:40])
    bill, parquet, lines = (folder / f"bill{ending}" for ending in (".csv", ".parquet", ".jsonl"))
    bill.write_bytes(few)
    with duckdb.connect() as connection:  # ended before anything forks, which DuckDB at work does not survive
        for path, form in ((parquet, "parquet"), (lines, "json")):
            read = f"read_csv('{bill}', all_varchar=true)"
            connection.execute(f"COPY (FROM {read}) TO '{path}' (FORMAT {form})")

    def opened(path: Path) -> None:
        with open_bill((str(path),)):
            pass

    packed = gzip.compress(few, mtime=0)
    return {
        "bill": Part(((".csv", few), (".gz", packed)), opened),
        "bill in another format": Part(
            tuple((path.suffix, path.read_bytes()) for path in (parquet, lines)), opened
        ),
    }


def _parts(folder: Path) -> dict[str, Part]:
    return parts(Path(tempfile.mkdtemp(dir=folder)))


_GROUPS: tuple[Callable[[Path], dict[str, Part]], ...] = (
    _documents, _kept, _parts, _answers, _judged, _bills,
)  # fmt: skip
