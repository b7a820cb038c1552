"""Do both hazards of spot capacity differ together? A pool where spells of both kinds are short has a pace of its own.

`python -m benchmarks.spot_pace --traces DIR [--days 4]`

Levels of both sides in windows of about four days, as in `benchmarks.fit_spot_scales` (one gang per record), with
normal effects of window, zone, region and pool, and of the days of a pool and of a region. For each effect in turn the
correlation of its two sides is estimated by restricted maximum likelihood, all sds fitted again, with what it adds to
the log likelihood; 1.9 is the 5 % bound of one parameter.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fit_spot import traces_of_file
from benchmarks.fit_spot_scales import Window, windows
from catalogs.tables.table import Floats
from planner.spot.hazards_cells import plain_type, plain_zone
from planner.spot.hazards_shrink import common_shape

EFFECTS = ("window", "zone", "region", "pool", "days of a pool", "days of a region")
_LEAST_EXPECTED = 1.0
_RIDGE = 1e-3  # keeps the sds of effects that are not there from running away


class Levels(NamedTuple):
    """Log levels of down and of up hazards with their variances, shape `(2 n,)`; what shares each effect, `(n, n)`."""

    level: Floats
    noise: Floats
    blocks: tuple[Floats, ...]
    design: Floats


def levels_of(found: tuple[Sequence[Window], Sequence[Window]]) -> Levels:
    """Windows of both sides, in the same order, as levels against the shape of each side."""
    counts, expected = [], []
    for side in found:
        ends, hours = np.stack([w.ends for w in side]), np.stack([w.hours for w in side])
        shape, _ = common_shape(ends, hours, np.ones(len(side)))
        counts.append(ends.sum(axis=1))
        expected.append(hours @ shape)
    used = np.flatnonzero((expected[0] > _LEAST_EXPECTED) & (expected[1] > _LEAST_EXPECTED))
    traces = [found[0][at].trace for at in used]
    pool = [(plain_type(t.instance_type), t.gang) for t in traces]
    region = [(*p, t.region) for p, t in zip(pool, traces, strict=True)]
    zone = [(*r, plain_zone(t.zone)) for r, t in zip(region, traces, strict=True)]
    when = [(t.source, t.start, found[0][at].number) for t, at in zip(traces, used, strict=True)]
    keys: list[Sequence[object]] = [
        zone, region, pool, list(zip(pool, when, strict=True)), list(zip(region, when, strict=True)),
    ]  # fmt: skip
    blocks = [np.asarray([[a == b for b in key] for a in key], dtype=float) for key in keys]
    one, log_gang = np.ones(len(used)), np.log([t.gang for t in traces])
    return Levels(
        np.concatenate([np.log((n + 0.5) / (e + 0.5))[used] for n, e in zip(counts, expected, strict=True)]),
        np.concatenate([1.0 / (n + 0.5)[used] for n in counts]),
        (np.eye(len(used)), *blocks),
        np.kron(np.eye(2), np.stack([one, log_gang], axis=1)),
    )


def loss(levels: Levels, log_sd: Floats, correlation: Floats) -> float:
    """Minus the restricted log likelihood, and a ridge on the sds.

    Args:
        levels: of both sides.
        log_sd: of each effect on either side, shape `(n_effects, 2)`.
        correlation: of the two sides of each effect, shape `(n_effects,)`.
    """
    total = np.diag(levels.noise)
    for (down, up), shared, block in zip(np.exp(log_sd), correlation, levels.blocks, strict=True):
        sides = np.asarray([[down * down, shared * down * up], [shared * down * up, up * up]])
        total = total + np.kron(sides, block)
    lower = np.linalg.cholesky(total)
    x, y = np.linalg.solve(lower, levels.design), np.linalg.solve(lower, levels.level)
    gram = x.T @ x
    rest = y - x @ np.linalg.solve(gram, x.T @ y)
    likelihood = 0.5 * rest @ rest + np.log(np.diag(lower)).sum() + 0.5 * np.linalg.slogdet(gram)[1]
    return float(likelihood + _RIDGE * ((log_sd + 1.0) ** 2).sum())


def fitted(levels: Levels, effect: int | None, start: Floats) -> tuple[float, Floats, float]:
    """Least loss, sds and the correlation of the sides of one effect; None: all sides apart."""
    from scipy.optimize import minimize

    n = len(levels.blocks)

    def of(parameters: Floats) -> float:
        shared = np.zeros(n)
        if effect is not None:
            shared[effect] = np.tanh(parameters[-1])
        return loss(levels, parameters[: 2 * n].reshape(n, 2), shared)

    first = start.ravel() if effect is None else np.append(start.ravel(), 0.0)
    best = minimize(of, first, method="L-BFGS-B", options={"maxiter": 25})
    found = 0.0 if effect is None else float(np.tanh(best.x[-1]))
    return float(best.fun), best.x[: 2 * n].reshape(n, 2), found


def main() -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--days", type=float, default=4.0)
    given = parser.parse_args()
    by_file = [traces_of_file(path) for path in sorted(given.traces.glob("*.json"))]
    if not by_file:
        parser.error(f"no *.json in {given.traces}: name a folder of records of spot capacity")
    traces = [t for found in by_file for t in found if t.gang == max(found[-1].gang // 2, 1)]
    down, up = ([w for t in traces for w in windows(t, given.days, side)] for side in (True, False))
    levels = levels_of((down, up))
    apart, log_sd, _ = fitted(levels, None, np.full((len(EFFECTS), 2), np.log(0.25)))
    print(f"{len(levels.level) // 2} windows; sides apart:")
    for effect, name in enumerate(EFFECTS):
        together, _, shared = fitted(levels, effect, log_sd)
        sds = " ".join(f"{sd:.2f}" for sd in np.exp(log_sd[effect]))
        print(
            f"  {name}: sd of down and up {sds}; correlated by {shared:+.2f}: log likelihood {apart - together:+.2f}"
        )


if __name__ == "__main__":
    main()
