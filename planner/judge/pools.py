"""The answer of `planner pools`: both pools' speed, their shared step, hours, chances and costs, recomputed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from catalogs.tariffs import load_tariffs
from planner.judge import frame
from planner.judge.bench import Bench, Candidate, ImpossibleError
from planner.judge.capacity_waits import most_by_asking
from planner.judge.chance import chance_within
from planner.judge.ends import known_after, pairs_on
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near, Timestamp
from planner.judge.limits import purchase_faults
from planner.judge.pipeline import part_of
from planner.judge.pipeline_quotas import units_of
from planner.judge.purchases import Buy
from planner.judge.quote import sure_hours, table_ratio
from planner.judge.schedule import GB, moved_usd
from planner.performance.inference.pool import handover_s, node_rates, weight_bytes
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.inputs.schema import Workload
    from planner.judge.document import Node
    from planner.judge.goods import Offer
    from planner.judge.memory import Memory
    from planner.judge.work import Work

_NAMES = ("trainer", "rollouts")
_CHANCE_SLACK = 1e-4


@record(frozen=True)
class _By:
    """A pool's own deadline in hours, the probability to keep it, and hours more for work that takes twice as long."""

    hours: float
    level: float
    later: float


class _Pool:
    """One pool recomputed at its own pace, and then at the pair's."""

    def __init__(self, base: Bench, node: Node, name: str) -> None:
        self.node, self.name, self.base = node, name, base
        self.by_deadline = not node["deadline_hours"].is_null  # or by the horizon
        buys = [
            Buy(base.goods.offer(p.path, p["offer_id"].text()), p["nodes"].count()) for p in node["parts"]
        ]
        if not buys or len({buy.nodes for buy in buys}) > 1 or not 0 < buys[0].nodes <= 10**5:
            node["parts"].fail("one purchase, or purchases in turn")
        self.in_turn = len(buys) > 1
        self.buys = frame.in_first_zone(base.goods, buys) if self.in_turn else buys
        options = {buy.offer.text("purchase_option") for buy in self.buys}
        if not self.by_deadline and (len(self.buys) > 1 or not options <= {"spot", "on_demand"}):
            raise ImpossibleError(
                f"{name}: pools without an end of their own are bought on demand or on spot"
            )
        self.places = {buy.offer.place for buy in self.buys}
        self.beside: dict[str, int] = {}  # machines that the other pool asks for
        self.own = self._at(0.0, None)
        self.step_s = float(self.own.shape["step_time_s"])
        self.stretch = _stretch(self.own)
        kind = self.lead.kind
        self.accelerators = float(kind["accelerator_count"]) * self.nodes
        work = _work_of(base.work, name, 0.0)
        self.rate = float(node_rates(work.model, work.training, self.lead.hardware)[0])
        self.copies = max(float(kind["accelerator_count"]) / max(int(self.own.shape["tp"]), 1), 1.0)

    @property
    def nodes(self) -> int:
        """Machines at a time."""
        return self.buys[0].nodes

    @property
    def lead(self) -> Offer:
        """What is bought first."""
        return self.buys[0].offer

    def _at(self, paced_s: float, by: _By | None) -> Candidate:
        """What is bought at a pace, by its own deadline."""
        base, workload, deadline = self.base, self.base.workload, None
        if by is not None:
            deadline = base.start + timedelta(hours=by.hours)
            limits = workload.constraints.model_copy(update={"deadline_confidence": by.level})
            workload = workload.model_copy(update={"constraints": limits})
        work = _work_of(base.work, self.name, paced_s)
        later = 0.0 if by is None else by.later
        bench = Bench(workload, work, base.goods, base.start, deadline, self.beside, later, base.dates[1])
        return bench.candidate(self.buys, in_turn=self.in_turn)

    def stand_beside(self, other: _Pool) -> None:
        """What is not spot is waited for as if both pools asked for it together."""
        self.beside = {buy.offer.offer_id: buy.nodes for buy in other.buys if not buy.offer.is_spot}
        self.own = self._at(0.0, None)

    def off_usd(self, commitment: int) -> Fraction:
        """How far its cost is from that of its machines on one of the workload's commitments."""
        bench, work = self.base, _work_of(self.base.work, self.name, self.node["paced_s"].number())
        bench = Bench(bench.workload, work, bench.goods, bench.start, None, {}, 0.0, bench.dates[1])
        own = bench.candidate([replace(self.buys[0], commitment=commitment)], in_turn=False)
        return abs(own.cost - self.node["cost_usd"].money())

    def stretched(self, step_s: float, by: _By) -> float:
        """Elapsed over work hours at a step, by a deadline."""
        return _stretch(self._at(step_s, by))

    def sure_ratio(self, level: float, ratio: float) -> Near:
        """Hours kept with probability `level` over expected ones; of spot, that the ratio given keeps them."""
        candidate = self.own
        before = candidate.waiting + candidate.steps.fixed
        if candidate.situation is None:
            if candidate.had <= level:
                raise ImpossibleError(
                    f"{self.name}: capacity comes with {candidate.had:.4f}, {level} is asked"
                )
            sure = sure_hours(candidate, level / candidate.had, candidate.steps.sigma)
            return Near(
                max(sure, candidate.hours) / candidate.hours, max(Near(0.0).ratio, table_ratio(candidate))
            )
        room = ratio * candidate.hours - before
        chance = (
            chance_within(candidate.situation.course, candidate.situation.pool, room, candidate.steps.sigma)
            * candidate.had
        )
        if chance < level - _CHANCE_SLACK:
            raise ImpossibleError(f"{self.name}: its hours are met with {chance:.4f}, {level:.4f} is asked")
        return Near(ratio)

    def paced(
        self,
        pace_s: float,
        level: float | None,
        *,
        stretch: float,
        by: _By | None = None,
        beside: _Pool | None = None,
    ) -> tuple[Candidate, dict[str, Any]]:
        """The pool at the pair's pace, by its own deadline, and what its entry must say."""
        candidate = self._at(pace_s, by)
        # a pool that waits for one whose hours are expected over futures is known as closely as that one
        closely = (
            candidate if beside is None else replace(candidate, in_turn=candidate.in_turn or beside.in_turn)
        )
        shape, closeness = self.own.shape, frame.closeness(closely)  # it waits in its fastest layout
        parts = [known_after(part, closeness) for part in candidate.parts]
        slack_usd = sum(charge.slack_usd for part in parts for charge in part.charges if charge.slack)
        sure = None
        if by is None:
            sure = Near(1.0) if level is None else self.sure_ratio(level, self.node["sure_ratio"].number())
        elif (candidate.p_meet or 0.0) < by.level - _CHANCE_SLACK:
            met = f"{self.name}: its part by sure_hours is met with {candidate.p_meet or 0.0:.4f}"
            raise ImpossibleError(f"{met}, {by.level:.4f} is asked")
        return candidate, {
            "name": self.name, "accelerator": str(self.lead.kind["accelerator"]), "nodes": self.nodes,
            "accelerators": Near(self.accelerators), "own_step_s": Near(self.step_s),
            "paced_s": Near(pace_s, closeness), "stretch": Near(stretch, closeness),
            "hours": Near(candidate.hours, closeness),
            "tensor_parallel": int(shape["tp"]), "pipeline_parallel": int(shape["pp"]),
            "data_parallel": int(shape["dp"]), "sure_ratio": sure,
            "cost_usd": Near(candidate.cost, closeness, max(slack_usd, 1e-9)),
            "deadline_hours": None if by is None else Near(by.hours, closeness),
            "price_as_of": min(buy.offer.text("as_of") for buy in self.buys),
            "parts": [part_of(part, closely) for part in parts],
        }  # fmt: skip


def _stretch(candidate: Candidate) -> float:
    """Elapsed over work hours, for interruptions."""
    return (candidate.hours - candidate.waiting - candidate.steps.fixed) / candidate.steps.work


def check(findings: Findings, workload: Workload, sha256: str, memory: Memory) -> None:
    """Compare a pair of pools with what is recomputed."""
    answer = findings.answer
    created = answer["created_at"].moment()
    bench = memory.bench(workload, created)
    nodes = list(answer["pools"])
    findings.require([n["name"].text() for n in nodes] == list(_NAMES), "pools", "not trainer and rollouts")
    rollouts = bench.work.training.tuning.rollouts
    if rollouts is None or len(nodes) != len(_NAMES):
        raise ImpossibleError("pools: no workload of reinforcement learning, or not two pools")
    pools = _both(bench, nodes)
    refit, moved_gb, moved = _handover(bench, pools)
    both = [pool.step_s for pool in pools]
    step = (max(both) if rollouts.steps_off_policy else sum(both)) + refit
    limits, deadline = workload.constraints, bench.deadline_hours
    horizon = None if deadline < inf else bench.work.figures["pools_horizon_hours"]
    by_deadline = any(pool.by_deadline for pool in pools)
    end = _end(answer, deadline if horizon is None else horizon) if by_deadline else None
    paced = _paced(findings, bench, pools, step, end)
    candidates, pool_entries = zip(*paced, strict=True)
    cost = sum((candidate.cost for candidate in candidates), moved)
    hours, close = (
        max(candidate.hours for candidate in candidates),
        max(frame.closeness(candidate) for candidate in candidates),
    )
    sure = end
    if sure is None:
        sure = hours * nodes[0]["sure_ratio"].number() * nodes[1]["sure_ratio"].number()
    _limits(findings, workload, pools, sure, deadline)
    for pool in pools:
        for text in purchase_faults(
            bench, pool.buys, in_turn=pool.in_turn, by_deadline=by_deadline or deadline < inf
        ):
            findings.fault(pool.node["parts"].path, text)
    _quotas(findings, workload, nodes, memory.catalog.instance_types)
    _at_once(findings, workload, pools)
    last = None if horizon is None else Near(horizon)  # older answers have none, and no pair that needs it
    bound, logprob = answer["bound_usd"].money(), float(pools[0].own.shape["other_models_s"])
    gap = float((cost - bound) / cost)
    over = limits.budget_usd is not None and cost > Fraction(limits.budget_usd)
    findings.require(bool(answer["reason"].text()) == over, "reason", "whether the budget is kept")
    findings.expect(answer, {
        "workload": workload.name, "workload_sha256": sha256, "created_at": created.isoformat(timespec="minutes"),
        "start": Timestamp(bench.start), "catalog": frame.catalog_sources(memory.catalog), "currency": "USD",
        "schema_version": 1, "planner_version": STATED, "pools": list(pool_entries), "step_s": Near(step, close),
        "train_s": Near(both[0]), "logprob_s": Near(logprob), "update_s": Near(both[0] - logprob),
        "generate_s": Near(both[1]), "refit_s": Near(refit), "moved_gb": Near(moved_gb),
        "moved_usd": Near(moved, slack=1e-6), "hours": Near(hours, close), "sure_hours": Near(sure, close),
        "cost_usd": Near(cost, close), "bound_usd": Exactly(min(bound, cost * (1 + Fraction(max(close, 1e-9))))),
        "gap_ratio": Near(max(gap, 0.0), 1e-5, max(close, 1e-8)), "steps": Near(bench.work.steps),
        **dict.fromkeys(("pairs", "reason", "cost_p10_usd", "cost_p90_usd"), STATED),
        **{name: None if answer[name].is_null else STATED for name in ("colocated", "same_ways", "one_chip")},
        "divided": IfStated(
            None if rollouts.colocated or "divided" not in answer or answer["divided"].is_null else STATED
        ),
        "steps_off_policy": rollouts.steps_off_policy, "confidence": Near(limits.deadline_confidence),
        "deadline_hours": None if deadline == inf else Near(deadline),
        "horizon_hours": last if by_deadline and horizon else IfStated(last),
        "budget_usd": None if limits.budget_usd is None else Exactly(Fraction(limits.budget_usd)),
    })  # fmt: skip


def _both(bench: Bench, nodes: list[Node]) -> list[_Pool]:
    """Both pools, each beside the other."""
    pools = [_Pool(bench, node, name) for node, name in zip(nodes, _NAMES, strict=True)]
    _on_their_own(bench, pools)
    for pool, other in zip(pools, pools[::-1], strict=True):
        pool.stand_beside(other)
    return pools


def _on_their_own(bench: Bench, pools: list[_Pool]) -> None:
    """Of commitments of equal terms, which hold both, each pool is taken to be on the one that its cost speaks for."""
    pairs = pairs_on(pools[0].buys[0], pools[1].buys[0], bench.workload, bench.start)
    if pairs:
        off = [{at: pool.off_usd(at) for at in {pair[n] for pair in pairs}} for n, pool in enumerate(pools)]
        nearest = min(pairs, key=lambda pair: off[0][pair[0]] + off[1][pair[1]])
        for pool, at in zip(pools, nearest, strict=True):
            pool.buys = [replace(pool.buys[0], commitment=at)]


def _end(answer: Node, deadline: float) -> float:
    """Hours from the start by which the pair is planned to end: the deadline or the horizon, or before it."""
    hours = answer["sure_hours"].number()
    if not 0.0 < hours <= deadline * (1 + 1e-9):
        raise ImpossibleError(f"sure_hours: {hours:g} h are not before the last end of {deadline:g} h")
    return hours


def _paced(
    findings: Findings, bench: Bench, pools: list[_Pool], step: float, end: float | None
) -> list[tuple[Candidate, dict[str, Any]]]:
    """Both pools at the pace of the pair; `end`: hours by which it is planned to end, None on demand or on spot."""
    level = 1.0 - (1.0 - bench.workload.constraints.deadline_confidence) / 2.0
    if end is not None:
        return _by_deadline(findings, bench, pools, step, (end, level))
    asked = None if bench.deadline is None else level
    return [
        pool.paced(step * other.stretch, asked, stretch=pool.stretch)
        for pool, other in zip(pools, pools[::-1], strict=True)
    ]


def _by_deadline(
    findings: Findings, bench: Bench, pools: list[_Pool], step: float, end: tuple[float, float]
) -> list[tuple[Candidate, dict[str, Any]]]:
    """Pools of one region that share the room which the end of the pair leaves beside its work.

    `end`: hours from the start by which the pair is planned to end, and the probability that each pool keeps.
    """
    places = set.union(*(pool.places for pool in pools))
    findings.require(
        len(places) == 1, "pools", "not in one region, as pools with a deadline of their own are"
    )
    whole, level = end
    work = bench.work.steps * step / 3600.0 * bench.work.per_step
    if work >= whole:
        raise ImpossibleError(f"sure_hours: {work:g} h of work do not end within {whole:g} h")

    def by(slow: float) -> _By:
        """Work that takes x times as long leaves `whole - x work`, and each pool has half of it."""
        return _By(min(whole, work * slow + (whole - work) / 2.0), level, work * (slow - 0.5))

    slowed = [pool.stretched(step, by(1.0)) for pool in pools]
    return [
        pool.paced(step * other, level, stretch=own, by=by(other), beside=beside)
        for pool, own, other, beside in zip(pools, slowed, slowed[::-1], pools[::-1], strict=True)
    ]


def _limits(
    findings: Findings, workload: Workload, pools: list[_Pool], sure_hours: float, deadline: float
) -> None:
    limits = workload.constraints
    findings.require(
        sum(pool.nodes for pool in pools) <= limits.max_nodes, "pools", "more nodes than max_nodes"
    )
    most = limits.max_accelerators or inf
    findings.require(
        sum(p.accelerators for p in pools) <= most, "pools", "more accelerators than max_accelerators"
    )
    findings.require(sure_hours <= deadline * (1 + 1e-9), "sure_hours", f"after the deadline of {deadline} h")


def _quotas(findings: Findings, workload: Workload, pools: list[Node], types: Table) -> None:
    """Pools of one region keep each quota together; what a pool uses in turn is not in use together."""
    for limit in workload.constraints.quota:
        drawn: dict[str, float] = {}
        for pool in pools:
            parts = [part for part in pool["parts"] if fnmatchcase(part["region"].text(), limit.region)]
            for region in {part["region"].text() for part in parts}:
                most = max(units_of(part, limit, types) for part in parts if part["region"].text() == region)
                drawn[region] = drawn.get(region, 0.0) + most
        for region, units in drawn.items():
            if units > limit.limit * (1 + 1e-9):
                place = f"{limit.provider}/{region} {limit.quota}"
                findings.fault("pools", f"draw {units:g} together on {place}, limit {limit.limit:g}")


def _at_once(findings: Findings, workload: Workload, pools: list[_Pool]) -> None:
    """Pools that buy the same offer find machines for both."""
    nodes = sum(pool.nodes for pool in pools)
    shared = set.intersection(*({buy.offer.offer_id for buy in pool.buys} for pool in pools))
    for offer in (buy.offer for buy in pools[0].buys if buy.offer.offer_id in shared):
        provider, region, option = (offer.text(name) for name in ("provider", "region", "purchase_option"))
        kind = str(offer.kind["accelerator"])
        most = most_by_asking(provider, region, kind, option, workload.constraints)
        count = nodes * offer.accelerators
        if most is not None and count > most:
            text = (
                f"{count:g} x {kind} {option} at once in {provider}/{region}: the assumed limit is {most:g}"
            )
            findings.fault("pools", text)
        if nodes > offer.capacity:
            findings.fault("pools", f"{nodes} x {offer.offer_id}: {offer.capacity:g} are available")


def _work_of(work: Work, name: str, paced_s: float) -> Work:
    """What one pool does; the rollouts bring no data, save no model, and lose the answers in flight."""
    rollouts = work.training.tuning.rollouts
    assert rollouts is not None
    pool: Literal["trainer", "rollouts"] = "trainer" if name == "trainer" else "rollouts"
    paced = replace(rollouts, pool=pool, colocated=False, paced_s=paced_s)
    training = replace(work.training, tuning=replace(work.training.tuning, rollouts=paced))
    if name == "trainer":
        return replace(work, training=training)
    return replace(work, training=training, data_gb=0.0, read_gb=0.0, export_gb=0.0, checkpoint_gib=0.0)


def _handover(bench: Bench, pools: list[_Pool]) -> tuple[float, float, Fraction]:
    """Time of a hand-over in s, what crosses between regions in GB over all steps, and what that costs."""
    work = bench.work
    rollouts = work.training.tuning.rollouts
    assert rollouts is not None
    size = weight_bytes(work.model, rollouts)
    ends = [pool.lead.place for pool in pools]
    same = ends[0] == ends[1]
    near = "inter_region_staging_gbps" if ends[0][0] == ends[1][0] else "cross_cloud_staging_gbps"
    gbps = inf if same else work.figures[near]
    copies, rate = pools[1].copies, min(pool.rate for pool in pools)
    refit = float(handover_s(size, np.asarray(copies), np.asarray(rate), np.asarray(gbps)))
    if same:
        return refit, 0.0, Fraction(0)
    tariffs = load_tariffs()
    listed = tariffs.transfer_curve(*ends[0], *ends[1])
    curve = tariffs.dearest_internet_curve() if listed is None else listed
    moved_gb = size * work.steps / float(GB)
    return refit, moved_gb, moved_usd(curve, Fraction(moved_gb))
