"""Figures of the optimisation core: `python -m benchmarks.solvers [--family NAME ...] [--seed N] [--quick]`.

Without `--suite` the families of `benchmarks/solver_families` are generated with the seed and solved at their stated
sizes; with it every .npz model of a folder. Each measurement runs in a process of its own, so that CPU seconds and
peak memory are its own. `--json` writes all figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.solver_families.base import Figure, families

HEAD = (
    f"{'family':12}{'size':24}{'seed':>5}  {'status':12}{'objective':>16}{'bound':>16}"
    f"{'gap solver':>11}{'gap exact':>10}{'CPU s':>8}{'wall s':>8}{'limit':>7} {'kept':5}{'MiB':>6}  note"
)


def row(figure: Figure) -> str:
    """Return a figure as one line of the table."""
    kept = {True: "yes", False: "NO", None: "-"}[figure.kept]
    return (
        f"{figure.family:12}{figure.size:24}{figure.seed:>5}  {figure.status:12}"
        f"{_number(figure.objective, 16, '.4f')}{_number(figure.bound, 16, '.4f')}"
        f"{_number(figure.gap_solver_ratio, 11, '.2e')}{_number(figure.gap_exact_ratio, 10, '.2e')}"
        f"{figure.cpu_s:8.2f}{figure.wall_s:8.2f}{_number(figure.limit_s, 7, 'g')} {kept:5}"
        f"{_number(figure.peak_mib, 6, '.0f')}  {figure.note}"
    )


def _number(value: float | None, width: int, form: str) -> str:
    return f"{'-' if value is None else format(value, form):>{width}}"


def measured(arguments: argparse.Namespace) -> Iterator[Figure | str]:
    """Yield the figures as they come, a text in place of a measurement that failed."""
    if arguments.suite:
        from benchmarks.solver_suite import run_suite

        yield from run_suite(
            arguments.suite, gap=arguments.gap, limit_s=arguments.time_limit, backend=arguments.backend
        )
        return
    known = families()
    for name in arguments.family or known:
        for goal in known[name].GOALS:
            print(f"# {name}: {goal}")
        try:
            yield from known[name].run(arguments.seed, quick=arguments.quick)
        except RuntimeError as error:
            yield f"{name}: {error}"


def main() -> int:
    """Run; exit code 1 when a measurement failed or an answer came too late."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--family", nargs="+", choices=sorted(families()), metavar="NAME", help="default: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="small sizes only, seconds in all")
    parser.add_argument("--suite", type=Path, metavar="DIR", help="solve the .npz models of this folder")
    parser.add_argument("--gap", type=float, default=1e-3, help="of the suite's models (default 1e-3)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per model of the suite")
    parser.add_argument("--backend", default="scipy", help="of the suite's models")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures here")
    arguments = parser.parse_args()
    print(HEAD)
    figures, bad = [], 0
    for found in measured(arguments):
        if isinstance(found, Figure):
            figures.append({**asdict(found), "kept": found.kept})
            bad += found.kept is False
            print(row(found), flush=True)
        else:
            bad += 1
            print(f"FAILED {found}", file=sys.stderr, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
