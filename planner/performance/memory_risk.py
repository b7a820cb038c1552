"""How likely a job runs out of memory, and what part of an accelerator's memory a plan may count on.

The log of measured over predicted need scatters as a logistic distribution whose scale comes from residuals with whole
sources left out, so P(out of memory) = 1 / (1 + (available / need) ^ (1 / scale)).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats
from planner.performance.constants import Constants


def oom_probability(
    need_gib: npt.ArrayLike, available_gib: npt.ArrayLike, c: Constants, *, scale: float | None = None
) -> Floats:
    """Probability that a job which is predicted to need `need_gib` does not fit into `available_gib`.

    Args:
        need_gib: predicted need per accelerator, GiB.
        available_gib: what a framework can allocate there, GiB.
        c: constants.
        scale: scale of the log ratio, by default `memory.spread`; smaller after the user's own measurement.

    Returns:
        0..1, NaN where either is unknown.
    """
    spread = c["memory.spread"] if scale is None else scale
    need, available = np.asarray(need_gib, dtype=np.float64), np.asarray(available_gib, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        result: Floats = 1.0 / (1.0 + np.exp(np.clip(np.log(available / need) / spread, -700.0, 700.0)))
    return result


def usable_gib(memory_gib: Floats, memory_bytes_per_s: Floats, c: Constants) -> Floats:
    """What a framework can allocate of an accelerator's stated memory, GiB.

    Stacked memory (HBM) keeps its error codes apart; a data-centre card with GDDR keeps them in the memory itself,
    1/16 of it. Fast GDDR consumer cards have none, so the rule takes the bandwidth: below that of any HBM. A provider
    that states what its API sees (22.35 GiB of a 24 GB card) has taken them off already: only whole sizes are nominal.
    """
    slow = memory_bytes_per_s < c["memory.hbm_gb_per_s"] * 1e9
    nominal = memory_gib == np.round(memory_gib)
    return memory_gib * np.where(slow & nominal, c["memory.usable_ratio.gddr"], c["memory.usable_ratio"])


def budget_gib(available_gib: Floats, c: Constants, confidence: float | None = None) -> Floats:
    """The greatest predicted need that a layout may have.

    Args:
        available_gib: what a framework can allocate, GiB.
        c: constants.
        confidence: probability with which it must fit; None: 1 - `memory.oom_limit`.
    """
    limit = c["memory.oom_limit"] if confidence is None else 1.0 - confidence
    return available_gib * math.exp(c["memory.spread"] * math.log(limit / (1.0 - limit)))
