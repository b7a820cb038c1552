"""One candidate recomputed: its speed from `planner.performance`; hours, chances and costs by the judge's own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import hypot, inf, log, sqrt
from typing import TYPE_CHECKING, Any

from planner.judge.capacity_waits import Waits, allotted, start_of, waits_of
from planner.judge.chance import Capacity, Course, between_gangs, chance_within, means, nearest_pool
from planner.judge.completion import beside, done
from planner.judge.ends import hours_after, untils, with_after
from planner.judge.money import GB_PER_GIB, Prices, outlives, overrun, rounded, total
from planner.judge.prices import Z80
from planner.judge.purchases import Bought, Buy, fault_of
from planner.judge.spot_policies import CHANCE_SLACK, InTurn, Situation, run, unite
from planner.judge.storage import Option, Storage
from planner.judge.work import GB, GIB, Work, work_on
from planner.performance.search import estimate_shapes
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.schema import Workload
    from planner.judge.goods import Goods, Offer

CORRECTED = "it depends on your measurements (measured, planner calibrate)"
MOST_NODES = 4096  # that a baseline may have beyond the workload's own limit


class NotRecomputedError(Exception):
    """A figure rests on something that the judge does not read again; the message says on what."""


class ImpossibleError(Exception):
    """A candidate that cannot run, or cannot be bought: a fault of the answer that names it."""


@record(frozen=True)
class Steps:
    """What the job spends its hours on at one size, and the spread of its speed."""

    work: float
    sigma: float
    write: float
    fixed: float
    read: float
    restart: float


@record(frozen=True)
class Candidate:
    """A way to do the job, recomputed. Hours; `moved_gb` of checkpoints carried between regions."""

    nodes: int
    shape: dict[str, Any]
    steps: Steps
    waiting: float
    hours: float
    interval: float
    interruptions: float
    lost: float
    had: float  # probability that all capacity comes; 1 in turn, where the course holds it
    p_meet: float | None
    parts: tuple[Bought, ...]
    in_turn: bool
    situation: Situation | None
    course: InTurn | None
    need: float
    moved_gb: Fraction
    waits: Waits | None = None  # for what is not spot, from its request on; in turn they are the situation's
    store: Option | None = None  # what the nodes read the data from

    @property
    def cost(self) -> Fraction:
        """Sum of all charges, USD."""
        return total([charge for part in self.parts for charge in part.charges])


class Bench:
    """The job, the market and the dates that a candidate is recomputed with."""

    def __init__(
        self, workload: Workload, work: Work, goods: Goods, start: datetime, deadline: datetime | None,
        beside: dict[str, int] | None = None, later_hours: float = 0.0, planned: datetime | None = None,
    ) -> None:  # fmt: skip
        """Take them; `beside`: machines others ask for, by offer id; `later_hours`: of a `Situation`; `planned`."""
        self.workload, self.work, self.goods = workload, work, goods
        self.start, self.deadline, self.dates = start, deadline, (start, planned or start)
        self.beside, self.later = beside or {}, later_hours
        self._shapes: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._made: dict[tuple[Any, ...], Candidate] = {}
        self.spreads, self.fleets = dict[int, Any](), dict[tuple[str, str, int, int, int], Any]()
        self.shares = dict[tuple[str, str, int, float], Candidate]()  # jobs of fleets that fall back

    def share(self, other: Bench) -> None:
        """Use the shapes that another bench of the same job has predicted."""
        self._shapes = other._shapes

    def by_deadline(self, length: timedelta) -> Bench:
        """The same with another deadline, a length of time from the start; shapes are shared."""
        start, planned = self.dates
        bench = Bench(self.workload, self.work, self.goods, start, start + length, planned=planned)
        bench.share(self)
        return bench

    @cached_property
    def prices(self) -> Prices:
        """Prices of this job."""
        share = self.workload.prices.commitment_share
        return Prices(self.goods, self.work, None if share is None else float(share))

    @cached_property
    def storage(self) -> Storage:
        """Storage of this job."""
        return Storage(self.goods, self.work, self.workload)

    @property
    def deadline_hours(self) -> float:
        """Hours from the start to the deadline, infinity without one."""
        return inf if self.deadline is None else (self.deadline - self.start).total_seconds() / 3600.0

    def shape(self, offer: Offer, nodes: int) -> dict[str, Any]:
        """The best layout of a size, with its step time and memory, predicted anew.

        Raises:
            NotRecomputedError: a measurement of the user corrects what is predicted.
        """
        if self.workload.measured is not None:
            raise NotRecomputedError(CORRECTED)
        key = (offer.text("provider"), offer.text("instance_type"), nodes)
        if key not in self._shapes:
            self.work = work_on(self.work, self.workload, offer.hardware)
            table = estimate_shapes(self.work.model, self.work.training, offer.hardware, (nodes,))
            self._shapes[key] = table.row(0)
        if not self._shapes[key]["fits"]:
            why = self._shapes[key]["reason"]
            raise ImpossibleError(f"{nodes} x {key[1]} cannot run the job: {why}")
        if not self.work.checkpoint_gib:
            # sized by the model, the same on every machine
            self.work = replace(self.work, checkpoint_gib=float(self._shapes[key]["checkpoint_gib"]))
            self.__dict__.pop("prices", None)
            self.__dict__.pop("storage", None)
        return self._shapes[key]

    def steps(self, shape: dict[str, Any], nodes: int) -> Steps:
        """Hours of one size: steps with what comes beside them, a checkpoint, and what is in use but not work."""
        work, figures = self.work, self.work.figures
        saved_gb = work.checkpoint_gib * GIB / GB
        write = saved_gb / (figures["checkpoint_write_gb_per_s_per_node"] * nodes * 3600.0)
        rate = "object_store_read_gb_per_s"
        read = min(figures[f"{rate}_per_node"] * nodes, figures[f"{rate}_total"])
        fixed = work.hours("image_pull") + work.hours("compile_warmup") + write + work.hours("export")
        spread = log(shape["step_time_high_s"] / shape["step_time_low_s"]) / (2.0 * Z80)
        return Steps(
            work=work.steps * shape["step_time_s"] / 3600.0 * work.per_step,
            sigma=hypot(spread, work.stop_log_sd, figures["whole_run_log_sd"]),
            write=write,
            fixed=fixed,
            read=saved_gb / read / 3600.0,
            restart=work.restart_hours + (0.0 if work.restart_given else saved_gb / read / 3600.0),
        )

    def staging(self, offer: Offer) -> float:
        """Hours to bring the data set into the offer's region."""
        work, figures = self.work, self.work.figures
        if not work.data_gb or work.stream or work.location == "/".join(offer.place):
            return 0.0
        if work.location is None:
            gbps = figures["user_upload_gbps"]
        else:
            same = work.location.partition("/")[0] == offer.place[0]
            gbps = figures["inter_region_staging_gbps" if same else "cross_cloud_staging_gbps"]
        return work.data_gb * 8.0 / gbps / 3600.0

    def capacity(self, offer: Offer, nodes: int) -> tuple[Capacity, str, float | None]:
        """How spot of a gang comes and goes, the evidence, and the share of time up in the records behind it.

        Raises:
            NotRecomputedError: the workload brings records of its own.
        """
        if self.workload.spot.evidence:
            raise NotRecomputedError("it depends on the workload's spot records")
        figures, kind = self.work.figures, offer.kind
        prior = self.goods.tariffs.interruption_prior(
            offer.text("provider"), str(kind["family"]), str(kind["accelerator"]), offer.text("interruption_band")
        )  # fmt: skip
        recorded = prior.basis == "measured"
        names = (
            offer.text("provider"), offer.text("instance_type"), offer.text("region"), offer.text("zone")
        )  # fmt: skip
        pool = nearest_pool(*names, float(kind["accelerator_count"])) if recorded else None
        observed = None
        if pool is not None:
            (spot_capacity, observed), source = between_gangs(pool[0], nodes), pool[1]
        else:
            frailty = figures["spot_frailty_sd" if recorded else "spot_unrecorded_frailty_sd"]
            wait = prior.mean_wait_hours * nodes**prior.wait_exponent
            rate = prior.rate_per_hour * nodes**prior.gang_exponent
            ratios = figures["spot_first_wait_ratio"], figures["spot_dispersion_ratio"]
            spot_capacity = Capacity(rate, wait, wait * ratios[0], frailty, ratios[1]).level(1.0)
            source = f"{prior.basis}: {prior.source} ({prior.as_of})"
        if self.workload.kind == "fleet":  # a worker comes to its pool once, not with each run
            spot_capacity = replace(spot_capacity, first_wait=spot_capacity.wait)
        return spot_capacity, source, observed

    def interval(self, nodes: int, write: float, spot: Offer | None, pool: Capacity | None) -> float:
        """Hours between checkpoints: the workload's, else Young's for what comes unannounced, within bounds."""
        if self.work.interval_hours is not None:
            return self.work.interval_hours
        failures = self.work.figures["machine_failures_per_node_hour"] * nodes
        warned = spot is None or write <= (spot.rule.notice_s or 0.0) / 3600.0
        rate = max(failures if pool is None or warned else pool.rate, 1e-9)
        bounds = self.work.hours("checkpoint_min_interval"), self.work.hours("checkpoint_interval")
        return min(max(sqrt(2.0 * write / rate), bounds[0]), bounds[1])

    def steady(self, nodes: int, work: float, steps: Steps, interval: float) -> float:
        """Hours of work on capacity nobody takes back, with checkpoints and machine failures."""
        loss = self.work.figures["machine_failures_per_node_hour"] * nodes
        return work * (1.0 + steps.write / interval) * (1.0 + loss * (interval / 2.0 + steps.restart))

    def course(self, offer: Offer, steps: Steps, work: float, interval: float) -> Course:
        """The work as spot sees it."""
        return Course(work, interval, steps.write, steps.restart, (offer.rule.notice_s or 0.0) / 3600.0)

    def candidate(self, buys: Sequence[Buy], *, in_turn: bool) -> Candidate:
        """Recompute a way to do the job: purchases that run together, or one after another."""
        fault = fault_of([(buy.offer, buy.nodes) for buy in buys], in_turn=in_turn)
        if fault:
            raise ImpossibleError(fault)
        wishes = self.workload.preferences.prefer_regions
        ranks = [buy.offer.rank(wishes) for buy in buys if buy.offer.is_spot]
        if in_turn and ranks != sorted(ranks):
            names = ", ".join(buy.offer.offer_id for buy in buys)
            raise ImpossibleError(f"in turn: the cheapest zone first, not {names}")
        most = max(self.workload.constraints.max_nodes, MOST_NODES)
        if sum(buy.nodes for buy in buys) > most * len(buys):
            raise ImpossibleError(f"more than {most} instances of {buys[0].offer.offer_id}")
        key = (in_turn, *((buy.offer.offer_id, buy.nodes, buy.commitment) for buy in buys))
        if key not in self._made:
            self._made[key] = self._candidate(buys, in_turn=in_turn)
        return self._made[key]

    def _candidate(self, buys: Sequence[Buy], *, in_turn: bool) -> Candidate:
        nodes = buys[0].nodes if in_turn else sum(buy.nodes for buy in buys)
        shape = self.shape(buys[0].offer, nodes)
        return (self._in_turn if in_turn else self._together)(buys, nodes, shape, self.steps(shape, nodes))

    def _together(self, buys: Sequence[Buy], nodes: int, shape: dict[str, Any], steps: Steps) -> Candidate:
        spot = next((buy for buy in buys if buy.offer.is_spot), None)
        gang = nodes if spot is None else spot.nodes
        pool = None if spot is None else self.capacity(spot.offer, gang)[0]
        interval = self.interval(gang, steps.write, None if spot is None else spot.offer, pool)
        acquire = 0.0 if len(buys) == 1 and spot else self.work.hours("on_demand_acquire")
        each = waits_of([b.offer for b in buys], nodes, self.workload.constraints, *self.dates, self.beside)
        law, aside = Waits(each, self.staging(buys[0].offer)), self.work.hours("provision") + acquire
        waiting, free = aside + law.mean, self.deadline_hours - aside - steps.fixed
        failures = self.work.figures["machine_failures_per_node_hour"]
        situation = None
        if spot is None or pool is None:
            elapsed = paid = self.steady(nodes, steps.work, steps, interval)
            count = failures * nodes * elapsed
            lost = elapsed - steps.work * (1.0 + steps.write / interval)
            p_meet, need = done(law, elapsed - self.later, free - self.later, steps.sigma), elapsed
        else:
            others = failures * (nodes - gang)
            loss = others * (interval / 2.0 + steps.restart)
            course = self.course(spot.offer, steps, steps.work * (1.0 + loss), interval)
            of_spot = means(course, pool)
            elapsed, paid = of_spot.elapsed, of_spot.paid
            count, lost = of_spot.interruptions + others * course.work, of_spot.lost + steps.work * loss
            need = self.steady(gang, course.work, steps, interval)
            room = free - self.later
            p_meet = beside(
                law, lambda late: chance_within(course, pool, room - late, steps.sigma, -self.later)
            )
            situation = Situation(
                course, pool, steps.fixed, need, steps.sigma, free - law.mean, 0.0, 0.0, 1.0, 0.0, fallback=False,
                waits=None if law.are_certain else law.at,
            )  # fmt: skip
        hours = waiting + steps.fixed + elapsed
        store = self.storage.choice(buys[0].offer, nodes, shape["step_time_s"], hours)
        parts, ends = [], untils(buys, self.workload, self.start)
        for at, buy in enumerate(replace(buy, offer=buy.offer.during(hours)) for buy in buys):
            used = steps.fixed + (paid if buy.offer.is_spot else elapsed)
            part = self._bought(buy, used, expected=False, place=None if at else hours, steps=steps)
            part = self._beyond(replace(part, until=ends[at]), hours, hours, steps, steps.sigma)
            more = [] if at else self.storage.charges(buy.offer, store, hours)
            parts.append(replace(part, charges=(*part.charges, *more)))
        return Candidate(
            nodes=nodes, shape=shape, steps=steps, waiting=waiting, hours=hours, interval=interval,
            interruptions=count, lost=lost, had=law.had, p_meet=None if self.deadline is None else p_meet * law.had,
            parts=tuple(parts), in_turn=False, situation=situation, course=None, need=need, moved_gb=Fraction(0),
            store=store, waits=law,
        )  # fmt: skip

    def _bought(
        self, buy: Buy, used: float, *, expected: bool, place: float | None, steps: Steps | None = None
    ) -> Bought:
        hours = self.prices.billed_hours(buy.offer, used, expected=expected)
        if hours is None:
            raise ImpossibleError(f"{buy.offer.offer_id} cannot be bought for {used:g} h")
        if steps is not None:  # blocks pay their expected overrun
            hours += overrun(buy.offer.rule, steps.fixed, used - steps.fixed, steps.sigma)
        charges = self.prices.worker(buy.offer, buy.nodes, hours)
        if place is not None:
            charges += self.prices.place(buy.offer, place)
        return Bought(buy.offer, buy.nodes, used, hours, tuple(charges))

    def _beyond(self, part: Bought, end: float, run_hours: float, steps: Steps, sigma: float) -> Bought:
        """A purchase with what is paid after the end of what the user owns; the run is on it until hour `end`."""
        if part.until == inf:
            return part
        left, work = part.until - (end - part.paid_hours), part.paid_hours - steps.fixed
        hours = rounded(part.nodes * hours_after(left, steps.fixed, work, sigma))
        charges = with_after(list(part.charges), self.goods, part.offer, hours, run_hours)
        return replace(part, charges=tuple(charges))

    def _in_turn(self, buys: Sequence[Buy], nodes: int, shape: dict[str, Any], steps: Steps) -> Candidate:
        spot = [buy.offer for buy in buys if buy.offer.is_spot]
        regions, last = ["/".join(offer.place) for offer in spot], buys[-1].offer
        fallback = not last.is_spot
        capacities = [self.capacity(offer, nodes) for offer in spot]
        pools = [pool for pool, _, _ in capacities]
        lines = [source if observed is None else None for _, source, observed in capacities]
        figures = self.work.figures
        near, far = figures["spot_zone_correlation_ratio"], figures["spot_region_correlation_ratio"]
        if len(spot) > 1:
            union = unite(pools, regions, near, far, lines)
            pool, shares, moves = union.pool, union.shares, union.moves
        else:
            pool, shares, moves = pools[0], (1.0,), 0.0
        interval = self.interval(nodes, steps.write, spot[0], pools[0])
        waiting = self.work.hours("provision") + max(self.staging(buy.offer) for buy in buys)
        acquire = self.work.hours("on_demand_acquire")
        late = start_of(last, nodes, self.workload.constraints, *self.dates, self.beside)
        left, had = allotted(late, self.workload.constraints) if fallback else (0.0, 1.0)
        situation = Situation(
            course=self.course(spot[0], steps, steps.work, interval), pool=pool, fixed=steps.fixed,
            steady=self.steady(nodes, steps.work, steps, interval), sigma=steps.sigma,
            room=self.deadline_hours - waiting - steps.fixed, had=had, fallback=fallback,
            acquire=acquire + left, mean=acquire + (late.mean if fallback else 0.0),
            export=steps.write + self.work.hours("export"),
            waits=lambda level: acquire + late.at(level), later=self.later,
            link=near if "/".join(last.place) in regions else far,
        )  # fmt: skip
        course = run(situation)
        hours = waiting + steps.fixed + course.elapsed
        home = "/".join(last.place)
        away = sum(s for s, at in zip(shares, regions, strict=True) if fallback and at != home)
        carried = course.interruptions * moves + away * course.p_change
        each_gb = self.work.checkpoint_gib * float(GB_PER_GIB)
        moved_gb = rounded(carried * each_gb)
        unknown_gb = CHANCE_SLACK * (1.0 + course.interruptions * moves) * each_gb
        parts = []
        paid = [share * course.spot for share in shares] + ([course.on_demand] if fallback else [])
        seen: set[str] = set()
        store = self.storage.choice(buys[0].offer, nodes, shape["step_time_s"], hours)
        for number, (start, used) in enumerate(zip(buys, paid, strict=True)):
            buy = Buy(start.offer.during(hours), start.nodes)
            place = "/".join(buy.offer.place)
            part = self._bought(buy, used, expected=True, place=hours if number == 0 else None)
            more = self.prices.copy(buy.offer, hours) if number and place not in seen else []
            if place not in seen:  # priced where the run is cheapest
                more += self.storage.charges(buys[0].offer, store, hours)
            seen.add(place)
            if not number:
                more += self.prices.carried([b.offer for b in buys], moved_gb, unknown_gb)
            # transfers between places come after the place's costs
            parts.append(replace(part, charges=(*part.charges, *more)))
        return Candidate(
            nodes=nodes, shape=shape, steps=steps, waiting=waiting, hours=hours, interval=interval,
            interruptions=course.interruptions, lost=course.lost, had=1.0, p_meet=course.p_meet, parts=tuple(parts),
            in_turn=True, situation=situation, course=course, need=situation.steady, moved_gb=moved_gb, store=store,
        )  # fmt: skip

    def cost_if(self, candidate: Candidate, factor: float, hours: float) -> Fraction:
        """Cost of a candidate whose hours in use beyond the fixed ones are `factor` times as many, kept for `hours`."""
        usd = Fraction(0)
        for number, part in enumerate(candidate.parts):
            used = candidate.steps.fixed + (part.paid_hours - candidate.steps.fixed) * factor
            buy, longer = Buy(part.offer, part.nodes), outlives(part.offer.rule, used)
            bought = self._bought(buy, used, expected=longer, place=None if number else hours)
            bought = replace(bought, until=part.until)
            usd += total(self._beyond(bought, hours, candidate.hours, candidate.steps, 0.0).charges)
        return usd + self.stored_usd(candidate, hours)

    def after_usd(self, candidate: Candidate, part: Bought, used: float, end: float) -> Fraction:
        """What a run in use for `used` hours that ends at hour `end` pays after the end of what the user owns."""
        none = tuple(self.prices.worker(part.offer, part.nodes, Fraction(0)))
        bare = replace(part, paid_hours=used, charges=none)
        return total(self._beyond(bare, end, candidate.hours, candidate.steps, 0.0).charges) - total(none)

    def stored_usd(self, candidate: Candidate, hours: float) -> Fraction:
        """What the data cost, in every region of a run, if they are read for `hours`."""
        regions = len({part.offer.place for part in candidate.parts})
        return regions * total(self.storage.charges(candidate.parts[0].offer, candidate.store, hours))
