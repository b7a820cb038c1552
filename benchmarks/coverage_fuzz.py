"""`python -m benchmarks.coverage_fuzz --minutes 10`: bytes bent towards code that was not reached yet (atheris).

One target per reader: the function that reads a file of that kind, without the command around it, so that hundreds of
tries fit in a second. Needs `pip install atheris`, which is no dependency. A reader may return or raise an error of the
planner that has a name; anything else, above 10 s or 1 GiB, ends its target, and libFuzzer keeps the case under
`--keep`.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
_ENDED = re.compile(r"(?:Done|stat::number_of_executed_units:) *([0-9]+)")
_COVERED = re.compile(r"cov: ([0-9]+)")


@dataclass(frozen=True)
class Reader:
    """A function that reads files.

    Attributes:
        place: `module:function`, which takes a path.
        seeds: globs below examples/.
        suffix: of the files.
        call: how it is called, where not by the path alone.
    """

    place: str
    seeds: tuple[str, ...]
    suffix: str = ".yaml"
    call: Callable[[Any, Path], object] = lambda read, path: read(path)


def _rows(read: Any, path: Path) -> object:
    return read("offers", path, gzip.compress(path.read_bytes(), compresslevel=1))


def _wishes(read: Any, path: Path) -> object:
    from planner.trainer_files.gather import Wishes

    return read([path], Wishes())


READERS = {
    "workload": Reader("planner.inputs.load:load_workload", ("bert-large.yaml", "embed-images-fleet.yaml"),
                       call=lambda read, path: read(path, cache=False)),
    "portfolio": Reader("planner.inputs.portfolio_load:load_portfolio", ("*portfolio*.yaml",)),
    "pipeline": Reader("planner.inputs.pipeline_load:load_pipeline", ("*pipeline*.yaml",)),
    "schedule": Reader("planner.inputs.schedule_load:load_schedule", ("*schedule*.yaml",)),
    "serving": Reader("planner.inputs.serving_load:load_serving", ("*serving*.yaml",)),
    "commit": Reader("planner.inputs.commit_load:load_commit", ("*commit*.yaml",)),
    "budget": Reader("planner.inputs.budget_load:load_budgets", ("budgets.yaml",)),
    "sweep": Reader("planner.inputs.sweep_load:load_sweep", ("*sweep*.yaml",)),
    "showback": Reader("planner.inputs.showback_load:load_showback", ("*showback*.yaml",)),
    "tco": Reader("planner.inputs.tco_load:load_tco", ("*tco*.yaml",)),
    "state": Reader("planner.inputs.state_load:load_state", ("spot-state.json",), ".json"),
    "plan": Reader("planner.plan.file:load_plan", ("plan.json",), ".json"),
    "daily": Reader("planner.finops.forecast.daily:load_daily", ("daily-costs.csv",), ".csv"),
    "progress": Reader("planner.tracking.progress:read_progress", ("running/*.csv", "daily-costs.csv"), ".csv"),
    "log": Reader("planner.calibration.logs:read_log", ("running/*.csv", "daily-costs.csv"), ".log"),
    "manifest": Reader("catalogs.store.read:read_manifest", ("manifest.json",), ".json"),
    "offers": Reader("catalogs.store.read:parse_file", ("daily-costs.csv",), ".csv", _rows),
    "training configuration": Reader("planner.trainer_files.answer:workload_from", ("llama-3-8b.yaml",),
                                     call=_wishes),
    "settings": Reader("planner.config:load_settings", ("settings.toml",), ".toml",
                       call=lambda read, path: read(directory=path.parent / "none", user_file=path, environ={})),
}  # fmt: skip


def seeds_of(reader: Reader, made: Path) -> list[Path]:
    """Good files of a kind: examples, and what was made for this run."""
    return [
        path for glob in reader.seeds for folder in (EXAMPLES, made) for path in sorted(folder.glob(glob))
    ]


def made_seeds(folder: Path) -> None:
    """A plan, a manifest and settings."""
    from benchmarks.fuzz import outcome

    job = str(EXAMPLES / "bert-large.yaml")
    gave, _ = outcome(
        ["optimize", job, "--as-of", "2026-11-20", "--out", str(folder / "plan.json")], latest_s=60
    )
    if gave:
        raise RuntimeError(gave)
    manifest = ROOT / "catalogs" / "data" / "snapshot" / "gcp" / "manifest.json"
    shutil.copy(manifest, folder / "manifest.json")
    (folder / "settings.toml").write_text(
        'max_results = "3"\noutput = "json"\ngap = "1%"\n', encoding="utf-8"
    )


def fuzz(name: str, arguments: list[str]) -> None:
    """Run one target in this process until libFuzzer ends it."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    reader = READERS[name]
    module, _, function = reader.place.partition(":")
    with atheris.instrument_imports(include=["planner", "catalogs", "yaml", "json", "csv"]):
        read = getattr(importlib.import_module(module), function)
    from catalogs.errors import CatalogError
    from planner.errors import PlannerError

    path = Path(tempfile.mkdtemp()) / f"case{reader.suffix}"

    def target(data: bytes) -> None:
        path.write_bytes(data)
        try:
            reader.call(read, path)
        except (PlannerError, CatalogError):
            return

    atheris.Setup([sys.argv[0], *arguments], target)
    atheris.Fuzz()


def main() -> int:
    """Run every target for its share of the time; exit code 1 where one gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", type=Path, default=Path("coverage-fuzz"))
    parser.add_argument("--run", help=argparse.SUPPRESS)
    asked, rest = parser.parse_known_args()
    if asked.run:
        fuzz(asked.run, rest)
        return 0
    names = asked.only or list(READERS)
    asked.keep.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        made_seeds(Path(folder))
        for name in names:
            corpus = Path(folder) / name
            corpus.mkdir()
            for path in seeds_of(READERS[name], Path(folder)):
                shutil.copy(path, corpus / path.name)
            seconds = max(1, round(60 * asked.minutes / len(names)))
            command = [
                *(sys.executable, "-m", "benchmarks.coverage_fuzz", "--run", name, str(corpus)),
                *(f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", f"-seed={asked.seed}"),
                *("-max_len=65536", "-print_final_stats=1", f"-artifact_prefix={asked.keep / name}-"),
            ]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=dict(os.environ)
            )
            ran, covered = _ENDED.findall(done.stderr), _COVERED.findall(done.stderr)
            said = "nothing gave way" if done.returncode == 0 else _first_words(done.stdout + done.stderr)
            wrong += done.returncode != 0
            print(
                f"{name}: {max(map(int, ran), default=0):,} tries, {covered[-1] if covered else 0} edges: {said}",
                flush=True,
            )
    return 1 if wrong else 0


def _first_words(text: str) -> str:
    """The error of a target in one line."""
    lines = [
        line
        for line in text.splitlines()
        if re.match(r"[A-Za-z_.]*(Error|Exception)\b|==.*ERROR|ALARM", line)
    ]
    return lines[0][:200] if lines else (text.strip().splitlines() or ["no word"])[-1][:200]


if __name__ == "__main__":
    sys.exit(main())
