"""Reinforcement learning on two pools: machines that train and machines that generate, chosen together.

Each pool is a job for the one candidate engine: the trainer's steps without generation, the rollouts' without training.
A pair shares its steps. On policy they add up; where generation may run ahead (`steps_off_policy`), the longer one sets
the pace. Handing over the weights comes on top:

    step = max(train, generate) + refit      or      train + generate + refit

What one pool loses to interruptions holds up the other, so a pool's step lasts `step` times the other's elapsed over
work hours. Answers lost with spot capacity are generated again: lost work in the rollouts' own hours. All pairs on
demand or on spot are compared by costs linear in hours (`pool_pairs`); the cheapest are priced by the engine at the
pace of the pair. By a deadline, pairs in one region may be bought in every way of the engine (`pools_by_deadline`).
Without one such pairs are planned to end by a horizon (`pools_horizon_hours`), as most ways need a last moment.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.store.load import load_catalog
from planner.candidates.engine import Engine, build
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.prepare import prepare, unlimited
from planner.errors import InputError
from planner.performance.inference.pool import handover_s, weight_bytes
from planner.pipelines.moves import GB, Moves, build_moves, curve_usd
from planner.pipelines.pool_pairs import Terms, find_pairs, step_of
from planner.pipelines.pools_by_deadline import ByDeadline
from planner.pipelines.pools_figures import colocated, logprob_s, pool_of
from planner.pipelines.pools_model import POOL_NAMES, OneChip, Pool, Pools
from planner.pipelines.pools_side import Side, of_pool
from planner.pipelines.pools_ways import asked_beside
from planner.plan.model import sources_of

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.pipelines.pool_pairs import Pairs
    from planner.pipelines.pools_by_deadline import Timed


_PRICED = 12  # pairs that the engine prices, cheapest by linear costs first
_NO_LIMIT = 1e9
_NO_PAIR = "no pair of pools meets the limits"
_NONE_FOUND = "no pair of pools was found that meets the limits; this is not proven impossible"


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
    return PoolsQuestion(loaded, load_catalog(catalog_dir, as_of=options.as_of), options).answer()


def by_turns(asked: Asked) -> Asked:
    """The same on one cluster that trains and generates by turns."""
    training = asked.job.training
    assert training.tuning.rollouts is not None
    together = replace(training.tuning.rollouts, colocated=True, steps_off_policy=0)
    training = replace(training, tuning=replace(training.tuning, rollouts=together))
    return replace(asked, job=replace(asked.job, training=training))


class PoolsQuestion:
    """Both pools with what they share."""

    def __init__(self, loaded: LoadedWorkload, catalog: Catalog, options: Options) -> None:
        base = prepare(loaded, loaded.workload, catalog, options)
        free = prepare(loaded, unlimited(loaded.workload), catalog, options)
        self.loaded, self.base = loaded, base
        workload: Workload = loaded.workload
        limits = workload.constraints
        self.deadline = base.dates.deadline_hours
        # a fall-back needs a last moment, and who gives no deadline does not wait for ever
        self.horizon = None if self.deadline is not None else base.asked.assumptions.pools_horizon_hours
        # both pools keep their hours with the confidence asked where each misses them half as often
        level = 1.0 - (1.0 - limits.deadline_confidence) / 2.0
        self.level = None if self.deadline is None else level
        limit = None if self.deadline is None else (self.deadline, level)
        places: dict[str, int] = {}
        chips: dict[str, int] = {}
        self.trainer, self.rollouts = (
            Side(Engine(free.with_asked(of_pool(free.asked, name))), name, limit, places, chips)
            for name in POOL_NAMES
        )
        self.sides = (self.trainer, self.rollouts)
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
        share = base.asked.assumptions.work_ratio
        self.terms = Terms(
            hours_per_step_s=job.total_steps * share / 3600.0, ahead=self.given.steps_off_policy > 0,
            weights=self.weights, moved_usd=usd, gbps=gbps, most_nodes=float(limits.max_nodes),
            most_accelerators=float(limits.max_accelerators or _NO_LIMIT),
            deadline_hours=np.inf if self.deadline is None else self.deadline, quotas=self.trainer.quotas,
        )  # fmt: skip
        end = base.asked.assumptions.pools_horizon_hours if self.deadline is None else self.deadline
        self.by_deadline = ByDeadline(self.sides, replace(self.terms, deadline_hours=end), level)

    def answer(self) -> Pools:
        """The cheapest pair that the engine confirms, beside the best single clusters."""
        found = build(self.base.with_asked(by_turns(self.base.asked)))
        best, bound, compared = self._cheapest()
        reason = "" if best else _NO_PAIR if np.isinf(bound) else _NONE_FOUND
        limit = self.loaded.workload.constraints.budget_usd
        if best and limit is not None and best["cost_usd"] > limit:
            reason = f"the cheapest pair of pools costs {best['cost_usd']:,.2f} USD, over the budget"
        by_deadline = best is not None and best["pools"][0].deadline_hours is not None
        return Pools(
            workload=self.loaded.workload.name, workload_sha256=self.loaded.sha256,
            created_at=moment_text(self.base.dates.now), start=moment_text(self.base.dates.start),
            confidence=self.loaded.workload.constraints.deadline_confidence,
            steps=self.base.asked.job.total_steps, steps_off_policy=self.given.steps_off_policy,
            deadline_hours=self.deadline, horizon_hours=self.horizon, budget_usd=limit, pairs=compared, reason=reason,
            bound_usd=min(Decimal(repr(bound)), best["cost_usd"]) if best else Decimal(0),
            colocated=colocated(found, same_ways=False),
            divided=None if self.given.colocated else colocated(build(self.base), same_ways=False),
            same_ways=None if by_deadline else colocated(found, same_ways=True),
            one_chip=self._one_chip(best), sources=sources_of(self.base.market.catalog),
            beside_steps_ratio=self.base.asked.assumptions.beside_by_default, **(best or self._nothing()),
        )  # fmt: skip

    def _cheapest(self, *, one_chip: bool = False) -> tuple[dict[str, Any] | None, float, int]:
        """The cheapest pair that keeps the limits, what none costs less than (USD), and how many were compared."""
        pairs = find_pairs(
            self.trainer.points, self.rollouts.points, replace(self.terms, one_chip=one_chip), _PRICED
        )
        # of pairs that cost the same, the one that needs no last moment
        kept = self._kept(pairs, np.inf) if self.deadline is None else []
        known = float(min((one["cost_usd"] for one in kept), default=np.inf))
        found = self.by_deadline.cheapest(known, one_chip=one_chip)
        if found.pair is not None:
            kept.append(self._timed(found.pair))
            known = found.pair.cost_usd
        if self.deadline is not None:
            kept += self._kept(pairs, known)
        bound = min(float(pairs.usd.min(initial=np.inf)), found.bound_usd)
        return min(kept, key=lambda one: one["cost_usd"], default=None), bound, pairs.compared

    def _kept(self, pairs: Pairs, below_usd: float) -> list[dict[str, Any]]:
        """Figures of those of the cheapest pairs on demand or on spot that are in time and may cost the least.

        Others cost no less than `below_usd` or than the best of these; costs that are linear in hours are least ones.
        """
        kept = []
        for a, b, least in zip(
            pairs.trainer.tolist(), pairs.rollouts.tolist(), pairs.usd.tolist(), strict=True
        ):
            one = self._pair(a, b) if least < below_usd else None
            if one is not None and (self.deadline is None or one["sure_hours"] <= self.deadline):
                kept.append(one)
                below_usd = min(below_usd, float(one["cost_usd"]))
        return kept

    def _one_chip(self, best: dict[str, Any] | None) -> OneChip | None:
        """The cheapest pair whose pools have the same type of accelerator; None where no such pair meets the limits."""
        one = best
        if best is not None and len({pool.accelerator for pool in best["pools"]}) > 1:
            one = self._cheapest(one_chip=True)[0]
        if one is None:
            return None
        train, generate = one["pools"]
        return OneChip(
            train.accelerator, train.accelerators, generate.accelerators, one["hours"], one["cost_usd"]
        )

    def _timed(self, pair: Timed) -> dict[str, Any]:
        """Figures of a pair by the deadline or the horizon, which it keeps with the confidence asked."""
        own = [side.step_s(one.own_at) for side, one in zip(self.sides, pair.pools, strict=True)]
        pools = [
            pool_of(side.name, one.search.candidates, one.at, own_step_s=step, paced_s=one.paced_s,
                    stretch=one.stretch, deadline_hours=one.deadline_hours)
            for side, one, step in zip(self.sides, pair.pools, own, strict=True)
        ]  # fmt: skip
        return self._figures(pools, pair.pools[0].own_at, pair.step_s, pair.refit_s) | {
            "sure_hours": pair.ends_by
        }

    def _pair(self, a: int, b: int) -> dict[str, Any]:
        """Figures of one pair, its pools priced by the engine."""
        t, r = (side.points.take(np.asarray([row])) for side, row in zip(self.sides, (a, b), strict=True))
        gbps = self.terms.gbps[t.place, r.place]
        refit = handover_s(self.weights, r.copies, np.minimum(t.rate, r.rate), gbps)
        step = float(step_of(self.terms, t.step_s, r.step_s, refit)[0])
        paces = (step * float(r.stretch[0]), step * float(t.stretch[0]))
        market = self.trainer.found.context.market
        beside = [asked_beside(market, (int(one.offer[0]),), int(one.nodes[0])) for one in (r, t)]
        sure = [
            1.0 if self.level is None else side.sure_beside(row, self.level, more)
            for side, row, more in zip(self.sides, (a, b), beside, strict=True)
        ]
        pools = [
            pool_of(side.name, side.priced(row, pace, more), 0, own_step_s=float(side.points.step_s[row]), paced_s=pace,
                    stretch=float(side.points.stretch[row]), sure_ratio=own)
            for side, row, pace, more, own in zip(self.sides, (a, b), paces, beside, sure, strict=True)
        ]  # fmt: skip
        figures = self._figures(pools, int(t.at[0]), step, float(refit[0]))
        moved = self._moved(int(t.place[0]), int(r.place[0]))
        return figures | {
            "moved_gb": self.moved_gb if t.place[0] != r.place[0] else 0.0, "moved_usd": moved,
            "sure_hours": figures["hours"] * sure[0] * sure[1],
            "cost_usd": figures["cost_usd"] + moved,
        }  # fmt: skip

    def _figures(self, pools: list[Pool], trainer_at: int, step_s: float, refit_s: float) -> dict[str, Any]:
        """Figures of a pair in one region; `trainer_at`: the trainer among its side's candidates."""
        train, generate = pools
        logprob = logprob_s(self.trainer.found.candidates, trainer_at)
        return {
            "pools": tuple(pools), "step_s": step_s, "train_s": train.own_step_s, "logprob_s": logprob,
            "update_s": train.own_step_s - logprob, "generate_s": generate.own_step_s, "refit_s": refit_s,
            "moved_gb": 0.0, "moved_usd": Decimal(0), "hours": max(pool.hours for pool in pools),
            "cost_usd": train.cost_usd + generate.cost_usd,
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
