"""The constants of post-training, fitted on the rows that are given and on no others.

What no given row says is not taken from the bundled files, which were fitted on all rows, but from `PRIORS`. `using`
makes a fit count for the predictions inside it.

    python -m benchmarks.post_training_fit --data measured.csv [--write]
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import brentq, minimize

from benchmarks.post_training import job_of, load, predict, shape_of
from benchmarks.post_training_rows import Row
from benchmarks.rows import write_csv
from planner.performance.constants import DIRECTORY, Constants, load_constants
from planner.performance.interval import AXES, axes
from planner.performance.post_training.adapters import DENSE, AdapterCost, load_adapters
from planner.performance.work import build_work
from planner.records import record

# Without a measured row: the model's own speed; one accelerator alone runs compiled code as the only such row of
# pre-training has it (KempnerForge's 7B on an H200 took 0.77 of the step predicted without); frozen weights in 4 bit
# are written out for the forward pass, the repeated one and the backward pass; adapters read and write their inputs
# and outputs once, and again with gradients. A refit has the middle, in log, of the bounds in
# data/performance/inference.csv.
PRIORS = {
    **dict.fromkeys(("interval.tuning.eager", "interval.tuning.compiled", "interval.rollouts"), 0.0),
    "alone.ratio.compiled": 0.77, "adapter.passes.eager": 2.0,
    "adapter.passes.compiled": 1.0, "adapter.dequantise_passes.compiled": 3.0, "rollouts.generation_ratio": 1.0,
    "rollouts.training_ratio": 1.0, "rollouts.refit_ratio": 0.07,
}  # fmt: skip
_SETS = {
    "eager": ("adapter.passes.eager",),
    "compiled": ("alone.ratio.compiled", "adapter.passes.compiled", "adapter.dequantise_passes.compiled"),
    "reinforced": ("rollouts.generation_ratio", "rollouts.training_ratio", "rollouts.refit_ratio"),
}
_WIDTHS = {
    "interval.tuning.eager": "eager", "interval.tuning.compiled": "compiled", "interval.rollouts": "reinforced",
}  # fmt: skip
# Pull towards the priors: the log error of a row (its mean, of compiled pre-training left out), and how far in log a
# constant is expected to lie from its prior. One accelerator alone: publishers that measured both one and several lie
# between 0.87 and 0.98 of each other, with a spread of 0.06. Passes over weights in 4 bit are counted, not guessed; the
# share of the bandwidth that they reach is not. Others may be a third off.
ROW_ERROR = 0.09
PRIOR_WIDTHS = {"alone.ratio.compiled": 0.1, "adapter.dequantise_passes.compiled": 0.2}
PRIOR_WIDTH = 0.3
SOURCE = "huggingface/peft@5d602fd method_comparison; python -m benchmarks.post_training_fit"
# 80 % of a normal spread; a kind that was measured keeps the scatter between its own models.
Z80, OWN_SPREAD, WIDEST = 1.28, 0.12, 0.9
# Above what any kind moves per adapted weight: chains of rotations take a sixth.
MOST_BYTES = 4096.0
# Kinds that say how fast a loop with adapters is: they differ from LoRA in scale or start, not in work.
_PLAIN = ("lora", "rslora", "mica")
# The layout of a row hardly moves with the ratios of reinforcement learning: generation is read where training is free.
_FREE = 1e-6


# Fits and predictions that several folds share: most leave the rows of a set of constants alone.
_FITTED: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, float]] = {}
_PARTS: dict[str, tuple[float, float, float, float]] = {}
_SEEN: dict[tuple[str, str, tuple[float, float], tuple[float, ...]], tuple[float, float]] = {}


@record(frozen=True)
class Fit:
    """Constants of post-training, and the costs of every kind of adapter."""

    constants: Mapping[str, float]
    adapters: Mapping[str, AdapterCost]

    def applied(self) -> Constants:
        """All constants of the model with those of the fit."""
        return load_constants().replace(self.constants)


def fit(rows: Sequence[Row]) -> Fit:
    """Fit every constant of post-training on `rows`."""
    made = {**PRIORS, **reach(rows)}
    untouched = {kind: _as_lora(cost) for kind, cost in families().items()}
    with using(Fit(made, untouched)):
        for name, names in _SETS.items():
            made |= _least(_plain(rows, name), names)
    fitted = Fit(made, adapters(rows, Fit(made, untouched)))
    return Fit({**made, **widths(rows, fitted)}, fitted.adapters)


def _plain(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows that a set of constants is fitted on: all weights learn, or adapters that cost as LoRA does."""
    return [r for r in rows if kind_of(r) in (None, *_PLAIN) and _set_of(r) == name and r.step_s]


def reach(rows: Sequence[Row]) -> dict[str, float]:
    """From where to where fine-tuning was measured, by software and axis; NaN, which widens nothing, without a row."""
    out = {}
    for stack in ("eager", "compiled"):
        seen: dict[str, list[float]] = {axis: [] for axis in AXES}
        for row in rows:
            if _set_of(row) == stack and row.step_s:
                job, _ = job_of(row)
                values = axes(build_work(job.model, job.training), np.asarray([float(row.count)]))
                for axis, value in values.items():
                    seen[axis].append(float(value[0]))
        for axis, found in seen.items():
            out[f"measured.tuning.{stack}.{axis}.low"] = min(found, default=math.nan)
            out[f"measured.tuning.{stack}.{axis}.high"] = max(found, default=math.nan)
    return out


def widths(rows: Sequence[Row], fitted: Fit) -> dict[str, float]:
    """What intervals must add so that 80 % of the rows of a kind lie within them.

    Of n rows the one counts below which 80 % of n + 1 lie, as the next row is one of n + 1. Fine-tuning that was
    measured on several accelerators is predicted without the row's own: few rows fit their own constants closely.
    """
    out = {}
    for name, stack in _WIDTHS.items():
        own = [row for row in rows if _set_of(row) == stack and row.step_s]
        missing = [found for part, made in _parts_of(rows, own, fitted) for found in _missing(part, made)]
        if missing:
            share = min(0.8 * (1.0 + 1.0 / len(missing)), 1.0)
            out[name] = math.sqrt(max(float(np.quantile(missing, share)), 0.0))
    return out


def _parts_of(rows: Sequence[Row], own: Sequence[Row], fitted: Fit) -> Iterator[tuple[list[Row], Fit]]:
    """The rows of a kind, each with the fit that predicts it."""
    cards = sorted({_card(row) for row in own})
    if len(cards) < 2 or own[0].training.rollouts is not None:
        yield list(own), fitted
        return
    name = _set_of(own[0])
    for card in cards:
        others = [row for row in rows if _card(row) != card]
        made = {**fitted.constants, **reach(others), **_least(_plain(others, name), _SETS[name])}
        yield [row for row in own if _card(row) == card], Fit(made, fitted.adapters)


def _card(row: Row) -> str:
    return str(row.device["accelerator"])


def _missing(rows: Sequence[Row], fitted: Fit) -> list[float]:
    """Squared log error of each row beyond the square of its interval's half-width."""
    out = []
    with using(fitted) as constants:
        for row in rows:
            found = predict(row, constants)
            if not math.isnan(found.step_s):
                gap = math.log(found.step_s / (row.step_s or math.nan))
                out.append(gap**2 - math.log(found.high_s / found.step_s) ** 2)
    return out


def families() -> dict[str, AdapterCost]:
    """Kinds and their classes, which no measured row decides."""
    return dict(load_adapters())


@contextmanager
def using(fitted: Fit) -> Iterator[Constants]:
    """Let the costs of adapters of a fit count inside; the constants are the value."""
    table = load_adapters()
    before = dict(table)
    table.update(fitted.adapters)
    try:
        yield fitted.applied()
    finally:
        table.update(before)


def kind_of(row: Row) -> str | None:
    """The kind of the row's adapters, None where all weights learn."""
    adapter = row.training.adapter
    return None if adapter is None else adapter.kind


def _set_of(row: Row) -> str:
    return "reinforced" if row.training.rollouts is not None else str(row.training.stack)


def _as_lora(cost: AdapterCost) -> AdapterCost:
    return AdapterCost(cost.kind, cost.family, 1.0, 0.0, 2.0, WIDEST, 0)


def _least(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    """Values of constants with the least mean absolute log error, pulled to their priors; once per set of rows."""
    if not rows:
        return {}
    key = (tuple(names), tuple(row.key for row in rows))
    if key not in _FITTED:
        _FITTED[key] = _search(rows, names)
    return _FITTED[key]


def _search(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    start = np.log([PRIORS[name] for name in names])
    pull = 0.5 * ROW_ERROR / np.square([PRIOR_WIDTHS.get(name, PRIOR_WIDTH) for name in names])
    measured = np.log([row.step_s or math.nan for row in rows])
    steps = _reinforced(rows) if names == _SETS["reinforced"] else None

    def loss(values: np.ndarray) -> float:
        now = dict(zip(names, np.exp(values).tolist(), strict=True))
        if steps is None:
            constants = load_constants().replace(now)
            predicted = np.asarray([predict(row, constants).step_s for row in rows])
        else:
            predicted = steps(np.exp(values))
        gap = np.abs(np.log(predicted) - measured)
        kept = gap[~np.isnan(gap)]
        return float((kept.sum() + np.sum(pull * (values - start) ** 2)) / max(len(kept), 1))

    options = {"maxfev": 45 if steps is None else 400, "xatol": 0.01, "fatol": 1e-4}
    simplex = np.vstack([start, start + 0.3 * np.eye(len(names))])
    best = minimize(loss, start, method="Nelder-Mead", options={**options, "initial_simplex": simplex}).x
    return dict(zip(names, np.exp(best).tolist(), strict=True))


def _reinforced(rows: Sequence[Row]) -> Callable[[np.ndarray], np.ndarray]:
    """Step times of reinforcement learning as a function of its three ratios, from the parts of each step."""
    bare = dict(zip(_SETS["reinforced"], (1.0, 1.0, 1.0), strict=True))
    fixed = load_constants()["rollouts.refit_s"]
    parts = [_parts(row, bare) for row in rows]
    generation, training, refit, ahead = np.asarray(parts).T

    def steps(ratios: np.ndarray) -> np.ndarray:
        made, trained = generation * ratios[0], training * ratios[1]
        paced = np.where(ahead > 0, np.maximum(made, trained), made + trained)
        return np.asarray(paced + (refit - fixed) / ratios[2] + fixed)

    return steps


def _parts(row: Row, bare: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Generation, training and refit of a step, s, without ratios, and whether generation runs ahead."""
    if row.key not in _PARTS:
        whole = shape_of(row, load_constants().replace(bare))[2]
        free = shape_of(row, load_constants().replace({**bare, "rollouts.training_ratio": _FREE}))[2]
        rollouts = row.training.rollouts
        ahead = float(rollouts is not None and (rollouts.steps_off_policy or 0) > 0)
        trained = whole["step_time_s"] - whole["generation_s"] - whole["refit_s"]
        _PARTS[row.key] = float(free["generation_s"]), float(trained), float(whole["refit_s"]), ahead
    return _PARTS[row.key]


@record(frozen=True)
class Seen:
    """What one row of PEFT says of its kind.

    Attributes:
        ratio: measured step time over that of LoRA on the same matrices.
        weight_bytes: bytes per adapted weight and pass that explain the difference, of classes of `DENSE`.
        saved_bytes: bytes kept per input element, None where nothing can be learned of it.
    """

    ratio: float
    weight_bytes: float
    saved_bytes: float | None


def adapters(rows: Sequence[Row], start: Fit) -> dict[str, AdapterCost]:
    """Costs of every kind: its own rows' where it has any, else the median of its class."""
    seen = measured_kinds(rows, start)
    saved = {
        kind: [one.saved_bytes for one in found if one.saved_bytes is not None]
        for kind, found in seen.items()
    }
    holds = {kind: float(np.mean(values)) for kind, values in saved.items() if values}
    out = {}
    for kind, cost in start.adapters.items():
        typical, wide = of_class(kind, seen, start.adapters)
        peers = [holds[name] for name in holds if start.adapters[name].family == cost.family]
        unseen = median(peers or list(holds.values()) or [2.0])
        dense, own = cost.family in DENSE, seen.get(kind)
        each = typical if own is None else _cost_of(own, dense)
        out[kind] = AdapterCost(
            kind, cost.family, 1.0 if dense else each, each if dense else 0.0, holds.get(kind, unseen),
            wide if own is None else OWN_SPREAD, len(own or ()),
        )  # fmt: skip
    return out


def _cost_of(found: Sequence[Seen], dense: bool) -> float:
    """Mean cost of a kind: bytes per adapted weight, or a ratio on the step."""
    if dense:
        return float(np.mean([one.weight_bytes for one in found]))
    return math.exp(float(np.mean([math.log(one.ratio) for one in found])))


def of_class(
    kind: str, seen: Mapping[str, Sequence[Seen]], table: Mapping[str, AdapterCost]
) -> tuple[float, float]:
    """Cost of the median of other kinds of a class, and how far steps of these lie from what it gives them.

    Without a measured kind of the class, others that cost in the same way count.
    """
    family = table[kind].family
    dense = family in DENSE
    like = [name for name in seen if name != kind and (table[name].family in DENSE) == dense]
    peers = [name for name in like if table[name].family == family] or like
    if not peers:
        return (0.0 if dense else 1.0), WIDEST
    typical = median([_cost_of(seen[name], dense) for name in peers])
    steps = {name: _cost_of(seen[name], dense=False) for name in peers}
    gaps = [math.log(_step_with(typical, seen[name], dense) / steps[name]) for name in peers]
    apart = Z80 * float(np.sqrt(np.mean(np.square(gaps))))
    return typical, min(max(apart, 0.2), WIDEST)


def _step_with(cost: float, found: Sequence[Seen], dense: bool) -> float:
    """Step over that of LoRA of a kind's rows, did it cost this: what building takes grows with the bytes."""
    own = _cost_of(found, dense)
    if not dense:
        return cost
    return 1.0 + (_cost_of(found, dense=False) - 1.0) * cost / own if own > 0 else 1.0


def measured_kinds(rows: Sequence[Row], start: Fit) -> dict[str, list[Seen]]:
    """What each kind's rows of PEFT say.

    Args:
        rows: measured rows.
        start: constants, with every kind as LoRA.
    """
    out: dict[str, list[Seen]] = defaultdict(list)
    for row in rows:
        kind = kind_of(row)
        if kind is None or not row.source.startswith("huggingface") or not row.step_s:
            continue
        least, most = (_with_cost(row, kind, start, saved_bytes=guess) for guess in (0.0, 8.0))
        # where everything is recomputed hardly anything is saved
        told = row.memory_gib and most[1] > 1.1 * least[1]
        saved = 8.0 * max((row.memory_gib or 0.0) - least[1], 0.0) / (most[1] - least[1]) if told else None
        built = _weight_bytes(row, kind, start) if start.adapters[kind].family in DENSE else 0.0
        out[kind].append(Seen(row.step_s / least[0], built, saved))
    return out


def _weight_bytes(row: Row, kind: str, start: Fit) -> float:
    """Bytes per adapted weight and pass, at most `MOST_BYTES`, with which the predicted step is the measured one.

    0 where LoRA is slower.
    """

    def gap(weight_bytes: float) -> float:
        return math.log(_with_cost(row, kind, start, weight_bytes=weight_bytes)[0] / (row.step_s or math.nan))

    if gap(0.0) >= 0.0:
        return 0.0
    return MOST_BYTES if gap(MOST_BYTES) <= 0.0 else float(brentq(gap, 0.0, MOST_BYTES, xtol=1e-6))


def _with_cost(
    row: Row, kind: str, start: Fit, *, saved_bytes: float = 0.0, weight_bytes: float = 0.0
) -> tuple[float, float]:
    """Step time, s, and memory, GiB, as LoRA with these costs; once per row and constants of its stack."""
    own = tuple(start.constants[name] for name in _SETS[_set_of(row)])
    key = (row.key, kind, (saved_bytes, weight_bytes), own)
    if key not in _SEEN:
        cost = AdapterCost(kind, start.adapters[kind].family, 1.0, weight_bytes, saved_bytes, WIDEST, 0)
        with using(Fit(start.constants, {kind: cost})) as constants:
            found = predict(row, constants)
        _SEEN[key] = found.step_s, found.memory_gib
    return _SEEN[key]


def write(fitted: Fit) -> None:
    """Write data/adapters.csv, and the values of fine-tuning and of all widths of post-training.

    The three ratios of reinforcement learning are printed alone: they are set by hand where folds agree.
    """
    names = {*_SETS["eager"], *_SETS["compiled"], *_WIDTHS, *reach(())}
    for file in (DIRECTORY / "transformer.csv", DIRECTORY / "inference.csv"):
        with file.open(encoding="utf-8", newline="") as source:
            head, *rows = csv.reader(source)
        rows = [
            [row[0], f"{fitted.constants[row[0]]:.4g}", *row[2:]] if row[0] in names else row for row in rows
        ]
        write_csv(file, [head, *rows])
    measured = {cost.family for cost in fitted.adapters.values() if cost.rows}
    made = [["adapter", "class", "step_ratio", "weight_bytes", "saved_bytes", "spread", "rows", "source"]]
    for cost in fitted.adapters.values():
        guess = f"median of class {cost.family}" if cost.family in measured else "median of all"
        made.append([
            cost.kind, cost.family, f"{cost.step_ratio:.3g}", f"{cost.weight_bytes:.3g}", f"{cost.saved_bytes:.3g}",
            f"{cost.spread:.3g}", str(cost.rows), SOURCE if cost.rows else guess,
        ])  # fmt: skip
    write_csv(DIRECTORY.parent / "adapters.csv", made)


def main() -> int:
    """Print the constants fitted on all rows; write them on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="measured.csv, or its folder")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    fitted = fit(load(chosen.data)[0])
    for name, value in fitted.constants.items():
        print(f"{name:32} {value:8.4g}  bundled {load_constants().get(name, math.nan):8.4g}")
    for cost in fitted.adapters.values():
        print(
            f"{cost.kind:18} {cost.step_ratio:7.3f} {cost.weight_bytes:7.1f} {cost.saved_bytes:6.2f} "
            f"{cost.spread:5.2f} {cost.rows:3}"
        )
    if chosen.write:
        write(fitted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
