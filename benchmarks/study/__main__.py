"""What choosing well saves on real training runs: `python -m benchmarks.study --suite DIR [--json OUT] [--doc FILE]`.

Every workload of the suite is planned on demand at its owner's provider, on demand anywhere, with commitments and with
spot, and compared with the owner's cluster, the cheapest plan on the same accelerator, SkyPilot's choice and the
published hours. A workload that cannot be read, planned or compared is counted with its reason. Without the suite: says
so and ends.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.study.engines import map_records
from benchmarks.study.record import StudyOptions
from benchmarks.study.report import write_report
from benchmarks.study.suite import find_workloads
from benchmarks.study.summary import SCHEMA_VERSION, figures_json, text_summary
from planner.engines.executors import ENGINES, make_executor
from planner.errors import PlannerError
from planner.files import write_atomically


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.study",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--suite", type=Path, required=True, help="folder with workloads/*.yaml and index.csv")
    made.add_argument("--json", type=Path, help="write records and figures here")
    made.add_argument("--doc", type=Path, help="write the report here, its charts to pictures/ beside it")
    made.add_argument("--prices", type=Path, help="folder of price histories for the regret study of --doc")
    made.add_argument(
        "--records", type=Path, help="take the records of an earlier --json instead of planning"
    )
    made.add_argument("--as-of", default="2026-11-22", type=date.fromisoformat, help="day planned on")
    made.add_argument(
        "--solver", choices=("both", "enumerate"), default="both",
        help="both: a MILP chooses among the undominated candidates too, and must agree",
    )  # fmt: skip
    made.add_argument("--engine", choices=ENGINES, default="local", help="what maps the workloads")
    made.add_argument("--workers", type=int, default=2, help="processes of the engine; 1: here")
    made.add_argument(
        "--address", default="", help="of a running Dask or Ray cluster, else one of this machine"
    )
    return made


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of an earlier run's JSON.

    Raises:
        ValueError: the file is none.
    """
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        if made["schema_version"] == SCHEMA_VERSION:
            return list(made["records"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the --json of a study: {error}") from error
    raise ValueError(f"{path}: written by another version; run the study again")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit code: 0, or 2 for wrong input."""
    chosen = parser().parse_args(arguments)
    if not chosen.suite.is_dir():
        print(f"skipped: {chosen.suite} is not a folder; name one with workloads/*.yaml", file=sys.stderr)
        return 2
    try:
        files = find_workloads(chosen.suite)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    options = StudyOptions(chosen.as_of.isoformat(), chosen.solver)
    try:
        engine = make_executor(chosen.engine, chosen.workers, chosen.address)
        records = read_records(chosen.records) if chosen.records else map_records(files, options, engine)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except PlannerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(text_summary(records, options))
    try:
        if chosen.json:
            write_atomically(chosen.json, figures_json(records, options))
        if chosen.doc:
            write_report(chosen.doc, records, options, chosen.prices)
    except PlannerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
