"""Workers of a fleet: what each delivers per hour, what it costs, and how long it may work.

A worker waits (provisioning, data into the region), is in use for its fixed hours (image, warm-up, export), then works
h hours, as long as its work takes at the predicted speed: there must be time, and a purchase, for `caution` times h.
Its cost is linear in h: the hours paid, the system disk, and storage for the time it is there. Options that are not
sold by the hour are linear too: a whole term, or a block of one length, is a fixed cost that buys at most so many
hours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.kept import Kept, copy_rate, kept_by
from planner.market.ends import hours_after, owned_hours
from planner.market.pricing import HOURS_PER_MONTH, QUANTUM
from planner.market.storage.stores import FILE_SYSTEM
from planner.spot.renewal import launch_wait_hours

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from catalogs.tariffs import OptionRule
    from planner.candidates.model import Candidates
    from planner.market.costs import Money
    from planner.market.model import Market


HAIR = 1e-6  # of a run: rounding of what a solver divides
COARSE_HOURS = 1 / 60  # a billing granularity from here on is planned in whole granules
# a whole number of every billing granularity, so that prices per hour come out exactly
_PROBE_HOURS = 1_000.0


@dataclass(frozen=True, eq=False)
class Workers:
    """Ways to be a worker, shape `(n_workers,)` each.

    Attributes:
        at: position among the candidates; rows: offer; nodes: instances of one worker.
        lead_hours: before its work begins, waiting and fixed hours together; fixed_hours: those in use.
        hours_limit: most hours of work, at the predicted speed.
        units_per_hour: tokens or samples per hour of work, at the predicted speed.
        caution: cautious over predicted time of the same work.
        paid_ratio: paid part of the hours of work (spot is not paid while it waits).
        fixed_usd: cost of a worker that does nothing; usd_per_hour: of an hour of its work; NaN unknown.
        place_usd: what its place costs once (transfers).
        granule_hours: billing granularity; granule_usd: most that rounding its hours up to it adds.
        store, gang_workers, gang_part: where it reads the data from, chosen as if the fleet were of its offer alone
            (`planner.fleet.kept.Kept`: code, workers, part).
        copy_usd_per_hour: of the copy of the data set that workers of its place share; opened_usd: least that the use
            of its place costs beside transfers; system_usd_per_hour: of a file system for a fleet of its offer alone.
        start_fixed_usd, start_usd_per_hour: as `fixed_usd` and `usd_per_hour`, at the price of the start; spot prices
            move while a worker is there (`planner.fleet.moving_price`).
        best_hours: at which an hour costs least, `hours_limit` where longer is always better.
        runs_limit: whole runs that there is time for (`in_whole_runs`), infinite where work divides freely.
        left_hours: in use until what the user pays ends and it goes on at a price, infinite where nothing ends;
            work_log_sd: log error of the predicted speed, 0 where it is known.
    """

    at: Ints
    rows: Ints
    nodes: Ints
    lead_hours: Floats
    fixed_hours: Floats
    hours_limit: Floats
    units_per_hour: Floats
    caution: Floats
    paid_ratio: Floats
    fixed_usd: Floats
    usd_per_hour: Floats
    place_usd: Floats
    granule_hours: Floats
    granule_usd: Floats
    store: Ints
    gang_workers: Floats
    gang_part: Floats
    copy_usd_per_hour: Floats
    opened_usd: Floats
    system_usd_per_hour: Floats
    start_fixed_usd: Floats
    start_usd_per_hour: Floats
    best_hours: Floats
    runs_limit: Floats
    left_hours: Floats
    work_log_sd: Floats

    @classmethod
    def joined(cls, parts: list[Workers]) -> Workers:
        """Return the workers of all parts, one part after the other."""
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__)
        )

    def take(self, numbers: Ints) -> Workers:
        """Return the workers `numbers`."""
        return Workers(*(getattr(self, name)[numbers] for name in self.__dataclass_fields__))

    def price(self, market: Market, hours: Floats, mean_hours: Floats | None = None) -> Money:
        """Price one worker of each for `hours` of work, as billed (granularity, minimum, blocks, terms).

        Prices are those to expect in the middle of a run, from the start of all work to its end: of this worker, or of
        one that works `mean_hours`, as a line of workers has one price.
        """
        held = np.where(bought_whole(market, self.rows), self.caution, 1.0)  # what is bought holds a slow run
        paid, ends = self.fixed_hours + hours * self.paid_ratio * held, self.lead_hours + hours
        run = ends if mean_hours is None else self.lead_hours + mean_hours
        money = market.costs.evaluate(self.rows, self.nodes, paid, ends, run_hours=run)
        more = market.costs.after_usd(self.rows, self.after_hours(hours), run)
        sums = {name: getattr(money, name) + more for name in ("worker_usd", "cost_usd", "cash_usd")}
        return replace(money, **sums) if more.any() else money

    def after_hours(self, hours: Floats) -> Floats:
        """Expected instance-hours of one worker after the end of what the user pays, for `hours` of work."""
        if np.isinf(self.left_hours).all():
            return np.zeros(len(self.rows))
        more = hours_after(self.left_hours, hours, self.fixed_hours, self.work_log_sd)
        return np.asarray(np.round(self.nodes * more, QUANTUM))


def build_workers(candidates: Candidates, limit_hours: float) -> Workers:
    """Return every way to be a worker among the feasible candidates.

    Args:
        candidates: candidates of one run each.
        limit_hours: hours from the start to the end of all work.
    """
    return build_with_storage(candidates, limit_hours)[0]


@lru_cache(maxsize=2)  # one question asks it of the same candidates up to three times
def build_with_storage(candidates: Candidates, limit_hours: float) -> tuple[Workers, Kept]:
    """The same, with what a fleet of each offer alone pays for its data; arguments of `build_workers`."""
    context = candidates.context
    lead = candidates.waiting_hours + candidates.fixed_hours
    feasible = np.flatnonzero((candidates.bits == 0) & (lead < limit_hours))
    at, most_paid, whole = _ways(candidates, feasible, limit_hours)
    rows, nodes = candidates.offer[at], candidates.nodes[at]
    course = _course_hours(candidates, at)
    granule = _granule_hours(context.market, rows)
    fixed = candidates.fixed_hours[at]
    ratio = (candidates.paid_hours[at] - fixed) / course
    caution = _caution(candidates)[at]
    room = (limit_hours - lead[at]) / caution
    left = owned_hours(context.market.offer_set, rows, context.dates.start) - candidates.waiting_hours[at]
    hours = np.minimum(np.minimum(room, (most_paid - fixed) / ratio / caution), left - fixed)
    fixed_usd, usd_per_hour = _prices(context.market, rows, nodes, np.where(whole, most_paid, np.nan))
    stored, place = _place_prices(context.market, rows, nodes)
    units_per_hour = context.asked.job.total_units / course
    most = _most_workers(candidates, nodes)
    kept = kept_by(candidates, at, units_per_hour, room, most)
    copy = copy_rate(context.market, rows)
    stored = stored + kept.usd_per_hour + copy / most
    opened = _least_by(context.market.region_of_offer[rows], kept.shared_usd)
    first = fixed_usd + usd_per_hour * fixed + stored * lead[at] + kept.once_usd
    first = first + (kept.shared_usd - opened) / most
    later = usd_per_hour * ratio + stored + kept.usd_per_unit * units_per_hour
    workers = Workers(
        at=at, rows=rows, nodes=nodes, lead_hours=lead[at], fixed_hours=fixed, hours_limit=hours,
        units_per_hour=units_per_hour, caution=caution, paid_ratio=ratio,
        fixed_usd=first, usd_per_hour=later, start_fixed_usd=first, start_usd_per_hour=later, best_hours=hours,
        place_usd=place,
        granule_hours=granule, granule_usd=usd_per_hour * granule,
        store=kept.code, gang_workers=kept.workers, gang_part=kept.part, copy_usd_per_hour=copy,
        opened_usd=opened, system_usd_per_hour=np.where(kept.code >= FILE_SYSTEM, kept.alone_usd_per_hour, 0.0),
        runs_limit=np.full(len(at), np.inf), work_log_sd=candidates.sigma[at],
        left_hours=np.where(context.market.costs.goes_on(rows), left, np.inf),
    )  # fmt: skip
    known = np.isfinite(workers.fixed_usd) & np.isfinite(workers.usd_per_hour)
    usable = np.flatnonzero(known & (workers.hours_limit > 0))
    return workers.take(usable), kept.take(usable)


def _course_hours(candidates: Candidates, at: Ints) -> Floats:
    """Expected hours of one run of a worker that goes on from run to run, shape `(n_at,)`.

    Spot may be down when it is asked for. A worker meets that once, not at each of its runs, and the share of time that
    its machine is up holds it already: a process that is in balance is up that share of every hour, the first too.
    """
    course = candidates.hours[at] - candidates.waiting_hours[at] - candidates.fixed_hours[at]
    spot = np.flatnonzero(candidates.context.market.is_spot[candidates.offer[at]])
    if len(spot):
        pool = candidates.context.gang_risk(candidates.offer[at[spot]], candidates.nodes[at[spot]]).pool
        course[spot] -= launch_wait_hours(pool)
    return course


def _least_by(region: Ints, usd: Floats) -> Floats:
    """Least of each worker's region, shape `(n_workers,)`."""
    least = np.full(int(region.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, region, usd)
    return np.asarray(least[region])


def _most_workers(candidates: Candidates, nodes: Ints) -> float:
    """Workers that may be used together, at least one."""
    limit = candidates.context.asked.workload.constraints.max_nodes
    return float(max(limit // max(int(nodes.max(initial=1)), 1), 1))


def bought_whole(market: Market, rows: Ints) -> Bools:
    """Whether each offer is a block or a whole term, owed in full, shape `(n_rows,)`."""
    whole = [bool(rule.block_hours) or rule.whole_term for rule in market.offer_set.rules]
    return np.asarray(whole, dtype=np.bool_)[market.offer_set.rule_of_offer[rows]]


def _granule_hours(market: Market, rows: Ints) -> Floats:
    granules = [(rule.billing_granularity_s or 1.0) / 3600.0 for rule in market.offer_set.rules]
    return np.asarray(granules, dtype=np.float64)[market.offer_set.rule_of_offer[rows]]


def _caution(candidates: Candidates) -> Floats:
    """Step time at the confidence asked for, over the middle of the prediction, per candidate."""
    context = candidates.context
    z = NormalDist().inv_cdf(context.asked.workload.constraints.deadline_confidence)
    return np.asarray(np.exp(np.maximum(z, 0.0) * candidates.sigma), dtype=np.float64)


def _ways(candidates: Candidates, feasible: Ints, limit_hours: float) -> tuple[Ints, Floats, Bools]:
    """Candidates, most paid hours and whether those are owed in full; a candidate sold in blocks comes once per length.

    The lengths up to the first that holds the whole time are kept: a later deadline adds to them, it takes none away.
    """
    context = candidates.context
    rule_of = context.market.offer_set.rule_of_offer[candidates.offer[feasible]]
    term = context.market.offer_set.offers["term_hours"][candidates.offer[feasible]].astype(np.float64)
    at, most, whole = [], [], []
    for code, rule in enumerate(context.market.offer_set.rules):
        mine = np.flatnonzero(rule_of == code)
        for length, owed in _lengths(rule, limit_hours):
            hours = np.where(np.isnan(term[mine]), length, term[mine]) if rule.whole_term else length
            at.append(feasible[mine])
            most.append(np.broadcast_to(np.asarray(hours, dtype=np.float64), mine.shape))
            whole.append(np.full(mine.shape, owed))
    if not at:
        return feasible[:0], np.zeros(0), np.zeros(0, dtype=np.bool_)
    order = np.argsort(np.concatenate(at), kind="stable")
    return np.concatenate(at)[order], np.concatenate(most)[order], np.concatenate(whole)[order]


def _lengths(rule: OptionRule, limit_hours: float) -> list[tuple[float, bool]]:
    """Most paid hours of one purchase and whether they are owed in full."""
    if rule.whole_term:
        return [(rule.min_term_hours or np.nan, True)]
    if rule.block_hours:
        blocks = sorted(float(hours) for hours in rule.block_hours)
        enough = sum(hours < limit_hours for hours in blocks)
        return [(hours, True) for hours in blocks[: enough + 1]]
    return [(np.inf if rule.max_term_hours is None else rule.max_term_hours, False)]


def _prices(market: Market, rows: Ints, nodes: Ints, owed_hours: Floats) -> tuple[Floats, Floats]:
    """Fixed USD and USD per paid hour of one worker; `owed_hours` is NaN for what is sold by the hour."""
    none = np.zeros(len(rows))
    owed = np.isfinite(owed_hours)
    once = market.costs.evaluate(rows, nodes, np.where(owed, owed_hours, _PROBE_HOURS), none)
    twice = market.costs.evaluate(rows, nodes, np.where(owed, owed_hours, 2 * _PROBE_HOURS), none)
    with np.errstate(invalid="ignore"):  # what has no known length costs infinity and is left out
        hourly = np.where(owed, 0.0, (twice.worker_usd - once.worker_usd) / _PROBE_HOURS)
        fixed = np.where(owed, once.worker_usd, once.worker_usd - hourly * _PROBE_HOURS)
    # an upfront part is the only fixed cost of what is sold by the hour; the rest is rounding
    return np.where(np.abs(fixed) < 1e-9 * np.abs(once.worker_usd), 0.0, fixed), hourly


def _place_prices(market: Market, rows: Ints, nodes: Ints) -> tuple[Floats, Floats]:
    """Checkpoints per hour that one worker is there, and what the place costs once (transfers), in USD."""
    none = np.zeros(len(rows))
    month = market.costs.evaluate(rows, nodes, none, np.full(len(rows), HOURS_PER_MONTH))
    empty = market.costs.evaluate(rows, nodes, none, none)
    with np.errstate(invalid="ignore"):
        place = empty.cost_usd - empty.worker_usd
        kept = (month.cost_usd - month.worker_usd) - place
        saved = (
            kept
            * month.checkpoint_gib_months
            / np.maximum(month.checkpoint_gib_months + month.dataset_gib_months, 1e-12)
        )
    return np.maximum(saved, 0.0) / HOURS_PER_MONTH, np.asarray(place, dtype=np.float64)


def in_whole_runs(workers: Workers, units: float) -> Workers:
    """Workers with the hours of whole runs of `units`, 0 where there is no time for one."""
    if not units:
        return workers
    most = np.floor(workers.hours_limit * workers.units_per_hour / units + HAIR)
    hours = most * units / workers.units_per_hour
    return replace(
        workers, hours_limit=hours, best_hours=np.minimum(workers.best_hours, hours), runs_limit=most
    )


def in_granules(workers: Workers, used: Ints, hours: Floats, work: float, run_units: float = 0.0) -> Workers:
    """Return ways to be a worker whose bills never exceed their cost in the model.

    Every worker is charged a granule of billing more. Where billing is coarse there are also whole numbers of granules,
    owed in full: of those `used` the numbers around what each worked (`hours`); of every worker what it takes where the
    fewest of its kind share all `work` equally, so that no fleet of one offer costs less than the mix. With `run_units`
    there is time in them for whole runs.
    """
    charged = replace(workers, fixed_usd=workers.fixed_usd + workers.granule_usd)
    mine = workers.take(used)
    granules = np.floor((mine.fixed_hours + hours * mine.paid_ratio) / mine.granule_hours + 1e-9)
    need = work / workers.units_per_hour
    alone = need / np.ceil(need / workers.hours_limit - 1e-9)
    whole = np.ceil((workers.fixed_hours + alone * workers.paid_ratio) / workers.granule_hours - 1e-9)
    blocks = [_block(mine, granules + step) for step in (-1.0, 0.0, 1.0, 2.0)]
    owed = [in_whole_runs(block, run_units) for block in (_block(workers, whole, at_most=True), *blocks)]
    return Workers.joined([charged, *(block.take(np.flatnonzero(block.hours_limit > 0)) for block in owed)])


def _block(workers: Workers, granules: Floats, *, at_most: bool = False) -> Workers:
    """Workers of coarse billing with `granules` of it owed in full; `at_most`: also where there is no time for all."""
    paid = granules * workers.granule_hours
    worked = (paid - workers.fixed_hours) / workers.paid_ratio
    fits = (
        (worked > 0) & (at_most | (worked <= workers.hours_limit)) & (workers.granule_hours >= COARSE_HOURS)
    )
    per_hour = workers.granule_usd / workers.granule_hours
    block = replace(
        workers, hours_limit=np.minimum(worked, workers.hours_limit),
        fixed_usd=workers.fixed_usd + per_hour * (paid - workers.fixed_hours),
        usd_per_hour=np.maximum(workers.usd_per_hour - per_hour * workers.paid_ratio, 0.0),
    )  # fmt: skip
    return block.take(np.flatnonzero(fits))


__all__ = ["Workers", "bought_whole", "build_with_storage", "build_workers", "in_granules", "in_whole_runs"]
