"""Fit the performance constants to the measured rows.

`python -m benchmarks.fit_performance [--data FILE] [--family NAME] [--out FOLDER]`.

Physical constants whose provenance starts with `fitted` move within their bounds, held by a weak prior at the bundled
value; the loss is robust (soft L1 of the log ratio). Then one factor per (generation, precision, stack) is learned from
median residuals and shrunk to 1 by evidence. No constant belongs to a row or to a source.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.accelerators import load_devices
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from benchmarks.rows import read_csv, write_csv
from catalogs.tables.table import Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants
from planner.performance.device import accelerator_family
from planner.performance.work import PRECISION_GROUP

FAMILIES = {"transformer": ("transformer",), "vision": ("cnn", "vit", "diffusion")}
KINDS = tuple(kind for kinds in FAMILIES.values() for kind in kinds)
STACKS = ("eager", "compiled", "tuned")
# Not in that order: hand-fused kernels, measured on models of another kind; tinygrad, eager and what it adds.
OTHER_STACKS = ("fused", "tinygrad")
# Constants of a software class that lengthen a step, and those that shorten it: a leaner class has less of the first
# and more of the second.
LENGTHENS = (
    "attention.lag", "memory.passes", "floor.layer_s", "head.passes", "tp.skew_s", "tp.exposed", "optimizer.layer_s",
    "fixed.step_s",
)  # fmt: skip
# Eager and compiled code call the same flash attention.
SAME_KERNEL = ("attention.lag", "attention.fused_ratio")
SHORTENS = ("attention.fused_ratio", "dp.overlap_ratio", "optimizer.bandwidth_ratio")
SAMPLED = ("vision.",)
# Widths of what was never measured: assumed, so no fit drops them.
NEVER_FITTED = ("thin.default", "thin.family")
# Evidence (distinct sources and workload groups) at which half of a median residual is believed.
HALF_EVIDENCE = 12.0
LOSS_SCALE = 0.12
PRIOR_WEIGHT = 3.0
TINY = 1e-5
# Folds of workload groups that the interval is measured on, and families whose rows are also predicted without their
# publisher: who plans a vision model is a publisher that was not measured, and four publishers differ more than folds.
FOLDS = 5
BY_PUBLISHER = ("vision",)


@dataclass(frozen=True)
class Free:
    """A constant that may move: name, prior value and bounds."""

    name: str
    value: float
    lower: float
    upper: float


def free_constants(path: Path, outside: bool) -> list[Free]:
    """Fitted constants whose name starts with one of `SAMPLED` (or with none of them when `outside`)."""
    chosen = []
    for row in read_folder(path):
        inside = row["name"].startswith(SAMPLED)
        if row["provenance"].startswith("fitted") and inside != outside:
            lower = max(float(row["lower"]), TINY)
            chosen.append(Free(row["name"], max(float(row["value"]), lower), lower, float(row["upper"])))
    return chosen


def read_folder(path: Path) -> list[dict[str, str]]:
    """The rows of all CSV files of a folder, in the order of their names."""
    return [row for file in sorted(path.glob("*.csv")) for row in read_csv(file)]


def load_priors(start: Constants) -> Constants:
    """`start` with every fitted constant back at its prior, so that no earlier fit leaks into a left-out source."""
    path = Path(__file__).resolve().parent / "data" / "priors"
    return start.replace({row["name"]: float(row["prior"]) for row in read_folder(path)})


def fit(cases: Sequence[Case], start: Constants, path: Path = DIRECTORY) -> Constants:
    """Fit all constants to `cases`; the result contains the learned factors and the interval widths."""
    constants = Constants(
        {k: v for k, v in start.values.items() if not k.startswith(("multiplier.", "thin."))}
    )
    constants = load_priors(constants.replace({name: start[name] for name in NEVER_FITTED}))
    for family, kinds in FAMILIES.items():
        chosen = [case for case in cases if case.kind in kinds]
        if not chosen:
            continue
        free = [replace(f, value=constants[f.name]) for f in free_constants(path, family == "transformer")]
        constants = _fit_physical(chosen, free, constants)
        for kind in kinds:
            own = [case for case in chosen if case.kind == kind]
            constants = constants.replace(learned_factors(own, log_gap(own, constants), kind) if own else {})
    return constants


def in_order(constants: Constants) -> Constants:
    """`constants` with those of each class no leaner than those of the next: eager, compiled, tuned."""
    changes = {f"{name}.eager": constants[f"{name}.compiled"] for name in SAME_KERNEL}
    for name, choose in [*((n, min) for n in LENGTHENS), *((n, max) for n in SHORTENS)]:
        first = changes.get(f"{name}.eager", constants[f"{name}.eager"])
        compiled = changes[f"{name}.compiled"] = choose(constants[f"{name}.compiled"], first)
        changes[f"{name}.tuned"] = choose(constants[f"{name}.tuned"], compiled)
    return constants.replace(changes)


def row_weights(cases: Sequence[Case]) -> Floats:
    """Weights that keep large sources and large workload groups from drowning small ones."""
    by_group: dict[str, int] = {}
    by_split: dict[tuple[str, str], int] = {}
    for case in cases:
        by_group[case.group] = by_group.get(case.group, 0) + 1
        by_split[case.group, case.split_group] = by_split.get((case.group, case.split_group), 0) + 1
    raw = [by_group[c.group] ** -0.25 * by_split[c.group, c.split_group] ** -0.25 for c in cases]
    weights = np.asarray(raw)
    scaled: Floats = weights / weights.mean()
    return scaled


def soft_gap(gap: Floats) -> Floats:
    """Soft L1 as in scipy, for the rows only: the prior stays quadratic."""
    scaled = gap / LOSS_SCALE
    soft: Floats = np.sign(scaled) * np.sqrt(2.0 * (np.sqrt(1.0 + scaled * scaled) - 1.0)) * LOSS_SCALE
    return soft


def _fit_physical(cases: Sequence[Case], free: list[Free], constants: Constants) -> Constants:
    def at(values: dict[str, float]) -> Constants:
        return in_order(constants.replace(values))

    return best_constants(cases, row_weights(cases), len(cases), free, at)


def best_constants(
    cases: Sequence[Case],
    row_weight: Floats,
    n_rows: int,
    free: Sequence[Free],
    at: Callable[[dict[str, float]], Constants],
) -> Constants:
    """The constants that predict `cases` best, by a soft loss and a pull of each free one to its prior.

    Args:
        cases: rows to predict.
        row_weight: of each case, shape `(n_cases,)`.
        n_rows: rows of the whole fit, by whose number the pull grows.
        free: the constants that are fitted, at their priors.
        at: all constants for values of the free ones.
    """
    groups = build_groups(cases)
    measured = np.log([case.measured.value for case in cases])
    weights = np.sqrt(row_weight)
    low, high = np.log([f.lower for f in free]), np.log([f.upper for f in free])
    centre = np.log([max(f.value, 1e-30) for f in free])
    width = (high - low) / 4.0
    prior = PRIOR_WEIGHT * LOSS_SCALE * math.sqrt(n_rows / 500.0)

    def named(x: Floats) -> Constants:
        return at(dict(zip((f.name for f in free), np.exp(x).tolist(), strict=True)))

    def residuals(x: Floats) -> Floats:
        value = throughput(groups, len(cases), named(x))
        gap = np.log(np.maximum(value, 1e-30)) - measured
        gap = np.where(np.isfinite(gap), gap, 0.0)
        return np.concatenate([weights * soft_gap(gap), prior * (x - centre) / width])

    start = np.clip(centre, low + 1e-6, high - 1e-6)
    found = least_squares(
        residuals, start, bounds=(low, high), diff_step=1e-3, max_nfev=40, xtol=1e-4, ftol=1e-4
    )
    return named(found.x)


def log_gap(cases: Sequence[Case], constants: Constants) -> Floats:
    """Log of predicted over measured, shape `(n_cases,)`."""
    predicted = throughput(build_groups(cases), len(cases), constants)
    gap: Floats = np.log(predicted) - np.log([case.measured.value for case in cases])
    return gap


def learned_factors(cases: Sequence[Case], gap: Floats, kind: str) -> dict[str, float]:
    """Learned time factors that a log gap calls for: generation, family, then each with precision and stack.

    All are shrunk by their evidence.
    """
    use = [(PRECISION_GROUP[c.training.precision], c.training.stack) for c in cases]
    family = [family_of(c) for c in cases]
    levels: list[list[tuple[str, ...]]] = [
        [("generation", c.generation) for c in cases],
        [("generation", c.generation, *u) for c, u in zip(cases, use, strict=True)],
        [("family", f) for f in family],
        [("family", f, *u) for f, u in zip(family, use, strict=True)],
    ]
    total: dict[tuple[str, ...], float] = {}
    evidence: dict[tuple[str, ...], float] = {}
    for keys in levels:
        shift, weight = _shrunk_medians(cases, gap, keys)
        gap = gap - np.asarray([shift[key] for key in keys])
        total |= shift
        evidence |= weight
    return _spell(
        kind, sorted({(f, c.generation) for f, c in zip(family, cases, strict=True)}), total, evidence
    )


def family_of(case: Case) -> str:
    """The accelerator family of a case."""
    return accelerator_family(str(case.hardware["accelerator"]))


def _spell(
    kind: str,
    families: list[tuple[str, str]],
    shift: dict[tuple[str, ...], float],
    evidence: dict[tuple[str, ...], float],
) -> dict[str, float]:
    """Constants by name; a combination that was not measured takes its family's and its generation's factor.

    A leaner stack is never slower on one machine: factors are pooled where the medians say otherwise.
    """
    out: dict[str, float] = {}
    lines = [(g, [("generation", g)]) for g in sorted({g for _, g in families})]
    lines += [(f, [("generation", g), ("family", f)]) for f, g in families if f != g]
    for name, chain in lines:
        for precision in sorted(set(PRECISION_GROUP.values())):
            raw, proof = [], []
            for stack in STACKS:
                cells = [(*start, precision, stack) for start in chain]
                raw.append(sum(shift.get(key, 0.0) for key in (*chain, *cells)))
                proof.append(evidence.get(cells[-1], 0.1))
            factors = dict(zip(STACKS, falling(raw, proof), strict=True))
            more = {s: sum(shift.get((*start, precision, s), 0.0) for start in chain) for s in OTHER_STACKS}
            base = sum(shift.get(key, 0.0) for key in chain)
            factors["fused"] = base + more["fused"]
            factors["tinygrad"] = factors["eager"] + more["tinygrad"]
            for stack, whole in factors.items():
                out[f"multiplier.{kind}.{name}.{precision}.{stack}"] = round(math.exp(whole), 4)
    return out


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The closest never-rising sequence: neighbours that rise are averaged by weight (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] < block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            mean = (before[0] * before[1] + block[0] * block[1]) / total
            block = (mean, total, before[2] + block[2])
        blocks.append(block)
    return [mean for mean, _, size in blocks for _ in range(size)]


def _shrunk_medians(
    cases: Sequence[Case], gap: Floats, keys: list[tuple[str, ...]]
) -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], float]]:
    """Per key: mean over sources of their median residuals, shrunk to 0 by evidence, and that evidence."""
    grouped: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for position, key in enumerate(keys):
        grouped.setdefault(key, {}).setdefault(cases[position].group, []).append(position)
    shifts, proof = {}, {}
    for key, sources in grouped.items():
        medians = [float(np.median(gap[positions])) for positions in sources.values()]
        works = len({cases[p].split_group for positions in sources.values() for p in positions})
        weights = np.sqrt([len(positions) for positions in sources.values()])
        evidence = len(sources) * math.sqrt(works)
        centre = float(np.average(medians, weights=weights))
        shifts[key] = centre * evidence / (evidence + HALF_EVIDENCE)
        proof[key] = evidence
    return shifts, proof


def _row(name: str, value: float, unit: str, lower: str, upper: str, provenance: str) -> dict[str, str]:
    return {
        "name": name,
        "value": f"{value:.4g}",
        "unit": unit,
        "lower": lower,
        "upper": upper,
        "provenance": provenance,
    }


def _unit(name: str) -> tuple[str, str]:
    """Unit and greatest value of a constant of the interval."""
    if name.endswith("gb_per_s"):
        return "GB/s", "20000"
    return ("count", "1e15") if name.startswith("measured.") else ("log ratio", "1")


def write_constants(
    constants: Constants, path: Path, intervals: dict[str, float], command: str, kinds: Sequence[str]
) -> None:
    """Rewrite one file: fitted values in place, learned factors and intervals of `kinds` after them."""
    rows = [
        row
        for row in read_csv(path)
        if not row["name"].startswith(("multiplier.", "thin.", "interval.", "measured."))
    ]
    for row in rows:
        if row["provenance"].startswith("fitted"):
            row["value"] = f"{constants[row['name']]:.5g}"
    learned = sorted(
        k for k, v in constants.values.items() if k.startswith("multiplier.") and abs(v - 1.0) > 1e-6
    )
    rows += [
        _row(name, constants[name], "ratio", "0.3", "3", f"learned: {command}")
        for name in learned
        if name.split(".")[1] in kinds
    ]
    for name in sorted(intervals):
        unit, upper = _unit(name)
        if name.split(".")[1] in kinds:
            rows += [_row(name, intervals[name], unit, "0", upper, f"residuals: {command}")]
    head = ["name", "value", "unit", "lower", "upper", "provenance"]
    write_csv(path, [head, *([row[name] for name in head] for row in rows)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit one family or both and write their constants files."""
    from benchmarks.fit_intervals import NEVER_MEASURED, UNKNOWN_LINK, interval_widths
    from benchmarks.held_out import fold_labels, held_out, source_labels

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="CSV with the columns of dev.csv; the bundled points by default"
    )
    parser.add_argument("--family", choices=[*FAMILIES, "all"], default="all")
    parser.add_argument("--out", type=Path, default=DIRECTORY, help="folder with the constants files")
    chosen = parser.parse_args(arguments)
    command = "python -m benchmarks.fit_performance on the measured rows"
    for family, kinds in FAMILIES.items():
        if chosen.family not in (family, "all"):
            continue
        constants = load_constants(chosen.out)
        cases, _ = load_cases(load_rows(chosen.data), load_devices())
        cases, _ = settle([case for case in cases if case.kind in kinds], load_priors(constants))
        fitted = fit(cases, constants, chosen.out)
        ways = [fold_labels(cases, FOLDS)]
        if family in BY_PUBLISHER:
            ways.append(source_labels(cases))
        unseen = np.concatenate([held_out(cases, labels, constants, chosen.out) for labels in ways])
        widths = interval_widths(cases * len(ways), unseen, kinds, fitted)
        # What all families share stands with the transformers.
        if family == "transformer":
            widths |= {"thin.default": NEVER_MEASURED, "thin.family": NEVER_MEASURED / 2.0}
            widths["interval.unknown_link"] = UNKNOWN_LINK
        owned = (
            (*kinds, "default", "family", "unknown_link", "per_doubling", "open")
            if family == "transformer"
            else kinds
        )
        write_constants(fitted, chosen.out / f"{family}.csv", widths, command, owned)
        print(f"{len(cases)} rows, constants written to {family}.csv")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
