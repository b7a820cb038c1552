"""How likely the choice stays the best one: its rivals beside it under drawn errors of price, speed and interruptions.

Every draw is one world in which all rivals are worked out again (`planner.candidates.reevaluate`). What one estimate
is behind has one error: all sizes of an accelerator share that of the speed, spot prices that of the provider's market
and of the type, places without a record that of their evidence. Each error has its own stream of numbers, named by what
it is the error of, so that adding a rival changes none of the others' worlds.

Of the intervals that a plan states: the speed is log-normal around the prediction; a price has the distribution whose
80 % interval is stated; rates of interruptions and waits are log-normal with the expected ones as their means.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.decisions import HAIR_RATIO, best_decisions
from planner.candidates.reevaluate import Errors, reevaluate
from planner.market.expected_price import shared_variance
from planner.market.spot_prices import DERIVED, OBSERVED
from planner.normal import Z95
from planner.normal.arrays import normal_cdf
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates


DRAWS, RIVALS, SEED = 1000, 40, 1
_CHUNK = 50  # draws worked out at once


@record(frozen=True)
class Rival:
    """A decision among the cheapest (for the objective time: soonest).

    Attributes:
        at: position of its candidate.
        best_ratio: share of draws in which it is the best of all.
        beats_ratio: share of draws in which it is better than the choice; of the choice itself 0.
        same_cluster: whether it is the choice's instance type and count, bought elsewhere or in another way.
    """

    at: int
    best_ratio: float
    beats_ratio: float
    same_cluster: bool = False


@record(frozen=True)
class StaysBest:
    """What the draws say.

    Attributes:
        draws, seed: how many, and what they follow from.
        best_ratio: share of draws in which the choice is the best of the rivals.
        low_ratio, high_ratio: 95 % interval of that share, for so many draws (Wilson 1927).
        cluster_ratio: share in which the best is on the choice's instance type and count, however bought.
        near_ratio: share in which it is at most `HAIR_RATIO` worse than the best.
        late_ratio: share in which its expected end, at the speed drawn, is after the deadline or beyond the budget.
        none_ratio: share in which that holds of every rival.
        more_ratio: what it costs (takes) more than the best in the mean of draws in which both keep the limits.
        rivals: the choice, then the others by how often they are the best.
    """

    draws: int
    seed: int
    best_ratio: float
    low_ratio: float
    high_ratio: float
    cluster_ratio: float
    near_ratio: float
    late_ratio: float
    none_ratio: float
    more_ratio: float
    rivals: tuple[Rival, ...]


class _Worlds:
    """Errors by what they are the error of, each a stream of its own."""

    def __init__(self, seed: int, draws: int) -> None:
        self.seed, self.draws = seed, draws
        self._known: dict[str, Floats] = {}

    def normal(self, *key: object) -> Floats:
        """Standard normal numbers of one error, shape `(draws,)`."""
        name = "/".join(map(str, key))
        if name not in self._known:
            stream = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
            self._known[name] = stream.standard_normal(self.draws)
        return self._known[name]


def stays_best(
    candidates: Candidates, winner: int, *, draws: int = DRAWS, seed: int = SEED, rivals: int = RIVALS,
    progress: Callable[[int, int], None] | None = None,
) -> StaysBest:  # fmt: skip
    """Draw worlds, and count in how many the choice is the best.

    Args:
        candidates: all candidates.
        winner: position of the choice.
        draws: worlds.
        seed: the same seed gives the same worlds.
        rivals: decisions to compare, the best first.
        progress: told the number of draws done and of all.
    """
    at = best_decisions(candidates, rivals)
    at = np.append(winner, at[at != winner])[:rivals]
    worlds = _Worlds(seed, draws)
    price = _price_errors(candidates, at, worlds)
    speed, rate, wait = _run_errors(candidates, at, worlds)
    value = np.empty((draws, len(at)))
    for first in range(0, draws, _CHUNK):
        part = slice(first, min(first + _CHUNK, draws))
        value[part] = _values(candidates, at, (speed[part], rate[part], wait[part]), price, part)
        if progress is not None:
            progress(part.stop, draws)
    type_of, machine = candidates.context.market.offer_set.type_of_offer, candidates.offer[at]
    same = (type_of[machine] == type_of[machine[0]]) & (candidates.nodes[at] == candidates.nodes[winner])
    return _counted(value, at, seed, np.asarray(same, dtype=np.bool_))


def _values(
    candidates: Candidates, at: Ints, run: tuple[Floats, Floats, Floats], price: dict[int, Floats],
    part: slice,
) -> Floats:  # fmt: skip
    """What is compared in each world, infinity where a limit is broken, shape `(worlds, rivals)`."""
    context, shape = candidates.context, run[0].shape
    work, rate, wait = (error.ravel() for error in run)
    true = Errors(work, rate, wait, known=True)
    reevaluated = reevaluate(candidates, np.tile(at, shape[0]), true)
    dearer = np.zeros(len(reevaluated.hours))
    for row, factor in price.items():
        each = np.repeat(factor[part], shape[1]) - 1.0
        dearer += each * (reevaluated.paid_usd * (reevaluated.offer == row)).sum(axis=1)
    limits, hours = context.asked.workload.constraints, context.dates.deadline_hours
    broken = np.zeros(len(dearer), dtype=np.bool_)
    if hours is not None:
        broken |= reevaluated.hours > hours
    if limits.budget_usd is not None:
        broken |= reevaluated.cash_usd + dearer > float(limits.budget_usd)
    by_hours = context.asked.workload.preferences.objective == "time"
    value = reevaluated.hours if by_hours else reevaluated.cost_usd + dearer
    return np.where(broken, np.inf, value).reshape(shape)


def _run_errors(candidates: Candidates, at: Ints, worlds: _Worlds) -> tuple[Floats, Floats, Floats]:
    """Factors of work, of rates of interruption and of waits, shape `(draws, rivals)` each."""
    speed, rate, wait = (np.ones((worlds.draws, len(at))) for _ in range(3))
    context = candidates.context
    types, kind_of = context.market.offer_set.types, context.market.offer_set.type_of_offer
    # how long this run takes over what its steps say is one thing, whatever it runs on
    of_run = math.hypot(context.asked.job.stop_log_sd, context.asked.assumptions.whole_run_log_sd)
    for column, one in enumerate(at.tolist()):
        family = str(types["accelerator"][kind_of[candidates.offer[one]]]).partition("-")[0]
        own = math.sqrt(max(float(candidates.sigma[one]) ** 2 - of_run**2, 0.0))
        speed[:, column] = np.exp(own * worlds.normal("speed", family) + of_run * worlds.normal("run"))
        spot = [part for part in candidates.parts(one) if context.market.is_spot[part.row]]
        if not spot:
            continue
        rows, nodes = (np.asarray([getattr(part, name) for part in spot[:1]]) for name in ("row", "nodes"))
        risk = context.gang_risk(rows, nodes)
        recorded = bool(risk.recorded[0])
        place = context.market.pool_of_offer[rows[0]] if recorded else risk.sources[int(risk.source[0])]
        sd = float(risk.pool.frailty_sd[0])
        for name, factor in (("rate", rate), ("wait", wait)):
            factor[:, column] = np.exp(sd * worlds.normal(name, place) - sd * sd / 2.0)
    return speed, rate, wait


def _price_errors(candidates: Candidates, at: Ints, worlds: _Worlds) -> dict[int, Floats]:
    """Factors of each offer's price over the expected one, shape `(draws,)`; firm prices are left out."""
    offer_set = candidates.context.market.offer_set
    book, offers = offer_set.book, offer_set.offers
    out = {}
    for row in sorted({part.row for one in at.tolist() for part in candidates.parts(one)}):
        if not 0 < book.p10_ratio[row] < book.p90_ratio[row]:
            continue
        provider, kind = str(offers["provider"][row]), str(offers["instance_type"][row])
        pool = candidates.context.market.pool_of_offer[row]
        if int(book.kind[row]) in (OBSERVED, DERIVED):
            shares = shared_variance(provider, float(book.horizon_days[row]))
            names = (("market", provider), ("type", provider, kind), ("place", pool))
        else:  # a list changes for a type, wherever it is sold
            shares, names = (0.0, 1.0, 0.0), (("market", provider), ("list", provider, kind), ("place", pool))
        z = np.asarray(
            sum(math.sqrt(share) * worlds.normal(*name) for share, name in zip(shares, names, strict=True))
        )
        out[row] = book.quantile(row, normal_cdf(z)) / float(book.expected_ratio[row])
    return out


def _counted(value: Floats, at: Ints, seed: int, same: Bools) -> StaysBest:
    """Count the worlds; the choice is the first column. `same`: on its machines and count, shape `(rivals,)`."""
    draws = len(value)
    best = value.min(axis=1)
    some = np.isfinite(best)
    first = np.where(some, value.argmin(axis=1), -1)
    shares = np.bincount(first[some], minlength=len(at)) / draws
    chosen, kept = value[:, 0], np.isfinite(value[:, 0])
    low, high = wilson(float(shares[0]), draws)
    beats = (value < chosen[:, None]).mean(axis=0)
    over = chosen[kept] / np.where(best[kept] > 0, best[kept], 1.0) - 1.0
    order = [0, *(np.argsort(-shares[1:], kind="stable") + 1).tolist()]
    return StaysBest(
        draws=draws, seed=seed, best_ratio=float(shares[0]), low_ratio=low, high_ratio=high,
        cluster_ratio=float(shares[same].sum()),
        near_ratio=float((over <= HAIR_RATIO).sum() / draws), late_ratio=float((~kept).mean()),
        none_ratio=float((~some).mean()), more_ratio=float(over.mean()) if len(over) else math.nan,
        rivals=tuple(Rival(int(at[k]), float(shares[k]), float(beats[k]), bool(same[k])) for k in order),
    )  # fmt: skip


def wilson(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a probability of which `share` of `count` independent trials came true (Wilson, 1927)."""
    square = Z95 * Z95 / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = Z95 * math.sqrt(share * (1.0 - share) / count + square / (4.0 * count)) / (1.0 + square)
    return max(middle - half, 0.0), min(middle + half, 1.0)
