"""Judge the inference model on measured rows: rate per system, time to the first token, time per token.

python -m benchmarks.inference --data measured.csv
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.error_figures import errors
from benchmarks.inference_rows import Measured, load_cases, possible
from catalogs.tables.table import Floats
from planner.performance.constants import Constants, load_constants
from planner.performance.inference.engines import find_engine
from planner.performance.inference.rates import Cases, Efficiency, output_rate, prefill_s, sequences, step_s


def efficiency_of(rows: list[Measured], c: Constants) -> Efficiency:
    """What each row's engine reaches on its chip, by the planner's tables."""
    found = [find_engine(row.engine, row.year) for row in rows]

    def chip(word: str) -> Floats:
        return np.asarray([c.get(f"chip.{row.chip}.{word}", 1.0) for row in rows])

    def engine(word: str) -> Floats:
        return np.asarray([getattr(item, word) for item in found], dtype=np.float64)

    return Efficiency(
        np.minimum(engine("compute") * chip("compute"), 0.95),
        np.minimum(engine("bandwidth") * chip("bandwidth"), 0.98),
        engine("step_s") * chip("step"),
        c["decode.layer_s"], c["decode.expert_layer_s"], c["decode.tensor_loss"], engine("most_running"),
        c["decode.layers_power"], c["decode.link_ratio"], engine("sequence_s"),
        step_tokens=engine("step_tokens"),
    )  # fmt: skip


def predict_rates(cases: Cases, rows: list[Measured], c: Constants) -> tuple[Floats, Floats]:
    """Predicted tokens per second of each replica, and the half width in log of its 80 % interval."""
    limits = {"server": c["decode.server_ratio"], "interactive": c["decode.interactive_ratio"]}
    slowed = np.asarray([limits.get(row.scenario, 1.0) for row in rows])
    spread = np.asarray([find_engine(row.engine, row.year).spread for row in rows])
    return output_rate(cases, efficiency_of(rows, c)) * slowed, spread


def report(cases: Cases, rows: list[Measured]) -> list[str]:
    """Figures of all rows, by class and by source."""
    c = load_constants()
    predicted, spread = predict_rates(cases, rows, c)
    measured = np.asarray([row.rate for row in rows])
    held = np.abs(np.log(predicted / measured)) <= spread
    groups: dict[str, list[int]] = defaultdict(list)
    can = possible(cases, rows)
    for at, row in enumerate(rows):
        if can[at]:
            groups["all that are possible"].append(at)
        for name in ("all", row.kind, "  " + row.source, "  engine " + row.engine):
            groups[name].append(at)
    out = []
    for name in sorted(groups, key=lambda name: (name.startswith("  "), name)):
        own = np.asarray(groups[name])
        out.append(
            _line(name, errors(predicted[own], measured[own]))
            + f"  in the 80 % interval {held[own].mean():4.0%}"
        )
    out.append(
        f"80 % of a group's rows after rescaling by another of its rows: within {rescaled_spread(rows, predicted):.2f}"
    )
    engine = efficiency_of(rows, c)
    number = sequences(cases, engine)
    context = cases.prompt + 0.5 * cases.answer
    for name, values, stated in (
        ("time to the first token", prefill_s(cases, engine), np.asarray([row.ttft_s for row in rows])),
        ("time per token", step_s(cases, engine, number, context), np.asarray([row.tpot_s for row in rows])),
    ):
        known = np.isfinite(stated) & np.isfinite(cases.running)
        out.append(_line(name, errors(values[known], stated[known])))
    return out


def rescaled_spread(rows: list[Measured], predicted: Floats) -> float:
    """Log ratio that holds 80 % of the errors of rows rescaled by another row of their group.

    A group is one model, accelerator, engine and year in one source; those of three rows and more count alike.
    """
    groups: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row, rate in zip(rows, predicted.tolist(), strict=True):
        groups[row.group, row.engine, row.year].append(float(np.log(row.rate / rate)))
    sizes, weights = [], []
    for errors_of in groups.values():
        if len(errors_of) >= 3:
            one = np.asarray(errors_of)
            off = np.abs(one[:, None] - one[None, :])[~np.eye(len(one), dtype=np.bool_)]
            sizes.append(off)
            weights.append(np.full(off.shape, 1.0 / len(off)))
    if not sizes:
        return float("nan")
    size, weight = np.concatenate(sizes), np.concatenate(weights)
    order = np.argsort(size)
    return float(size[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.8)])


def _line(name: str, score: dict[str, float]) -> str:
    if not score["n"]:
        return f"{name:44} no row"
    return (f"{name:44} n {score['n']:5.0f}  median {score['median']:5.1f}  MAPE {score['mape']:6.1f}  "
            f"p90 {score['p90']:6.1f}  ratio {score['bias']:5.2f}")  # fmt: skip


def main() -> int:
    """Print the figures of one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of measured.csv")
    cases, rows, left_out = load_cases(parser.parse_args().data)
    print("\n".join(report(cases, rows)))
    for reason, count in left_out.most_common():
        print(f"left out: {count} x {reason}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
