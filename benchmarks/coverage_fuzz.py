"""`python -m benchmarks.coverage_fuzz --runs 3000`: bytes bent towards code that was not reached yet (atheris).

One target per kind of file of `benchmarks.fuzz_readers`: the function that reads it, without the command around it, so
that hundreds of tries fit in a second. Needs `pip install atheris`, which is no dependency. A reader may return or
raise an error of the planner that has a name; anything else, above 1 GiB or a minute by the clock, ends its target.
`--record` adds
tries, edges and minimal cases to `benchmarks/data/coverage_fuzz.json`.

Nothing of the planner may be imported before its modules are instrumented, and most are imported where they are first
needed: so everything is imported inside, whole files are read once, and each target is a fork of that process. Cases
lie in memory where the machine has such a folder: a disk takes longer to write one than a reader to read it.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.fuzz_parts import Part

RECORD = Path(__file__).parent / "data" / "coverage_fuzz.json"
MEMORY = Path("/dev/shm")  # noqa: S108 - of Linux; elsewhere the folder of temporary files
USUAL_TRIES = 3_000
MORE_TRIES = {"workload": 20_000}
_ENDED = re.compile(r"(?:Done|stat::number_of_executed_units:) *([0-9]+)")
_COVERED = re.compile(r"cov: ([0-9]+)")
_SLOWEST = re.compile(r"stat::slowest_unit_time_sec: *([0-9]+)")
_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception)\b|==.*ERROR|ALARM")


def instrumented(folder: Path, only: list[str]) -> dict[str, Part]:
    """Kinds of file, after every module that reads whole ones was imported with its branches counted."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    with atheris.instrument_imports(include=["planner", "catalogs", "yaml", "json", "csv"]):
        from benchmarks.fuzz_parts import put
        from benchmarks.fuzz_readers import every

        known = every(folder / "made")
        if unknown := set(only) - set(known):
            raise SystemExit(f"--only {', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        chosen = {name: part for name, part in known.items() if not only or name in only}
        for part in chosen.values():
            for suffix, data in part.seeds:
                whole = Path(tempfile.mkdtemp(dir=folder))
                part.read(put(part, whole, suffix, data))
    return chosen


def target_of(part: Part, suffix: str, folder: Path) -> Callable[[bytes], None]:
    """Write the bytes as a file of the kind and read it; errors that have a name are as they should be."""
    from benchmarks.fuzz_parts import put
    from catalogs.errors import CatalogError
    from planner.errors import PlannerError

    def target(data: bytes) -> None:
        try:
            part.read(put(part, folder, suffix, data))
        except (PlannerError, CatalogError):
            return

    return target


def fuzz(part: Part, suffix: str, folder: Path, runs: int, asked: argparse.Namespace) -> None:
    """In a fork: run a target until libFuzzer ends the process."""
    import atheris

    for number in (
        signal.SIGALRM,
        signal.SIGPROF,
    ):  # of `benchmarks.fuzz`; libFuzzer leaves an alarm that is taken
        signal.signal(number, signal.SIG_DFL)
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, (ending, data) in enumerate(part.seeds):
        if ending == suffix:
            (corpus / str(number)).write_bytes(data)
    (folder / "cases").mkdir()
    atheris.Setup(
        [sys.argv[0], str(corpus), f"-runs={runs}", f"-max_total_time={round(60 * asked.minutes)}", "-timeout=60",
         "-rss_limit_mb=1024", f"-seed={asked.seed}", "-max_len=65536", "-print_final_stats=1",
         f"-artifact_prefix={folder}/cases/"],
        target_of(part, suffix, folder),
    )  # fmt: skip
    atheris.Fuzz()


def tried(part: Part, suffix: str, runs: int, above: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Run a target; tries, edges, CPU seconds, and what gave way with its case."""
    folder = Path(tempfile.mkdtemp(dir=above))
    child = os.fork()
    if not child:
        try:
            fuzz(part, suffix, folder, runs, asked)  # libFuzzer ends the process itself
        except BaseException:  # noqa: BLE001 - a fork never goes on as its parent
            traceback.print_exc()
        os._exit(70)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    said = (folder / "log").read_text(encoding="utf-8", errors="replace")
    cases = sorted((folder / "cases").iterdir())
    return {
        "tries": max(map(int, _ENDED.findall(said)), default=0),
        "edges": max(map(int, _COVERED.findall(said)), default=0),
        "slowest_s": max(map(int, _SLOWEST.findall(said)), default=0),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "failed": "" if code == 0 else _first_words(said),
        "case": base64.b64encode(cases[0].read_bytes()).decode() if code and cases else "",
    }


def _first_words(text: str) -> str:
    """The error of a target in one line."""
    lines = [line.strip() for line in text.splitlines() if _ERROR.match(line.strip())]
    return lines[0][:200] if lines else (text.strip().splitlines() or ["no word"])[-1][:200]


def record_run(target: str, seed: int, found: dict[str, Any]) -> None:
    """Add a run to the record; the same seed stands in it once."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record.setdefault(target, {})[str(seed)] = {key: value for key, value in found.items() if value != ""}
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Run every target; exit code 1 where one gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=USUAL_TRIES, help="tries of each kind; workloads get more"
    )
    parser.add_argument("--minutes", type=float, default=9.0, help="at most, for one target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="KIND")
    parser.add_argument("--record", action="store_true", help=f"add to {RECORD.name}")
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        for kind, part in instrumented(Path(name), asked.only).items():
            endings = dict(part.seeds)
            runs = asked.runs * MORE_TRIES.get(kind, USUAL_TRIES) // USUAL_TRIES // len(endings) + 1
            for suffix in endings:
                found = tried(part, suffix, runs, Path(name), asked)
                wrong += bool(found["failed"])
                print(
                    f"{kind} {suffix}: {found['tries']:,} tries, {found['edges']:,} edges, {found['cpu_s']:g} CPU s: "
                    f"{found['failed'] or 'nothing gave way'}",
                    flush=True,
                )
                if asked.record:
                    record_run(f"{kind} {suffix}", asked.seed, found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
