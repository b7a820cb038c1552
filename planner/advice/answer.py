"""What to do now: the policy's decision under the hard guard, what it costs, and what else could be done."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from planner.advice.model import Advice, Option, Status, Word
from planner.advice.reasons import reason
from planner.advice.rollout import (
    Forced,
    Guarded,
    futures_of,
    roll_out,
    spot_alone_in_time,
    with_history,
)
from planner.normal import Z80
from planner.records import record
from planner.spot.policy.job import Action, JobState, SpotJob
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import EPS_HOURS, MODES, JobView
from planner.spot.zones import comes_given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools, Floats
    from planner.advice.question import Question
    from planner.spot.hazards import HazardModel
    from planner.spot.policy.survival import Memory
    from planner.spot.policy.view import ArrayPolicy

FUTURES = 400
MOST_TRIED = 6  # other actions whose cost is told: zones beyond the cheapest are seldom of use


def advise(
    question: Question,
    model: HazardModel,
    policy_name: str = "survival",
    *,
    futures: int = FUTURES,
    seed: int = 0,
    memory: Memory | None = None,
) -> Advice:
    """Decide what to do now.

    Args:
        question: plan and state.
        model: of spot hazards.
        policy_name: a key of `planner.spot.policy.registry.POLICIES`.
        futures: drawn for what each action costs; with 0 only the action is worked out, by far the quickest.
        seed: of the futures.
        memory: of policies solved before; default: this process's own.

    Raises:
        InputError: no policy of that name.
    """
    job, state = question.job, question.state
    tables = {zone.name: model.table_for(zone) for zone in job.zones}
    # what the loop saw of its zones tells the policy how they are these days
    recorded_zones = {zone.name for zone in state.zones if len(question.history.get(zone.name, ()))}
    seen = with_history(job, tables, state, question.history)
    history = {name: hours for name, hours in seen.history.items() if name in recorded_zones}
    policy = make_policy(policy_name, replace(job, history=history), tables, memory)
    work, left = job.work_hours - state.done_hours, _time_left(question)
    settled = _settled(question, work, left)
    if settled is not None:
        status, option, why = settled
        return Advice(
            question, policy_name, status, option, (), "state", why, work, left, math.nan, math.nan, tables
        )
    action, decided_by = decide(policy, state)
    status = "running" if can_still_finish(job, state) else "late"
    slack = left - work - _on_demand_start(job, state)
    if not futures:
        option = Option(word_of(action, state), action, math.nan, math.nan, math.nan)
        bare = Advice(
            question, policy_name, status, option, (), decided_by, "", work, left, slack, math.nan, tables
        )
        return replace(bare, why=reason(bare))
    from planner.spot.launch import chance_of

    up = futures_of(job, tables, state, question.history, futures, seed)
    alone = spot_alone_in_time(job, policy.view, state, up)
    luck = _Luck(up, alone, question.plan.on_demand_had_ratio, question.plan.scarce_together_ratio)
    safe = Guarded(policy)
    chosen, *tried = _options(job, safe, state, luck, (action, *_others(state, action)))
    others = sorted(tried, key=lambda one: (-round(one.p_finish, 2), one.cost_usd))
    advice = Advice(
        question, policy_name, status, chosen, tuple(others), decided_by, "", work, left,
        slack, chance_of("spot_only", alone), tables,
    )  # fmt: skip
    return replace(advice, why=reason(advice))


def decide(policy: ArrayPolicy, state: JobState) -> tuple[Action, str]:
    """The policy's action under the hard guard, and who decided: `policy` or `guard`."""
    preferred, action = policy.decide(state), Guarded(policy).decide(state)
    return action, "policy" if action == preferred else "guard"


def can_still_finish(job: SpotJob, state: JobState) -> bool:
    """Whether on-demand, kept or asked for now, ends in time."""
    need = job.work_hours - state.done_hours + _on_demand_start(job, state)
    return JobView(job).deadline_hours - state.elapsed_hours >= need - EPS_HOURS


def _on_demand_start(job: SpotJob, state: JobState) -> float:
    """Hours until on-demand, kept or asked for now, makes progress."""
    return (
        state.restart_left_hours
        if state.mode == "on_demand"
        else job.restart_hours + job.on_demand_acquire_hours
    )


def _time_left(question: Question) -> float:
    assert question.plan.deadline is not None
    return (question.plan.deadline - question.now) / timedelta(hours=1)


def _settled(question: Question, work: float, left: float) -> tuple[Status, Option, str] | None:
    """The answer where there is nothing to decide."""
    job = question.job
    if work <= EPS_HOURS:
        idle = Option("nothing", Action("idle"), 0.0, 1.0, 0.0)
        return "finished", idle, "all work is done and saved: stop the instances"
    if left > 0:
        return None
    running = question.state.mode == "on_demand"
    hours = work + _on_demand_start(job, question.state)
    word: Word = "stay" if running else "switch to on-demand"
    paid = work + (question.state.restart_left_hours if running else job.restart_hours)
    option = Option(word, Action("on_demand"), paid * job.on_demand_usd_per_hour, 0.0, hours)
    why = (
        f"the deadline passed {-left:.1f} h ago with {work:.1f} h of work left; on-demand ends soonest, "
        f"in {hours:.1f} h; with a new deadline plan the rest again"
    )
    return "missed", option, why


def _codes(view: JobView, action: Action) -> tuple[int, int]:
    """Codes of mode and zone."""
    zone = view.zone_number.get(action.zone or "", -1) if action.mode == "spot" else -1
    return MODES.index(action.mode), zone


@record(frozen=True, eq=False)
class _Luck:
    """What the options are tried on.

    Attributes:
        up: futures of the zones, shape `(n, n_zones, ticks)`.
        alone: whether spot alone, from the present on, is in time in each, shape `(n,)`.
        had_ratio: probability that on-demand comes when it is asked for.
        link_ratio: how far it is scarce when spot is (`planner.spot.zones`).
    """

    up: Bools
    alone: Bools
    had_ratio: float
    link_ratio: float

    def p_finish(self, finished: Bools, asked: Bools) -> float:
        """Probability to be in time: where on-demand was asked for and does not come, by spot alone.

        Args:
            finished: whether the run was in time in each future, shape `(n,)`.
            asked: whether it asked for on-demand, shape `(n,)`.
        """
        had = np.where(asked, comes_given(~self.alone, self.had_ratio, self.link_ratio), 1.0)
        return float((had * finished + (1.0 - had) * self.alone).mean())


def _options(
    job: SpotJob, policy: ArrayPolicy, state: JobState, luck: _Luck, actions: Sequence[Action]
) -> list[Option]:
    """What each action comes to, all followed at once; costs and ends are those with on-demand that comes."""
    n = len(luck.up)
    modes, zones = np.repeat([_codes(policy.view, action) for action in actions], n, axis=0).T
    forced = Forced(policy, state.elapsed_hours, modes, zones)
    batch_replay = roll_out(job, forced, state, luck.up, len(actions))
    # what is left at the deadline is charged on-demand, so it also ends then
    late = batch_replay.work_left_hours + job.restart_hours + job.on_demand_acquire_hours
    end = (
        np.where(batch_replay.finished, np.nan_to_num(batch_replay.finish_hours), job.deadline_hours + late)
        - state.elapsed_hours
    )
    cost = batch_replay.cost_usd
    return [
        Option(
            word_of(action, state),
            action,
            float(cost[rows].mean()),
            luck.p_finish(batch_replay.finished[rows], batch_replay.on_demand_asked[rows]),
            float(end[rows].mean()),
            _half(cost[rows]),
            _half(cost[rows] - cost[:n]),
        )
        for action, rows in zip(actions, _slices(len(actions), n), strict=True)
    ]


def _half(usd: Floats) -> float:
    """Half of the 80 % interval of a mean."""
    return float(Z80 * usd.std() / np.sqrt(len(usd)))


def _slices(count: int, size: int) -> list[slice]:
    """So many runs of rows, one behind the other."""
    return [slice(number * size, (number + 1) * size) for number in range(count)]


def word_of(action: Action, state: JobState) -> Word:
    """An action in the words of a launcher."""
    if action.mode == "idle":
        return "wait"
    if action.mode == state.mode and action.zone == state.zone:
        return "stay"
    if action.mode == "on_demand":
        return "switch to on-demand"
    return "migrate" if state.mode == "spot" else "start spot"


def _others(state: JobState, chosen: Action) -> list[Action]:
    """What else can be done now: waiting, on-demand, and the cheapest zones that are up."""
    up = sorted((zone for zone in state.zones if zone.available), key=lambda zone: zone.usd_per_hour)
    zones = [Action("spot", zone.name) for zone in up]
    current_zone = Action("spot", state.zone) if state.mode == "spot" else None
    tried = [Action("on_demand"), Action("idle"), *([current_zone] if current_zone else []), *zones]
    unique = list(dict.fromkeys(action for action in tried if action != chosen))
    return unique[:MOST_TRIED]
