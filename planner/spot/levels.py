"""Levels of hazards in drawn futures: how far the days of a job lie from the record.

A table's frailty has two parts. One is the zone's own: how little was seen of it. The other is the drift between the
days of the record and others, `drift_sd` in hazard_scales.csv. Zones of an instance type drift together: once the mean
of their common days is an effect of its own, hardly any drift of a single zone is left, and half of its variance is
weather, which futures draw anyway. So futures draw one level for all zones of a type, `days_sd`, and each zone's own
beside it. The hours before launch speak of both: what several zones show is believed of their days, what one of them
shows of that zone. What no record is behind, a band or a prior, is wrong by one level for all zones that
it is said of, as wide as the table is unsure, as plans have it (`planner.spot.zones`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats
from planner.spot.hazards_cells import scale

_GRID = np.linspace(-3.5, 3.5, 57)  # levels in prior sd; more than 3.5 sd away nothing is believed


class Known(NamedTuple):
    """What is known of one side of a zone.

    Attributes:
        pool: zones with the same one share their days.
        frailty_sd: of its table.
        ends: spells that were seen to end before launch.
        expected: what the table expects of them; 0 and 0 without a history.
        line: of a table without a record: zones of a pool with the same one share their whole level; None: recorded.
    """

    pool: Hashable
    frailty_sd: float
    ends: float
    expected: float
    line: Hashable = None


def draw_levels(
    rng: np.random.Generator, side: Literal["down", "up"], zones: Sequence[Known], n: int
) -> Floats:
    """Levels of one side's hazards, shape `(n_zones, n)`; exact on a grid of the days' level and of each zone's own."""
    out = np.empty((len(zones), n))
    lines: dict[Hashable, list[int]] = {}
    for number, zone in enumerate(zones):
        if zone.line is not None:
            lines.setdefault((zone.pool, zone.line, zone.frailty_sd), []).append(number)
    for at in lines.values():
        ends, expected = (sum(getattr(zones[number], what) for number in at) for what in ("ends", "expected"))
        out[at] = sample_level(zones[at[0]].frailty_sd, ends, expected, rng.random(n))
    recorded = [number for number, zone in enumerate(zones) if zone.line is None]
    for pool in dict.fromkeys(zones[number].pool for number in recorded):
        at = [number for number in recorded if zones[number].pool == pool]
        parts = [_parts(zones[number].frailty_sd, side) for number in at]
        weight = -0.5 * _GRID**2
        for number, (own, shared) in zip(at, parts, strict=True):
            expected = zones[number].expected * np.exp(shared * _GRID)
            of_own = _log_weight(own, zones[number].ends, expected)
            weight = weight + zones[number].ends * shared * _GRID + np.logaddexp.reduce(of_own, axis=1)
        days = _drawn(weight[None, :], rng.random(n))
        for number, (own, shared) in zip(at, parts, strict=True):
            of_days = np.exp(shared * days)
            levels = sample_level(own, zones[number].ends, zones[number].expected * of_days, rng.random(n))
            out[number] = of_days * levels
    return out


def sample_level(sd: float, ends: float, expected: npt.ArrayLike, quantile: Floats) -> Floats:
    """Levels of a hazard given `ends` where a level of 1 expects `expected`, one per entry of `quantile`.

    With N ends where E are expected, a level theta has the likelihood `theta^N exp(-theta E)`.

    Args:
        sd: prior sd of the log level.
        ends: spells that were seen to end.
        expected: what the table expects of them, one figure or one per level; 0 and no end give the prior.
        quantile: where in the posterior each level lies, in 0..1.
    """
    return np.exp(sd * _drawn(_log_weight(sd, ends, np.atleast_1d(np.asarray(expected))), quantile))


def _parts(frailty_sd: float, side: Literal["down", "up"]) -> tuple[float, float]:
    """Sds of a zone's own log level and of its days'; a table that is surer than the drift has less of both."""
    drift = scale("drift_sd", side)
    own = float(np.sqrt(max(frailty_sd**2 - drift**2, 0.0)))
    return own, scale("days_sd", side) * min(frailty_sd / drift, 1.0)


def _log_weight(sd: float, ends: float, expected: Floats) -> Floats:
    """Log posterior weight of the grid's levels, one row per entry of `expected`."""
    return np.asarray(-0.5 * _GRID**2 + ends * sd * _GRID - expected[:, None] * np.exp(sd * _GRID))


def _drawn(log_weight: Floats, quantile: Floats) -> Floats:
    """Where on the grid each quantile lies; `log_weight` has one row for all or one for each."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    # half of a level's weight lies below it
    below = np.broadcast_to(np.cumsum(weight, axis=1) - 0.5 * weight, (len(quantile), len(_GRID)))
    target = quantile * weight.sum(axis=1)
    right = np.clip((below < target[:, None]).sum(axis=1), 1, len(_GRID) - 1)
    rows = np.arange(len(quantile))
    low, high = below[rows, right - 1], below[rows, right]
    part = np.clip((target - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    return np.asarray(_GRID[right - 1] + part * (_GRID[1] - _GRID[0]))
