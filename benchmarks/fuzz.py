"""`python -m benchmarks.fuzz --n 300`: files of every kind, broken at random, through the commands that read them.

Each must end in an answer or in a named error with its exit code: no traceback, nothing above 10 s of processor time or
1 GiB. What gives
way is printed with its seed and kept under `--keep DIR`, so that it can become a test. `--minutes N` goes on so long;
`--only KIND` takes one reader.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gzip
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from benchmarks.malformed import MISSING, ODD, Steps, broken, step_places

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
FIXTURES = ROOT / "tests" / "fixtures"
SNAPSHOT = ROOT / "catalogs" / "data" / "snapshot" / "gcp"
DAY = ("--as-of", "2026-11-20")
TINY = """version: 1
name: tiny
model: {preset: bert-large}
training: {samples: 1e6, global_batch: 4096, sequence_length: 512}
"""
SWEEP = """version: 1
kind: sweep
name: small
workloads: [tiny.yaml]
days: [2026-11-20]
scenarios:
  tight: [constraints.deadline=2d]
"""
SETTINGS = """max_results = "3"
output = "json"
gap = "1%"
time_limit = "20s"
max_memory = "3GiB"
"""
LATEST_S = 10
MOST_KIB = 1 << 20
TOKENS = (
    b"\0",
    b"\xff\xfe",
    b"{",
    b"]",
    b": ",
    b"- ",
    b"&a *a",
    b"!!python/object:os.system",
    b"1e999",
    b"-1",
    b"NaN",
    b",,,",
    b"\r",
    b'"',
    b"\xf0\x9f\x92\xa9",
)


@dataclass(frozen=True)
class Reader:
    """A kind of file and the commands that read it.

    Attributes:
        name: of the kind.
        seeds: good files.
        commands: arguments; `FILE` is the broken file, `BESIDE` its folder; the first is used four times of five.
        structured: whether a value of the document may be exchanged.
        beside: texts of files that lie beside the broken one, by name; one of them may be what the command reads.
        linked: whole files that lie beside it, by name.
        place: where the broken file lies, where its name matters; the command is run in its folder.
    """

    name: str
    seeds: tuple[Path, ...]
    commands: tuple[tuple[str, ...], ...]
    structured: bool = True
    beside: Mapping[str, str] = field(default_factory=dict)
    linked: Mapping[str, Path] = field(default_factory=dict)
    place: str = ""


def readers(plans: Path) -> Iterator[Reader]:
    """Every kind of file that can be made of the examples."""
    kinds: dict[str, list[Path]] = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        document = _read(path.read_text(encoding="utf-8"))
        kinds.setdefault(_kind(document), []).append(path)
    named = {
        path.name: path.read_text(encoding="utf-8")
        for pattern in ("*.yaml", "*.csv")
        for path in sorted(EXAMPLES.glob(pattern))
    }
    for kind in SMALLER:
        kinds[kind] = [plans / "beside" / f"{kind}.yaml"]
    days = "".join(named["commit-usage.csv"].splitlines(keepends=True)[: 1 + 3 * 48])  # two, of three pools
    for kind, commands in _QUESTIONS.items():
        beside = {**named, "commit-usage.csv": days} if kind == "commit" else named
        yield Reader(kind, tuple(kinds[kind]), commands, beside=beside)
    costs = plans / "daily.csv"
    budgets = ("budget", "FILE", "--daily", str(costs))
    yield Reader("budget", tuple(kinds["budget"]), (budgets,), beside=named)
    spot = str(plans / "spot.json")
    advise = ("advise", spot, "--state", "FILE", "--futures", "0")
    yield Reader("state", (EXAMPLES / "spot-state.json",), (advise,))
    yield Reader("plan", tuple(sorted(plans.glob("*.json"))), (("verify", "FILE"), ("diff", "FILE", spot)))
    answer = ("advise", spot, "--state", str(EXAMPLES / "spot-state.json"), "--futures", "0")
    yield Reader(
        "evidence",
        (plans / "beside" / "probes.csv",),
        ((*answer, "--spot-evidence", "FILE"),),
        structured=False,
    )
    yield Reader("certificate", (plans / "beside" / "certificate.json",), (("verify", "FILE"),))
    bills = (plans / "bill.csv", *sorted((EXAMPLES / "focus").glob("*.csv.gz"))[-1:])
    yield Reader("bill", bills, (("review", "--focus", "FILE", "-o", "json"),), structured=False)
    formats = tuple(sorted((plans / "beside").glob("bill.*")))
    yield Reader(
        "bill in another format", formats, (("review", "--focus", "FILE", "-o", "json"),), structured=False
    )
    shown = ("review", "--focus", str(plans / "bill.csv"), "--showback", "FILE", "-o", "json")
    yield Reader("showback", (EXAMPLES / "showback.yaml",), (shown,))
    daily = ("forecast", "--daily", "FILE", "-o", "json")
    yield Reader("daily", (plans / "daily-two.csv",), (daily,), structured=False)
    swept = ("sweep", "FILE", "--results", "BESIDE/results.csv", "--parts", "BESIDE/parts")
    yield Reader("sweep", (plans / "sweep.yaml",), (swept,), beside={"tiny.yaml": TINY})
    owner = {"owner.yaml": f"{TINY}prices: {{offers: [broken.yaml]}}\nconstraints: {{max_nodes: 4}}\n"}
    machines = ("optimize", "BESIDE/owner.yaml", *DAY)
    yield Reader("machines", (EXAMPLES / "onprem-machines.yaml",), (machines,), beside=owner)
    init = (("init", "--from", "FILE"),)
    trainers = sorted((plans / "beside").glob("trainer-*"))
    yield Reader("training configuration", tuple(x for x in trainers if x.suffix in (".yaml", ".json")), init)
    scripts = tuple(path for path in trainers if path.suffix in (".sh", ".toml", ".py"))
    yield Reader("training script", scripts, init, structured=False)
    calibrate = (
        "calibrate",
        str(plans / "beside" / "measured.yaml"),
        "FILE",
        "--instance-type",
        "p4d.24xlarge",
        "--dry-run",
    )
    logs = sorted(path for kind in ("calibration", "tracking") for path in (FIXTURES / kind).iterdir())
    yield Reader("log", tuple(logs), (("diagnose", "FILE"), calibrate), structured=False)
    yield Reader("measured log", tuple(logs), (calibrate,), structured=False)
    configured = (("config", "show"), ("optimize", "BESIDE/tiny.yaml", *DAY))
    settings, job = (plans / "beside" / "settings.toml",), {"tiny.yaml": TINY}
    yield Reader("settings", settings, configured, False, job, place="settings/planner.toml")
    rows = {path.name: path for path in SNAPSHOT.glob("*.csv.gz")}
    whole = ("catalog", "--catalog-dir", "BESIDE/..")
    catalog = ((*whole, "doctor"), (*whole, "list", "--max-results", "3"))
    manifest = (SNAPSHOT / "manifest.json",)
    yield Reader("snapshot", manifest, catalog, linked=rows, place="catalog/gcp/manifest.json")


# examples whose answers take long, and what makes them small: each is asked hundreds of times
SMALLER = {
    "commit": {
        "count: 40": "count: 4",
        "block_hours: 168": "block_hours: 24",
        "hours_per_year: 500": "hours_per_year: 50",
    },
    "schedule": {"work: 150": "work: 30", "deadline: 3d": "deadline: 1d"},
}
_VALIDATE = ("validate", "FILE")
_QUESTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "workload": (
        _VALIDATE,
        ("optimize", "FILE", *DAY),
        ("estimate", "FILE", "--instance-type", "p4d.24xlarge"),
    ),
    "portfolio": (_VALIDATE, ("portfolio", "FILE", "--time-limit", "0.3s", "--gap", "10%", *DAY)),
    "pipeline": (_VALIDATE, ("pipeline", "FILE", "--time-limit", "0.3s", *DAY)),
    "schedule": (("schedule", "FILE", "--time-limit", "0.3s"),),
    "serving": (("serving", "FILE", "--time-limit", "0.3s", *DAY),),
    "commit": (("commit", "FILE", "--time-limit", "0.3s", "--no-regret", *DAY),),
    "tco": (_VALIDATE, ("tco", "FILE", *DAY)),
}


def _kind(document: Any) -> str:
    if "machines" in document and "kind" not in document:
        return "machines"
    if "pools" in document and "kind" not in document:
        return "commit"
    kind = str(document.get("kind", "budget" if "budgets" in document else "workload"))
    return "workload" if kind in ("training", "fleet", "inference") else kind


def exchanged(text: str, draw: random.Random, *, is_json: bool) -> str:
    """The document with one to three values exchanged, gone or named otherwise."""
    document, where = _document(text, is_json=is_json)
    for number in range(draw.choice((1, 1, 2, 3))):
        where = where if number == 0 else step_places(document)
        if not where or not isinstance(document, dict):
            break
        with contextlib.suppress(KeyError, IndexError, TypeError):
            document = broken(document, draw.choice(where), draw.choice((*ODD, MISSING, document)))
    return json.dumps(document) if is_json else str(yaml.dump(document, Dumper=_DUMPER))


@functools.cache
def _document(text: str, *, is_json: bool) -> tuple[Any, list[Steps]]:
    """A good file and the places of its values, read once however often it is broken."""
    document = json.loads(text) if is_json else _read(text)
    return document, step_places(document)


# several times quicker, where PyYAML was built with libyaml
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read(text: str) -> Any:
    return yaml.load(text, _LOADER)  # noqa: S506 - a safe one


def scrambled(data: bytes, draw: random.Random) -> bytes:
    """The bytes with parts flipped, cut, doubled or put in."""
    made = bytearray(data)
    for _ in range(draw.choice((1, 2, 4, 8))):
        at = draw.randrange(len(made) + 1)
        upto = min(len(made), at + draw.choice((1, 1, 2, 8, 64, 4096)))
        how = draw.randrange(5)
        if how == 0 and upto > at:
            made[at] ^= 1 << draw.randrange(8)
        elif how == 1:
            del made[at:upto]
        elif how == 2:
            made[at:at] = made[at:upto] * draw.choice((1, 2, 50))
        elif how == 3:
            made[at:at] = draw.choice(TOKENS)
        else:
            del made[at:]
    return bytes(made[: 1 << 21])


class _SlowError(BaseException):
    pass


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise _SlowError


def outcome(arguments: Sequence[str], *, latest_s: int = LATEST_S) -> tuple[str, float]:
    """What gave way, empty where nothing did, and the seconds it took."""
    from planner.cli import main

    out, err = io.StringIO(), io.StringIO()
    begun = time.perf_counter()
    # By processor time, threads included: a busy machine makes nothing slow. What only waits ends by the clock.
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGALRM, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, latest_s)
    signal.alarm(12 * latest_s)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    except _SlowError:
        return f"above {latest_s} s", latest_s
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {error}", time.perf_counter() - begun
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    seconds = time.perf_counter() - begun
    if code == 1 or "internal error" in err.getvalue() or "Traceback" in err.getvalue():
        return f"exit code {code}: {err.getvalue().strip().splitlines()[-1][:200]}", seconds
    if "Warning" in err.getvalue():
        return f"warning: {next(x for x in err.getvalue().splitlines() if 'Warning' in x)[:200]}", seconds
    return "", seconds


def broken_file(reader: Reader, draw: random.Random, folder: Path) -> Path:
    """One broken file of a kind."""
    seed = draw.choice(reader.seeds)
    data = seed.read_bytes()
    if reader.structured and draw.random() < 0.7:
        data = exchanged(data.decode("utf-8"), draw, is_json=seed.suffix == ".json").encode(
            "utf-8", "surrogatepass"
        )
    else:
        data = scrambled(data, draw)
    return put_file(reader, seed, data, folder)


def put_file(reader: Reader, seed: Path, data: bytes, folder: Path) -> Path:
    """Write what became of a good file, and what lies beside it."""
    path = folder / (reader.place or f"broken{''.join(seed.suffixes)}")
    try:
        path.unlink()  # a file that is written over is put on the disk at once
    except FileNotFoundError:  # the first of a folder: what lies beside serves all its broken files
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, text in reader.beside.items():
            (path.parent / name).write_text(text, encoding="utf-8")
        for name, whole in reader.linked.items():
            if not (path.parent / name).exists():
                (path.parent / name).symlink_to(whole)
    path.write_bytes(data)
    return path


def folder_of(reader: Reader, file: Path) -> contextlib.AbstractContextManager[object]:
    """The folder that the command is run in: that of a file whose place matters, else where we are."""
    return contextlib.chdir(file.parent) if reader.place else contextlib.nullcontext()


def words_of(command: Sequence[str], file: Path) -> list[str]:
    """The command's arguments for a broken file."""
    return [word.replace("BESIDE", str(file.parent)).replace("FILE", str(file)) for word in command]


def saved_plans(folder: Path) -> None:
    """Plans to be broken, one on spot that a state can be asked about, and a bill that is not packed."""
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    head, *days = (EXAMPLES / "daily-costs.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    days = days[-4 * 60 :]  # of four scopes
    (folder / "daily.csv").write_text("".join((head, *days)), encoding="utf-8")
    long, short = ([day for day in days if day.split(",")[1] == scope] for scope in ("platform", "data"))
    (folder / "daily-two.csv").write_text("".join((head, *long, *short[-28:])), encoding="utf-8")
    bill = gzip.decompress((EXAMPLES / "focus" / "bill-2026-10.csv.gz").read_bytes())
    (folder / "bill.csv").write_bytes(b"".join(bill.splitlines(keepends=True)[:400]))
    for name, example in (
        ("spot", "bert-large"),
        ("fleet", "embed-images-fleet"),
        ("inference", "batch-inference-70b"),
    ):
        gave, _ = outcome(
            ["optimize", str(EXAMPLES / f"{example}.yaml"), *DAY, "--out", str(folder / f"{name}.json")],
            latest_s=60,
        )
        if gave:
            raise RuntimeError(f"{example}: {gave}")
    _saved_beside(folder / "beside", folder / "bill.csv")


def example_with(name: str, parts: Mapping[str, str]) -> str:
    """The text of an example with other words in place of some."""
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    for old, new in parts.items():
        if old not in text:
            raise RuntimeError(f"{name}.yaml has no {old!r}")
        text = text.replace(old, new)
    return text


def _saved_beside(folder: Path, bill: Path) -> None:
    """What is not a plan: a proof, probes of spot, a bill in other formats, configurations of trainers."""
    import duckdb

    from tests.planner.trainer_files.test_formats import FIXTURES as TRAINERS

    folder.mkdir()
    (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "measured.yaml").write_text(TINY.replace("4096", "16"), encoding="utf-8")
    for kind, parts in SMALLER.items():
        (folder / f"{kind}.yaml").write_text(example_with(kind, parts), encoding="utf-8")
    few = "providers: [gcp]\n  regions: [us-central1, us-east1]\n  exclude_purchase_options: [spot]"
    fleet = example_with("embed-images-fleet", {"providers: [gcp]": few})
    (folder / "fleet.yaml").write_text(fleet, encoding="utf-8")
    proof = ["--certificate", str(folder / "certificate.json"), "--out", str(folder / "proven")]
    gave, _ = outcome(["optimize", str(folder / "fleet.yaml"), *DAY, *proof], latest_s=60)
    if gave:
        raise RuntimeError(f"certificate: {gave}")
    probes = "".join(
        f"2026-10-{1 + n // 24:02d}T{n % 24:02d}:00Z,us-east-1a,{n % 7 > 0:d}\n" for n in range(240)
    )
    (folder / "probes.csv").write_text(f"time,zone,available\n{probes}", encoding="utf-8")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE bill AS FROM read_csv('{bill}', all_varchar=true)")
        connection.execute(f"COPY bill TO '{folder / 'bill.parquet'}' (FORMAT parquet)")
        connection.execute(f"COPY bill TO '{folder / 'bill.jsonl'}' (FORMAT json)")
    for name, text in TRAINERS.items():
        (folder / f"trainer-{name}{ending_of(text)}").write_text(text, encoding="utf-8")


def ending_of(text: str) -> str:
    """The ending of a trainer's configuration or script, by what can read it."""
    for ending, reads in ((".json", json.loads), (".yaml", yaml.safe_load), (".toml", tomllib.loads)):
        with contextlib.suppress(ValueError, yaml.YAMLError):
            if isinstance(reads(text), dict):
                return ending
    with contextlib.suppress(SyntaxError):
        ast.parse(text)
        return ".py"
    return ".sh"


def main() -> int:
    """Run; exit code 1 where something gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300, help="files of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--keep", type=Path, default=None)
    asked = parser.parse_args()
    until = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, plans = Path(name), Path(name) / "plans"
        plans.mkdir()
        saved_plans(plans)
        known = tuple(readers(plans))
        if unknown := set(asked.only) - {reader.name for reader in known}:
            parser.error(
                f"--only {', '.join(sorted(unknown))}: not one of {', '.join(r.name for r in known)}"
            )
        for reader in known:
            if asked.only and reader.name not in asked.only:
                continue
            slowest, seconds, ran = 0.0, 0.0, 0
            for number in range(asked.n):
                if until is not None and time.monotonic() > until:
                    break
                draw = random.Random(f"{reader.name}/{asked.seed}/{number}")
                file = broken_file(reader, draw, folder)
                command = reader.commands[0] if draw.random() < 0.8 else draw.choice(reader.commands)
                with folder_of(reader, file):
                    gave, took = outcome(words_of(command, file))
                slowest, seconds, ran = max(slowest, took), seconds + took, ran + 1
                if gave:
                    faults[f"{reader.name}: {command[0]}: {gave}"] += 1
                    print(f"  {reader.name} {asked.seed}/{number} {command[0]}: {gave}", flush=True)
                    if asked.keep is not None:
                        asked.keep.mkdir(parents=True, exist_ok=True)
                        (asked.keep / f"{reader.name}-{number}{file.suffix}").write_bytes(file.read_bytes())
            print(f"{reader.name}: {ran} files, {seconds:.0f} s, slowest {slowest:.1f} s", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{sum(faults.values())} gave way, {len(faults)} of them different; peak {peak >> 10} MiB")
    return 1 if faults or peak > MOST_KIB else 0


if __name__ == "__main__":
    sys.exit(main())
