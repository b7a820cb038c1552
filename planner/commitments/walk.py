"""Scenarios of a year from a history whose level shifts, grows and ends.

The level of a pool starts at its level now (`planner.finops.forecast.level`) and moves every 28 days by a ratio that
some pair of adjoining 28-day blocks of the history had, but for blocks in which use began or ended: half of the draws
take the same pair for all pools, each with its own ratio, half take a ratio of any pool. A year of a few pools says
little of where all of them are going, so the mean of the log ratios counts as far as it stands out from chance,
1 - (standard error / mean)^2 of it and never less than none (W. James, C. Stein, "Estimation with quadratic loss",
1961, positive part); the standard error of a few ratios is itself uncertain, so it is that of Student's t with as many
degrees of freedom, and three ratios or fewer tell of no direction. Each time a pool ends for good with a chance that is
drawn once per scenario from what n ends among N blocks leave open, Beta(n + 1/2, N - n + 14). Its prior expects what
the one public bill shows, 2 ends among 58 blocks (mybinder.org 2017-12 to 2018-06, items of Compute Engine above $20:
`benchmarks.commit_ends`), and weighs as much as a quarter of that bill, so that neither does a history without an end
promise that none comes, nor a month of steady use let half of all use end within the next. Hours within a week follow
whole weeks of the history, all pools together, divided by the level of their block (block bootstrap; H. R. Künsch, Ann.
Stat. 17, 1989).
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.prices import HOURS_PER_YEAR
from planner.commitments.scenarios import DECIMALS, Future, Futures
from planner.finops.forecast.level import steady_level
from planner.records import record

BLOCK_DAYS = 28
WEEK = 7
LEAST_DAYS = 14
ENDED_DAYS = 3  # days without use at the end of a steady history that count as its end
_ENDED = 0.05  # of the block before: what is left of a pool that ended within a block
_MOST_RATIO = 4.0  # of a block to the one before
_PRIOR_ENDS, _PRIOR_LIVED = 2 / 4, 58 / 4  # blocks of other bills that count beside a history's own
_MOST_ERRORS = 2.0  # standard errors by which weeks differ and are still one level


@record(frozen=True, eq=False)
class Moves:
    """What the history says of changes.

    Attributes:
        level: machines in use now, shape `(P,)`.
        ratio: level of a block over that of the one before, latest first, less the drift that may be chance; NaN where
            there is none, shape `(K, P)`.
        ended: ends of pools, among `lived` blocks that could have been followed by one.
        blocks: mean use of each block of 28 days, latest first, shape `(B, P)`.
    """

    level: Floats
    ratio: Floats
    ended: int
    lived: int
    blocks: Floats


def moves_of(daily: Floats) -> Moves:
    """Return the level now and its past changes.

    Args:
        daily: machines in use, mean of each day, shape `(D, P)`, at least 14 days.
    """
    count = max(len(daily) // BLOCK_DAYS, 1)
    blocks = np.stack([
        daily[max(len(daily) - BLOCK_DAYS * (k + 1), 0) : len(daily) - BLOCK_DAYS * k].mean(axis=0)
        for k in range(count)
    ])  # fmt: skip
    before, after = blocks[1:], blocks[:-1]
    opening = daily[: max(len(daily) - BLOCK_DAYS * count, 0) + WEEK].mean(axis=0, keepdims=True)
    started = np.vstack([before[1:], opening])[: len(before)]  # use before the block before
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = after / before
    ended = (before > 0) & (ratio < _ENDED) & (np.cumsum(after, axis=0) <= _ENDED * before)
    lived = int((before > 0).sum())
    cut_short = np.vstack([np.zeros_like(ended[:1]), ended[:-1]])  # the block after which nothing came
    keep = (before > 0) & (ratio >= _ENDED) & (started > 0) & ~cut_short  # whole blocks only
    ratio = np.where(keep, np.clip(ratio, 1 / _MOST_RATIO, _MOST_RATIO), np.nan)
    level = np.array([_level_now(daily[:, pool]) for pool in range(daily.shape[1])])
    ratio[:1, level == 0] = np.nan  # use that stopped within the last block
    return Moves(level, _without_chance_drift(ratio), int(ended.sum()), lived, blocks)


def _without_chance_drift(ratio: Floats) -> Floats:
    """Ratios whose mean logarithm is shrunk towards none by its own standard error, that of Student's t."""
    logs = np.log(ratio[np.isfinite(ratio)])
    if not len(logs):
        return ratio
    mean, freedom = float(logs.mean()), len(logs) - 1
    chance = 1.0  # the spread of the mean of three is infinite
    if freedom > 2:
        variance = float(logs.var(ddof=1)) / len(logs) * freedom / (freedom - 2)  # of the mean
        chance = variance / mean**2 if variance < mean**2 else 1.0
    return np.asarray(ratio * np.exp(-chance * mean))


def _level_now(use: Floats) -> float:
    """Level of a pool at the end of its history; 0 where its use ended."""
    used = use > 0
    silent = len(use) - 1 - int(np.flatnonzero(used)[-1]) if used.any() else len(use)
    if silent >= WEEK:
        return 0.0
    recent = used[-(BLOCK_DAYS + silent) : len(used) - silent]
    if silent >= ENDED_DAYS and recent.mean() > 0.9:
        return 0.0
    return max(float(np.nan_to_num(steady_level(use, _MOST_ERRORS)[-1])), 0.0)


def draw_year(use: Floats, step_hours: int, *, count: int, rows: int, seed: int) -> Futures:
    """Draw scenarios of the year after a history.

    Args:
        use: machines in use per step, shape `(n, P)`; whole days, the last one just before the year.
        step_hours: 1 or 24.
        count: scenarios.
        rows: steps evaluated of each scenario.
        seed: of the draws; each scenario has its own random stream.
    """
    per_day = 24 // step_hours
    daily = use.reshape(-1, per_day, use.shape[1]).mean(axis=1)
    moves = moves_of(daily)
    shape = _shapes(use, per_day, moves.blocks)
    steps = HOURS_PER_YEAR // step_hours
    rows = min(rows, steps)
    out = []
    for scenario in range(count):
        draw = np.random.default_rng([seed, scenario])
        at = np.sort(draw.choice(steps, rows, replace=False))
        level = _walk(draw, moves)[at // (BLOCK_DAYS * per_day)]
        week = draw.integers(len(shape), size=steps // (WEEK * per_day) + 1)
        demand = level * shape[week[at // (WEEK * per_day)], at % (WEEK * per_day)]
        weight = np.full(rows, HOURS_PER_YEAR / rows)
        out.append(Future(scenario, 0, at * step_hours, weight, demand.round(DECIMALS)))
    names = tuple(f"s{number + 1}" for number in range(count))
    return Futures(names, np.full(count, 1 / count), tuple(out))


def _shapes(use: Floats, per_day: int, blocks: Floats) -> Floats:
    """Weeks of the history over the level of their block, from the last one back, shape `(W, steps, P)`."""
    length = WEEK * per_day
    out = []
    for week in range(len(use) // length):
        end = len(use) - week * length
        level = blocks[min(week * WEEK // BLOCK_DAYS, len(blocks) - 1)]
        safe = np.where(level > 0, level, 1.0)
        out.append(np.where(level > 0, use[end - length : end] / safe, 1.0))
    return np.stack(out)


def _walk(draw: np.random.Generator, moves: Moves) -> Floats:
    """Levels of the blocks of one year, the first at the level now, shape `(14, P)`."""
    pools, count = len(moves.level), HOURS_PER_YEAR // 24 // BLOCK_DAYS + 1
    known = moves.ratio[np.isfinite(moves.ratio)]
    level = np.tile(moves.level, (count, 1))
    survived = moves.lived - moves.ended + _PRIOR_LIVED - _PRIOR_ENDS
    end = draw.beta(moves.ended + _PRIOR_ENDS, survived)
    for block in range(1, count):
        ratio = np.ones(pools)
        if len(known):
            ratio = known[draw.integers(len(known), size=pools)]
            if draw.random() < 0.5:
                mine = moves.ratio[draw.integers(len(moves.ratio))]
                ratio = np.where(np.isfinite(mine), mine, ratio)
        level[block] = level[block - 1] * ratio * (draw.random(pools) >= end)
    return level
