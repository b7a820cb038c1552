"""Fit the constants of one software class, or of racks, alone, all others held: `python -m benchmarks.fit_class fused`.

For a change that concerns a part of the rows: the rest of the planner's figures stay as they are. The fit is that of
`benchmarks.fit_performance`, with the weights of all rows; the interval of a class follows its rows left out, whose
folds hold the bundled constants of other classes. Racks keep their width.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.accelerators import load_devices
from benchmarks.fit_intervals import interval_widths
from benchmarks.fit_performance import (
    FOLDS,
    OTHER_STACKS,
    best_constants,
    family_of,
    free_constants,
    learned_factors,
    load_priors,
    log_gap,
    row_weights,
)
from benchmarks.held_out import fold_labels
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from benchmarks.rows import read_csv, write_records
from catalogs.tables.table import Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants

KIND = "transformer"
RACKS = "racks"


@dataclass(frozen=True)
class Part:
    """A part of the rows that is fitted alone.

    Attributes:
        owns: whether a row belongs to it.
        constants: how the names of its fitted constants end; `factors`: how those of its learned factors do.
        where: names of the machines of a row whose factors it may move.
    """

    owns: Callable[[Case], bool]
    constants: str
    factors: str
    where: Callable[[Case], set[str]]


def part_of(name: str) -> Part:
    """The part called `name`: racks, whose link joins several machines, or a software class on all machines."""
    if name == RACKS:
        # The factor of their generation is shared with other machines.
        return Part(_spans_machines, ".rack", "", lambda case: {family_of(case)})
    return Part(
        lambda case: case.training.stack == name, f".{name}", f".{name}",
        lambda case: {family_of(case), case.generation},
    )  # fmt: skip


def _spans_machines(case: Case) -> bool:
    return bool(case.hardware["link_domain_accelerators"] > case.hardware["accelerator_count"])


def fit_class(cases: Sequence[Case], name: str, held: Constants) -> Constants:
    """`held` with the fitted constants of part `name` and its factors where it was measured found anew."""
    part = part_of(name)
    mine = [part.owns(case) for case in cases]
    own = [case for case in cases if part.owns(case)]
    priors = load_priors(held)
    free = [
        replace(f, value=priors[f.name])
        for f in free_constants(DIRECTORY, True)
        if f.name.endswith(part.constants)
    ]
    bare = held.replace({name: 1.0 for name in held.values if name.startswith("multiplier.")})
    fitted = best_constants(own, row_weights(cases)[mine], len(cases), free, bare.replace)
    where = set[str]().union(*map(part.where, own))
    factors = {
        name: value
        for name, value in learned_factors(cases, log_gap(cases, fitted), KIND).items()
        if name.endswith(part.factors) and name.split(".")[2] in where
    }
    return held.replace({f.name: fitted[f.name] for f in free} | factors)


def unseen(cases: Sequence[Case], stack: str, held: Constants) -> Floats:
    """Predictions of the class's rows with their fold of workload groups left out; others with `held`."""
    value = throughput(build_groups(cases), len(cases), held)
    labels = fold_labels(cases, FOLDS)
    for label in sorted(set(labels)):
        out = [p for p, c in enumerate(cases) if labels[p] == label and part_of(stack).owns(c)]
        if out:
            rest = [case for p, case in enumerate(cases) if labels[p] != label]
            rows = [cases[p] for p in out]
            value[out] = throughput(build_groups(rows), len(rows), fit_class(rest, stack, held))
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit one part and write its constants, and the width of the interval of a class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part", choices=(*OTHER_STACKS, RACKS), help="software class (others are fitted together), or racks"
    )
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; bundled points by default"
    )
    chosen = parser.parse_args(arguments)
    held = load_constants()
    cases, _ = load_cases(load_rows(chosen.data), load_devices())
    cases, _ = settle([case for case in cases if case.kind == KIND], held)
    fitted = fit_class(cases, chosen.part, held)
    changed = {name: value for name, value in fitted.values.items() if value != held.get(name, 1.0)}
    if chosen.part in OTHER_STACKS:
        width = f"interval.{KIND}.{chosen.part}"
        changed[width] = interval_widths(cases, unseen(cases, chosen.part, held), (KIND,), fitted)[width]
    write(DIRECTORY / f"{KIND}.csv", changed)
    print(f"{len(cases)} rows, {len(changed)} constants of {chosen.part} written")
    return 0


def write(path: Path, changed: dict[str, float]) -> None:
    """Put new values of constants in their rows of a file."""
    rows = read_csv(path)
    if missing := sorted(set(changed) - {row["name"] for row in rows}):
        raise SystemExit(f"{path.name} has no rows of {', '.join(missing)}: fit all constants first")
    for row in rows:
        if row["name"] in changed:
            digits = 4 if row["name"].startswith(("multiplier.", "interval.")) else 5
            row["value"] = f"{changed[row['name']]:.{digits}g}"
    write_records(path, rows)


if __name__ == "__main__":
    raise SystemExit(main())
