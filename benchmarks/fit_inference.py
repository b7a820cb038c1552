"""Fit engines.csv and the constants `chip.*` and `decode.*` of inference.csv; with groups of rows left out in turn.

Soft-L1 least squares on the log of the rate, with a ridge towards typical values, so that an engine or a chip with few
rows stays near them. A bandwidth share above 1 is not identified by its rows (the fixed time of a step takes its part):
the planner caps engine x chip below 1. Rows faster than the full rates of their chip (`inference_rows.possible`) are
scored, never fitted. `--write` gives the scatter in the fit as widths: `benchmarks.engine_widths --write` comes after.

    python -m benchmarks.fit_inference --data measured.csv [--left-out] [--write]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from benchmarks.error_figures import errors
from benchmarks.inference_rows import Measured, load_cases, possible
from benchmarks.rows import read_csv, write_records
from catalogs.tables.table import Floats, Ints
from planner.files import write_atomically
from planner.performance.constants import DIRECTORY, load_constants
from planner.performance.inference.engines import find_engine
from planner.performance.inference.rates import USUAL_LAYERS, Cases, Efficiency, output_rate

FOLDS = 4
# Typical values of an engine's compute and bandwidth shares and step, s, and how hard they pull (in log).
ENGINE, ENGINE_PULL = (0.45, 0.75, 2e-3), (2.0, 4.0, 1.0)
# Programs without a name of their own are loops in Python (Transformers, Lightning, AutoGPTQ, ...): the host launches
# every layer, as in engines without CUDA graphs.
UNNAMED = "other"
CHIP_PULL = 1.5
# Other starts of an engine's three values, over the typical ones.
OTHER_STARTS = ((1.0, 1.0, 1.0), (0.2, 1.0, 1.0), (1.0, 1.0, 5.0), (0.2, 1.0, 5.0), (2.0, 1.2, 0.3))
COMMON = ("decode.layer_s", "decode.expert_layer_s", "decode.tensor_loss", "decode.layers_power", "decode.link_ratio",
          "decode.server_ratio", "decode.interactive_ratio")  # fmt: skip
PLAIN = ("decode.tensor_loss", "decode.layers_power")  # fitted as they are, others by their logarithm
COMMON_START = (np.log(2e-5), np.log(4e-5), 0.15, 0.0, 0.0, np.log(0.9), np.log(0.6))
COMMON_PULL = (1.0, 1.0, 5.0, 3.0, 1.0, 5.0, 2.0)
# Time of the host per sequence, s, of the engines whose table has it.
HOST, HOST_PULL = 2e-5, 0.5
SCATTER = 0.25
SOURCE = "python -m benchmarks.fit_inference"


class Question:
    """The rows, and which constants each depends on."""

    def __init__(self, cases: Cases, rows: list[Measured]) -> None:
        self.cases, self.rows = cases, rows
        found = [find_engine(row.engine, row.year) for row in rows]
        self.engines = sorted({(item.name, item.year) for item in found})
        self.chips = ["", *sorted({row.chip for row in rows} - {""})]
        self.engine = np.asarray([self.engines.index((item.name, item.year)) for item in found])
        self.chip = np.asarray([self.chips.index(row.chip) for row in rows])
        self.most = np.asarray([item.most_running for item in found])
        self.step_tokens = np.asarray([item.step_tokens for item in found])
        self.scenario = np.asarray(
            [[row.scenario == word for row in rows] for word in ("server", "interactive")]
        )
        self.rate = np.log([row.rate for row in rows])
        self.possible = possible(cases, rows)
        self.hosted = [at for at, key in enumerate(self.engines) if find_engine(*key).sequence_s > 0.0]
        hosted = len(self.hosted)
        compute, bandwidth, step = ENGINE
        launched = step + USUAL_LAYERS * load_constants()["decode.eager_layer_s"]
        steps = [launched if name == UNNAMED else step for name, _ in self.engines]
        self.start = np.concatenate(
            [
                np.log([compute] * len(steps) + [bandwidth] * len(steps) + steps),
                np.zeros(3 * (len(self.chips) - 1)),
                COMMON_START,
                np.full(hosted, np.log(HOST)),
            ]
        )
        self.pull = np.concatenate(
            [
                np.repeat(ENGINE_PULL, len(self.engines)),
                np.full(3 * (len(self.chips) - 1), CHIP_PULL),
                COMMON_PULL,
                np.full(hosted, HOST_PULL),
            ]
        )

    def split(self, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Values by engine, by chip (NVIDIA 0), common ones, and the host's time per sequence by engine, s."""
        size, others, common = len(self.engines), len(self.chips) - 1, len(COMMON)
        host = np.zeros(size)
        host[self.hosted] = np.exp(values[3 * (size + others) + common :])
        chips = values[3 * size : 3 * (size + others)].reshape(3, others)
        return (
            values[: 3 * size].reshape(3, size),
            np.hstack([np.zeros((3, 1)), chips]),
            values[3 * (size + others) : 3 * (size + others) + common],
            host,
        )

    def predict(self, values: Floats, at: Ints) -> Floats:
        """Log of the rate of rows `at`."""
        engine, chip, common, host = self.split(values)
        both = engine[:, self.engine[at]] + chip[:, self.chip[at]]
        made = Efficiency(
            np.minimum(np.exp(both[0]), 0.95), np.minimum(np.exp(both[1]), 0.98), np.exp(both[2]),
            float(np.exp(common[0])), float(np.exp(common[1])), float(common[2]), self.most[at],
            float(common[3]), float(np.exp(common[4])), host[self.engine[at]],
            step_tokens=self.step_tokens[at],
        )  # fmt: skip
        result: Floats = np.log(output_rate(self.cases.take(at), made)) + common[5:] @ self.scenario[:, at]
        return result

    def fit(self, at: Ints, start: Floats | None = None) -> Floats:
        """Constants that fit rows `at`, from `start` or from typical values and a search from engine to engine."""
        everything = np.arange(len(self.start))
        if start is not None:
            return self._least(at, everything, start)[0]
        values = self._least(at, everything, self.start)[0]
        for engine in range(len(self.engines)):
            values = self._better(at, engine, values)
        return self._least(at, everything, values)[0]

    def _better(self, at: Ints, engine: int, values: Floats) -> Floats:
        """`values` with the best figures of one engine from several starts: a slow step and a slow chip look alike."""
        mine, size = at[self.engine[at] == engine], len(self.engines)
        own = engine + size * np.arange(3)
        starts = [values] + [values.copy() for _ in OTHER_STARTS]
        for first, shifts in zip(starts[1:], OTHER_STARTS, strict=True):
            first[own] = self.start[own] + np.log(shifts)
        return min((self._least(mine, own, first) for first in starts), key=lambda found: found[1])[0]

    def _least(self, at: Ints, free: Ints, start: Floats) -> tuple[Floats, float]:
        """All constants with the `free` ones fitted to rows `at`, and the loss."""

        def gaps(some: Floats) -> Floats:
            values = start.copy()
            values[free] = some
            near = (self.predict(values, at) - self.rate[at]) / SCATTER
            return np.concatenate([near, self.pull[free] * (some - self.start[free])])

        found, out = least_squares(gaps, start[free], loss="soft_l1", max_nfev=30), start.copy()
        out[free] = found.x
        return out, float(found.cost)


def left_out(question: Question) -> Floats:
    """Log of the rate of every row, predicted with its group (source, model, accelerator) left out.

    Each fit searches for itself: one that began at the fit of all rows would stay near what the left-out ones say.
    """
    groups = sorted({row.group for row in question.rows})
    order = np.random.default_rng(0).permutation(len(groups))
    fold = {groups[at]: place % FOLDS for place, at in enumerate(order.tolist())}
    own = np.asarray([fold[row.group] for row in question.rows])
    predicted = np.zeros(len(own))
    for number in range(FOLDS):
        values = question.fit(np.flatnonzero((own != number) & question.possible))
        away = np.flatnonzero(own == number)
        predicted[away] = question.predict(values, away)
    return predicted


def _most_prompt(cases: Cases) -> float:
    """Prompt tokens for a token of an answer, the most of these rows; infinite where prompts alone are among them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(cases.prompt / cases.answer))


def write(question: Question, values: Floats, data: Path) -> None:
    """Rewrite the two tables; rows of engines that other commands write stay."""
    engine, chip, common, host = question.split(values)
    gap = np.abs(question.predict(values, np.arange(len(question.rows))) - question.rate)
    kept = {(row["engine"], int(row["year"])): row for row in read_csv(data / "engines.csv")}
    out = []
    for (name, year), old in sorted(kept.items()):
        out.append(old)
        if old["source"] != SOURCE:  # rows of another command, or of another engine
            continue
        at = question.engines.index((name, year))
        mine = (question.engine == at) & question.possible
        spread = max(float(np.quantile(gap[mine], 0.8)), 0.1)
        figures = dict(
            zip(("compute_ratio", "bandwidth_ratio", "step_s"), np.exp(engine[:, at]), strict=True)
        )
        figures |= {"spread": spread, "sequence_s": host[at]}
        figures["most_prompt"] = _most_prompt(question.cases.take(np.flatnonzero(mine)))
        old |= {key: f"{value:.3g}" for key, value in figures.items()} | {"rows": str(int(mine.sum()))}
    write_records(data / "engines.csv", out)
    changed = {name: float(x if name in PLAIN else np.exp(x)) for name, x in zip(COMMON, common, strict=True)}
    for row, word in enumerate(("compute", "bandwidth", "step")):
        changed |= {
            f"chip.{c}.{word}": float(np.exp(chip[row, k])) for k, c in enumerate(question.chips) if c
        }
    path = data / "performance" / "inference.csv"
    text = path.read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in text]
    fitted = [[c[0], f"{changed[c[0]]:.4g}", *c[2:]] if c[0] in changed else c for c in cells]
    write_atomically(path, "\n".join(",".join(c) for c in fitted) + "\n")


def _show(name: str, question: Question, predicted: Floats) -> None:
    rates, measured = np.exp(predicted), np.exp(question.rate)
    print(f"{name}, all rows:", errors(rates, measured))
    at = question.possible
    print(f"{name}, possible rows:", errors(rates[at], measured[at]), flush=True)


def main() -> int:
    """Fit, print the errors, write on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--left-out", action="store_true", help="also predict every row with its group left out"
    )
    parser.add_argument("--write", action="store_true", help="rewrite the planner's tables")
    chosen = parser.parse_args()
    cases, rows, _ = load_cases(chosen.data)
    question = Question(cases, rows)
    everything = np.arange(len(rows))
    values = question.fit(np.flatnonzero(question.possible))
    _show("fitted", question, question.predict(values, everything))
    if chosen.left_out:
        _show("group left out", question, left_out(question))
    if chosen.write:
        write(question, values, DIRECTORY.parent)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
