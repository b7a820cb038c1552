"""From a plan and a state file to the job and the state that policies know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools
from planner.errors import InputError
from planner.inputs.faults import Fault, near
from planner.records import record
from planner.spot.policy.job import JobState, SpotJob, SpotZone, ZoneState

if TYPE_CHECKING:
    from planner.advice.saved_plan import Place, SpotPlan
    from planner.inputs.state_load import LoadedState
    from planner.inputs.state_schema import RunState, StateZone

HISTORY_HOURS = 24.0
TICK_HOURS, MOST_TICKS = 0.1, 1_680  # a week of 6 minutes
_FUTURE = timedelta(minutes=5)  # clocks of launchers differ by less
_STALE_INTERVALS = 2.0  # a loop writes its state just before it asks: older than this, the writer has stopped
_SLIP = 1e-6


@record(frozen=True, eq=False)
class Question:
    """What is asked.

    Attributes:
        plan: the spot line.
        job, state: for policies; a run whose zone is gone is idle already; time counts from the next whole tick.
        history: per zone name what came before the present spell, up per tick, oldest first.
        seen: the state file's zones, in the job's order.
        now: the present moment.
        interrupted: whether the file says spot runs in a zone that is gone.
        notes: what was assumed.
    """

    plan: SpotPlan
    job: SpotJob
    state: JobState
    history: Mapping[str, Bools]
    seen: tuple[StateZone, ...]
    now: datetime
    interrupted: bool
    notes: tuple[str, ...]


def usual_tick_hours(plan: SpotPlan) -> float:
    """Time between two questions where the user names none: 6 minutes, longer where that makes very many ticks."""
    if plan.deadline is None:
        return TICK_HOURS
    return TICK_HOURS * max(1, math.ceil(_hours(plan.deadline - plan.start) / (TICK_HOURS * MOST_TICKS)))


def build_question(
    plan: SpotPlan,
    loaded: LoadedState,
    *,
    tick_hours: float,
    clock: datetime,
    loop_hours: float | None = None,
) -> Question:
    """Join plan and state.

    Args:
        plan: of the saved plan.
        loaded: the state file.
        tick_hours: time between two questions of the launcher.
        clock: the real present, which a state may not lie after.
        loop_hours: time between two questions where the user named it: a state older than twice that is refused.

    Raises:
        InputError: they contradict each other; lists every fault with its place in the state file.
    """
    from planner.advice.prices import with_prices

    state = loaded.state
    if plan.deadline is None:
        raise InputError(
            f"the plan of {plan.name} has no deadline, and without one waiting never costs anything: set "
            "constraints.deadline in the workload and plan again"
        )
    launched = state.launched_at if isinstance(state.launched_at, datetime) else plan.start
    now = state.now if isinstance(state.now, datetime) else launched + timedelta(hours=state.now)
    faults = [*_clock_faults(state, now, clock, loop_hours), *_faults(plan, state, launched, now)]
    if faults:
        raise loaded.error(faults)
    regions = [place_of(plan, zone).region for zone in state.zones]
    if state.on_demand_usd_per_hour is not None:
        plan = replace(plan, on_demand_usd_per_hour=state.on_demand_usd_per_hour * plan.nodes)
    plan, notes = with_prices(plan, regions)
    if plan.on_demand_usd_per_hour is None:
        lacking = (
            f"no on-demand price of {plan.instance_type} is known: add on_demand_usd_per_hour (one instance)"
        )
        raise loaded.error([Fault((), lacking)])
    aged = _age_note(state, now, clock, tick_hours) if loop_hours is None else ()
    return _joined(plan, state, launched, now, tick_hours, (*notes, *_elsewhere(plan, state), *aged))


def _joined(
    plan: SpotPlan,
    state: RunState,
    launched: datetime,
    now: datetime,
    tick_hours: float,
    notes: tuple[str, ...],
) -> Question:
    """The question of a plan and a state that fit together."""
    assert plan.deadline is not None and plan.on_demand_usd_per_hour is not None
    zones = tuple(
        SpotZone(
            zone.name,
            place_of(plan, zone).region,
            plan.instance_type,
            _usd(zone, plan),
            plan.provider,
            plan.nodes,
            accelerators=round(plan.accelerators_per_node),
        )
        for zone in state.zones
    )
    job = SpotJob(
        work_hours=plan.work_hours,
        deadline_hours=_hours(plan.deadline - launched),
        restart_hours=on_grid(plan.restart_hours, tick_hours),
        on_demand_usd_per_hour=plan.on_demand_usd_per_hour,
        zones=zones,
        egress_usd=plan.egress_usd,
        on_demand_acquire_hours=on_grid(plan.on_demand_acquire_hours, tick_hours),
        tick_hours=tick_hours,
        utc_hour=launched.astimezone(UTC).hour + launched.minute / 60.0,
    )
    seen = tuple(
        ZoneState(zone.name, zone.available, _usd(zone, plan), max(_since(zone, now), tick_hours))
        for zone in state.zones
    )
    gone = (
        state.mode == "spot" and not next(zone for zone in state.zones if zone.name == state.zone).available
    )
    region = state.checkpoint_region or next((z.region for z in zones if z.name == state.zone), None)
    return Question(
        plan,
        job,
        JobState(
            elapsed_hours=on_grid(_hours(now - launched), tick_hours),
            done_hours=min(_done_hours(plan, state), plan.work_hours),
            mode="idle" if gone else state.mode,
            zone=None if gone else state.zone,
            restart_left_hours=0.0 if gone else state.restart_left_hours,
            checkpoint_region=region,
            zones=seen,
        ),
        {zone.name: _history(zone, tick_hours) for zone in state.zones},
        tuple(state.zones),
        now,
        gone,
        notes,
    )


def has_moment(state: RunState) -> bool:
    """Whether the state says at what moment it was written; hours since the plan's start do not."""
    return isinstance(state.now, datetime) or isinstance(state.launched_at, datetime)


def _clock_faults(
    state: RunState, now: datetime, clock: datetime, loop_hours: float | None
) -> Iterator[Fault]:
    """What contradicts the clock: a state of the future, or one that its loop should have replaced."""
    if not has_moment(state):
        return
    age_hours = _hours(clock - now)
    if now > clock + _FUTURE:
        yield Fault(
            ("now",), f"is {-age_hours:.1f} h in the future (it is {clock:%Y-%m-%dT%H:%MZ}): UTC offset?"
        )
    if loop_hours is not None and age_hours > _STALE_INTERVALS * loop_hours:
        yield Fault(
            ("now",),
            f"the state is stale: it is of {now.astimezone(UTC):%Y-%m-%dT%H:%MZ}, {_age(age_hours)} ago, and the "
            f"loop asks every {_age(loop_hours)} (--every): write a fresh state before each question; to ask about "
            "a past moment leave out --every",
        )


def _age_note(state: RunState, now: datetime, clock: datetime, tick_hours: float) -> tuple[str, ...]:
    """What to say of an old state where no loop is named, so that nothing tells whether it is stale."""
    age_hours = _hours(clock - now)
    if not has_moment(state) or age_hours <= _STALE_INTERVALS * tick_hours:
        return ()
    return (f"the state is {_age(age_hours)} old; with --every, a state older than two intervals is refused",)


def _age(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1.0 else f"{60.0 * hours:.3g} min"


def _faults(plan: SpotPlan, state: RunState, launched: datetime, now: datetime) -> Iterator[Fault]:
    """What contradicts the plan."""
    assert plan.deadline is not None
    if now < launched:
        yield Fault(
            ("now",),
            f"is before the launch ({launched:%Y-%m-%dT%H:%MZ}): set launched_at if it began earlier",
        )
    if launched >= plan.deadline:
        yield Fault(("launched_at",), f"is after the plan's deadline ({plan.deadline:%Y-%m-%dT%H:%MZ})")
    if state.done_steps is not None and plan.steps is None:
        yield Fault(
            ("done_steps",), "the plan does not say its steps: give done_hours or done_ratio", at_key=True
        )
    elif _done_hours(plan, state) > plan.work_hours * (1.0 + _SLIP) + _SLIP:
        key = "done_steps" if state.done_steps is not None else "done_hours"
        whole = (
            f"{plan.steps:,} steps" if state.done_steps is not None else f"{plan.work_hours:.2f} h of work"
        )
        yield Fault((key,), f"is more than the whole plan has ({whole}): another plan's state?")
    for number, zone in enumerate(state.zones):
        if isinstance(zone.since, datetime) and zone.since > now:
            yield Fault(("zones", number, "since"), "is after 'now'")
    most = plan.restart_hours + plan.on_demand_acquire_hours
    if state.restart_left_hours > 10.0 * most + 1.0:
        yield Fault(("restart_left_hours",), f"is far above the plan's restart ({most:.2f} h)")
    for number, zone in enumerate(state.zones):
        if not _is_known(plan, zone):
            zones = sorted({place.zone or place.region for place in plan.places})
            text = f"{zone.name!r} is not a zone of the plan's ({', '.join(zones)}): give its region if it is meant"
            yield Fault(("zones", number, "name"), text, near(zone.name, zones))
    regions = {place_of(plan, zone).region for zone in state.zones} | {place.region for place in plan.places}
    if state.checkpoint_region is not None and state.checkpoint_region not in regions:
        hint = near(state.checkpoint_region, sorted(regions))
        yield Fault(
            ("checkpoint_region",), f"{state.checkpoint_region!r} is the region of none of the zones", hint
        )


def on_grid(hours: float, tick_hours: float) -> float:
    """The end of the tick that `hours` lies in: what is left of a tick cannot be counted on."""
    return math.ceil(hours / tick_hours - _SLIP) * tick_hours


def _hours(span: timedelta) -> float:
    return span / timedelta(hours=1)


def _done_hours(plan: SpotPlan, state: RunState) -> float:
    """Undisturbed hours of work done."""
    if state.done_steps is not None:
        return plan.work_hours * state.done_steps / max(plan.steps or 1, 1)
    return state.done_hours if state.done_hours is not None else plan.work_hours * (state.done_ratio or 0.0)


def place_of(plan: SpotPlan, zone: StateZone) -> Place:
    """The plan's place of a zone: that of its name, else of its region, else the first with the region as given."""
    from planner.advice.saved_plan import Place

    in_zone = [place for place in plan.places if place.zone == zone.name]
    region = zone.region or next(
        (planned.region for planned in plan.places if zone.name.startswith(planned.region)), None
    )
    in_region = [place for place in plan.places if place.region == region]
    chosen = (in_zone or in_region or plan.places)[0]
    if in_zone:
        return chosen
    capacity = chosen.capacity
    if capacity is not None:  # the records of one zone say little of another
        records = None if chosen.zone else capacity.records
        same = not capacity.recorded or (not chosen.zone and zone.name == chosen.region)
        capacity = replace(capacity, records=records, hazards=capacity.hazards if same else None)
    return Place(region or chosen.region, zone.name, chosen.usd_per_hour, capacity)


def _elsewhere(plan: SpotPlan, state: RunState) -> tuple[str, ...]:
    """Say which zones lie in none of the plan's regions: what is not given of them is taken from its first place."""
    known = {place.region for place in plan.places}
    names = [zone.name for zone in state.zones if place_of(plan, zone).region not in known]
    if not names:
        return ()
    stands_in = plan.places[0].zone or plan.places[0].region
    return (
        f"{', '.join(names)}: in none of the plan's regions ({', '.join(sorted(known))}), so its spells and, without "
        f"usd_per_hour, its price are those of {stands_in}: is it spelt right?",
    )


def _is_known(plan: SpotPlan, zone: StateZone) -> bool:
    """Whether the plan or the state file says where a zone is."""
    return zone.region is not None or any(
        place.zone == zone.name or zone.name.startswith(place.region) for place in plan.places
    )


def _usd(zone: StateZone, plan: SpotPlan) -> float:
    if zone.usd_per_hour is not None:
        return zone.usd_per_hour * plan.nodes
    return place_of(plan, zone).usd_per_hour


def _since(zone: StateZone, now: datetime) -> float:
    """Age of the present spell, hours."""
    if isinstance(zone.since, datetime):
        return _hours(now - zone.since)
    return zone.since or 0.0


def _history(zone: StateZone, tick_hours: float) -> Bools:
    """The last day before the present spell, up per tick."""
    parts = [np.full(max(round(spell.hours / tick_hours), 1), spell.available) for spell in zone.history]
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)
    return whole[-round(HISTORY_HOURS / tick_hours) :]
