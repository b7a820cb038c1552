"""Reinforcement learning on two pools: machines that train and machines that generate, chosen together.

Each pool is a job for the one candidate engine: the trainer's steps without generation, the rollouts' without training.
A pair shares its steps. On policy they add up; where generation may run ahead (`steps_off_policy`), the longer one sets
the pace. Handing over the weights comes on top:

    step = max(train, generate) + refit      or      train + generate + refit

What one pool loses to interruptions holds up the other, so a pool's step lasts `step` times the other's elapsed over
work hours. Answers lost with spot capacity are generated again: lost work in the rollouts' own hours. All pairs are
compared by costs linear in hours (`pool_pairs`); the cheapest are priced by the engine at the pace of the pair.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.store.load import load_catalog
from planner.candidates.choose import best_where, choose
from planner.candidates.constraints.deadline import without_record
from planner.candidates.engine import Engine, build, candidates_of
from planner.candidates.finish import sure_hours
from planner.candidates.model import SINGLE
from planner.candidates.plan_parts.bought import Source
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.prepare import prepare, unlimited
from planner.candidates.wanted import Scope, Wanted
from planner.errors import InputError
from planner.market.pricing import total_usd
from planner.performance.inference.pool import handover_s, node_rates, weight_bytes
from planner.pipelines.moves import GB, Moves, build_moves, curve_usd
from planner.pipelines.pool_pairs import Points, Terms, find_pairs, step_of
from planner.pipelines.pools_model import POOL_NAMES, Colocated, OneChip, Pool, PoolName, Pools
from planner.plan.model import sources_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from catalogs.tables.model import Catalog
    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload

    Ints = npt.NDArray[np.int64]

_PRICED = 12  # pairs that the engine prices, cheapest by linear costs first
_NO_LIMIT = 1e9
_USED_HOURS = (500.0, 1000.0)  # of work, between which costs are taken to be linear


def plan_pools(loaded: LoadedWorkload, options: Options, *, catalog_dir: Path | None = None) -> Pools:
    """Choose trainer and rollout pools of a workload with `training.rollouts`.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload has no rollouts, or limits that pools do not keep.
        CatalogError: the catalog cannot be used.
    """
    workload = loaded.workload
    rollouts = None if workload.training is None else workload.training.rollouts
    if workload.kind != "training" or rollouts is None:
        raise InputError("pools: the workload has no training.rollouts (objective ppo or grpo)")
    if workload.constraints.min_throughput is not None:
        raise InputError("pools: constraints.min_throughput is for one cluster: give a deadline instead")
    return _Question(loaded, load_catalog(catalog_dir, as_of=options.as_of), options).answer()


def of_pool(asked: Asked, name: PoolName, paced_s: float = 0.0) -> Asked:
    """What one pool must do; the rollouts bring no data, save no model, and lose at most the answers in flight."""
    job = asked.job
    rollouts = job.training.tuning.rollouts
    assert rollouts is not None
    paced = replace(rollouts, pool=name, colocated=False, paced_s=paced_s)
    training = replace(job.training, tuning=replace(job.training.tuning, rollouts=paced))
    job = replace(job, training=training)
    if name == "rollouts":
        job = replace(job, data_gb=0.0, read_gb=0.0, export_gb=0.0, checkpoint_gib=0.0)
    return replace(asked, job=job, calibration=None)


def by_turns(asked: Asked) -> Asked:
    """The same on one cluster that trains and generates by turns."""
    training = asked.job.training
    assert training.tuning.rollouts is not None
    together = replace(training.tuning.rollouts, colocated=True, steps_off_policy=0)
    training = replace(training, tuning=replace(training.tuning, rollouts=together))
    return replace(asked, job=replace(asked.job, training=training))


class _Side:
    """Candidates of one pool and what pairs of them need."""

    def __init__(
        self, engine: Engine, name: PoolName, limit: tuple[float, float] | None, places: dict[str, int],
        chips: dict[str, int],
    ) -> None:  # fmt: skip
        """Ask the engine.

        Args:
            engine: of the pool, without a deadline.
            name: of the pool.
            limit: deadline in hours and the probability to keep it, None where time does not matter.
            places: numbers of the regions; new ones are added.
            chips: the same of types of accelerators.
        """
        self._chips = chips
        self.name, self.found = name, engine.at(None, Wanted(Scope.BEST, one_offer=True))
        candidates, market = self.found.candidates, self.found.context.market
        offers = market.offer_set.offers
        timed = market.is_spot | offers.equals("purchase_option", "on_demand")
        at = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE) & timed[candidates.offer])
        if limit is not None:  # spot that no record speaks for is no candidate by a deadline
            unrecorded = without_record(candidates.context.asked.workload, candidates)
            late = candidates.hours[at] > limit[0]
            at = at[~late if unrecorded is None else ~(late | unrecorded[at])]
        rows = candidates.offer[at]
        names = zip(offers["provider"][rows].tolist(), offers["region"][rows].tolist(), strict=True)
        place = np.asarray([places.setdefault(f"{p}/{r}", len(places)) for p, r in names], dtype=np.int64)
        self.points = self._points(candidates, at, place, None if limit is None else limit[1])

    def _points(self, candidates: Candidates, at: Ints, place: Ints, level: float | None) -> Points:
        context = self.found.context
        job, costs, hardware = context.asked.job, context.market.costs, context.market.offer_set.hardware
        rows, nodes, work = candidates.offer[at], candidates.nodes[at], candidates.work_hours[at]
        shape = candidates.shape[at]
        own = candidates.shapes["hardware_row"].astype(np.int64)[shape]
        fixed, paid = candidates.fixed_hours[at], candidates.paid_hours[at]
        # a pair runs at least as long as its slower pool, so no pair pays less than this
        run = context.market.offer_set.book.cheapest_hours(rows, candidates.hours[at])
        # far from the least charge and the rounding of short use
        some, more = (
            costs.evaluate(
                rows,
                nodes,
                fixed + at_hours,
                candidates.waiting_hours[at] + fixed + at_hours,
                stored=candidates.stored(at),
                run_hours=run,
            ).cost_usd
            for at_hours in _USED_HOURS
        )
        hourly = (more - some) / (_USED_HOURS[1] - _USED_HOURS[0])
        count = hardware["accelerator_count"].astype(np.float64)[own]
        sure = np.ones(len(at))
        if level is not None:
            sure = sure_hours(candidates, at, level) / candidates.hours[at]
        points = Points(
            at=at,
            step_s=np.asarray(candidates.shapes["step_time_s"])[shape],
            stretch=(candidates.hours[at] - candidates.waiting_hours[at] - fixed) / work,
            held=(paid - fixed) / work,
            before_hours=candidates.waiting_hours[at] + fixed,
            fixed_usd=np.maximum(some - hourly * _USED_HOURS[0], 0.0),
            usd_per_hour=hourly,
            sure=sure,
            nodes=nodes,
            accelerators=nodes * count,
            place=place,
            rate=node_rates(job.model, job.training, hardware)[own],
            copies=np.maximum(count / np.maximum(np.asarray(candidates.shapes["tp"])[shape], 1), 1.0),
            chip=np.asarray(
                [self._chips.setdefault(str(name), len(self._chips)) for name in hardware["accelerator"]],
                dtype=np.int64,
            )[own],
        )
        return points.take(_distinct(points, own))

    def priced(self, row: int, paced_s: float) -> tuple[Candidates, Source]:
        """The candidate of point `row` with steps of at least `paced_s`, priced by the engine."""
        candidates = self.found.candidates
        at = int(self.points.at[row])
        context = candidates.context.with_asked(of_pool(candidates.context.asked, self.name, paced_s))
        # the size of a checkpoint is known by now
        context = context.with_job(checkpoint_gib=candidates.context.asked.job.checkpoint_gib)
        as_pool = replace(self.found, candidates=replace(candidates, context=context))
        one = candidates_of(as_pool, candidates.offer[at : at + 1], [int(candidates.nodes[at])])
        return one, Source(context, one)


def _distinct(points: Points, hardware: Ints) -> Ints:
    """The cheapest of pools that are alike in all but price: one of the zones of a region."""
    same = (
        hardware,
        points.place,
        points.nodes,
        points.stretch,
        points.held,
        points.before_hours,
        points.sure,
    )
    order = np.lexsort((points.usd_per_hour, *same))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in same], axis=0)
    return np.sort(order[new])


class _Question:
    def __init__(self, loaded: LoadedWorkload, catalog: Catalog, options: Options) -> None:
        base = prepare(loaded, loaded.workload, catalog, options)
        free = prepare(loaded, unlimited(loaded.workload), catalog, options)
        self.loaded, self.base = loaded, base
        workload: Workload = loaded.workload
        limits = workload.constraints
        self.deadline = base.dates.deadline_hours
        # both pools keep their hours with the confidence asked where each misses them half as often
        level = 1.0 - (1.0 - limits.deadline_confidence) / 2.0
        limit = None if self.deadline is None else (self.deadline, level)
        places: dict[str, int] = {}
        chips: dict[str, int] = {}
        self.trainer, self.rollouts = (
            _Side(Engine(free.with_asked(of_pool(free.asked, name))), name, limit, places, chips)
            for name in POOL_NAMES
        )
        job = base.asked.job
        assert job.training.tuning.rollouts is not None
        self.given = job.training.tuning.rollouts
        self.weights = weight_bytes(job.model, self.given)
        self.moved_gb = self.weights * job.total_steps / GB
        self.moves: Moves = build_moves(tuple(places), base.market.tariffs, base.asked.assumptions)
        usd, gbps = self.moves.usd([self.moved_gb])[0], self.moves.gbps
        group = self.moves.group
        usd, gbps = usd[np.ix_(group, group)], gbps[np.ix_(group, group)]
        np.fill_diagonal(usd, 0.0)
        gbps = gbps.copy()
        np.fill_diagonal(gbps, np.inf)
        share = 1.0 + base.asked.assumptions.evaluation_share_ratio
        self.terms = Terms(
            hours_per_step_s=job.total_steps * share / 3600.0, ahead=self.given.steps_off_policy > 0,
            weights=self.weights, moved_usd=usd, gbps=gbps, most_nodes=float(limits.max_nodes),
            most_accelerators=float(limits.max_accelerators or _NO_LIMIT),
            deadline_hours=np.inf if self.deadline is None else self.deadline,
        )  # fmt: skip

    def answer(self) -> Pools:
        """The cheapest pair that the engine confirms, beside the best single clusters."""
        found = build(self.base.with_asked(by_turns(self.base.asked)))
        pairs = find_pairs(self.trainer.points, self.rollouts.points, self.terms, _PRICED)
        pools = [self._pair(int(a), int(b)) for a, b in zip(pairs.trainer, pairs.rollouts, strict=True)]
        kept = [one for one in pools if self.deadline is None or one["sure_hours"] <= self.deadline]
        reason = "" if kept else "no pair of pools meets the limits"
        best = min(kept, key=lambda one: one["cost_usd"]) if kept else self._nothing()
        limit = self.loaded.workload.constraints.budget_usd
        if kept and limit is not None and best["cost_usd"] > limit:
            reason = f"the cheapest pair of pools costs {best['cost_usd']:,.2f} USD, over the budget"
        bound = min(Decimal(repr(float(pairs.usd[0]))), best["cost_usd"]) if kept else Decimal(0)
        return Pools(
            workload=self.loaded.workload.name, workload_sha256=self.loaded.sha256,
            created_at=moment_text(self.base.dates.now), start=moment_text(self.base.dates.start),
            confidence=self.loaded.workload.constraints.deadline_confidence,
            steps=self.base.asked.job.total_steps, steps_off_policy=self.given.steps_off_policy,
            deadline_hours=self.deadline, budget_usd=limit, bound_usd=bound, pairs=pairs.compared,
            colocated=_colocated(found, same_ways=False), same_ways=_colocated(found, same_ways=True), reason=reason,
            one_chip=self._one_chip(best if kept else None), sources=sources_of(self.base.market.catalog), **best,
        )  # fmt: skip

    def _one_chip(self, best: dict[str, Any] | None) -> OneChip | None:
        """The cheapest pair whose pools have the same type of accelerator; None where no such pair meets the limits."""
        if best is None:
            return None
        pools = [best]
        if len({pool.accelerator for pool in best["pools"]}) > 1:
            terms = replace(self.terms, one_chip=True)
            pairs = find_pairs(self.trainer.points, self.rollouts.points, terms, _PRICED)
            pools = [self._pair(int(a), int(b)) for a, b in zip(pairs.trainer, pairs.rollouts, strict=True)]
        kept = [one for one in pools if self.deadline is None or one["sure_hours"] <= self.deadline]
        if not kept:
            return None
        one = min(kept, key=lambda one: one["cost_usd"])
        train, generate = one["pools"]
        return OneChip(
            train.accelerator, train.accelerators, generate.accelerators, one["hours"], one["cost_usd"]
        )

    def _pair(self, a: int, b: int) -> dict[str, Any]:
        """Figures of one pair, its pools priced by the engine."""
        sides = (self.trainer, self.rollouts)
        t, r = (side.points.take(np.asarray([row])) for side, row in zip(sides, (a, b), strict=True))
        gbps = self.terms.gbps[t.place, r.place]
        refit = handover_s(self.weights, r.copies, np.minimum(t.rate, r.rate), gbps)
        step = float(step_of(self.terms, t.step_s, r.step_s, refit)[0])
        paces = (step * float(r.stretch[0]), step * float(t.stretch[0]))
        pools = tuple(_pool(side, row, pace) for side, row, pace in zip(sides, (a, b), paces, strict=True))
        moved = self._moved(int(t.place[0]), int(r.place[0]))
        hours = max(pool.hours for pool in pools)
        shape = self.trainer.found.candidates.shapes.row(
            int(self.trainer.found.candidates.shape[int(t.at[0])])
        )
        logprob = float(shape["other_models_s"])
        return {
            "pools": pools, "step_s": step, "train_s": float(t.step_s[0]), "logprob_s": logprob,
            "update_s": float(t.step_s[0]) - logprob, "generate_s": float(r.step_s[0]), "refit_s": float(refit[0]),
            "moved_gb": self.moved_gb if t.place[0] != r.place[0] else 0.0, "moved_usd": moved, "hours": hours,
            "sure_hours": hours * pools[0].sure_ratio * pools[1].sure_ratio,
            "cost_usd": pools[0].cost_usd + pools[1].cost_usd + moved,
        }  # fmt: skip

    def _moved(self, source: int, target: int) -> Decimal:
        if source == target:
            return Decimal(0)
        return curve_usd(self.moves.tariff(source, target)[0], self.moved_gb)

    @staticmethod
    def _nothing() -> dict[str, Any]:
        figures = ("step_s", "train_s", "logprob_s", "update_s", "generate_s", "refit_s", "moved_gb")
        return {
            "pools": (), **dict.fromkeys((*figures, "hours", "sure_hours"), 0.0),
            "moved_usd": Decimal(0), "cost_usd": Decimal(0),
        }  # fmt: skip


def _pool(side: _Side, row: int, paced_s: float) -> Pool:
    candidates, source = side.priced(row, paced_s)
    points, bought = side.points, source.bought(0)
    shape = candidates.shapes.row(int(candidates.shape[0]))
    offer_set = source.context.market.offer_set
    hardware = offer_set.hardware.row(int(shape["hardware_row"]))
    return Pool(
        name=side.name, bought=bought, accelerator=str(hardware["accelerator"]), nodes=int(candidates.nodes[0]),
        accelerators=float(points.accelerators[row]), own_step_s=float(points.step_s[row]), paced_s=paced_s,
        stretch=float(points.stretch[row]), hours=float(candidates.hours[0]), tensor_parallel=int(shape["tp"]),
        pipeline_parallel=int(shape["pp"]), data_parallel=int(shape["dp"]),
        cost_usd=total_usd([line for part in bought.parts for line in part.lines]),
        sure_ratio=float(points.sure[row]),
    )  # fmt: skip


def _colocated(search: CandidateSearch, *, same_ways: bool) -> Colocated | None:
    """The best single cluster; `same_ways`: of on-demand and spot without a fall-back, as pools are bought."""
    candidates, market = search.candidates, search.context.market
    if same_ways:
        timed = market.is_spot | market.offer_set.offers.equals("purchase_option", "on_demand")
        at = best_where(
            candidates, (candidates.bits == 0) & (candidates.kind == SINGLE) & timed[candidates.offer], "cost"
        )
    else:
        choice = choose(candidates, "cost")
        at = None if choice is None else choice.winner
    if at is None:
        return None
    bought = Source(search.context, candidates).bought(at)
    lead = bought.parts[0]
    return Colocated(
        how=bought.how, provider=lead.provider, region=lead.region, instance_type=lead.instance_type,
        nodes=int(candidates.nodes[at]), hours=float(candidates.hours[at]),
        cost_usd=total_usd([line for part in bought.parts for line in part.lines]),
    )  # fmt: skip
