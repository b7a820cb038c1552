"""What to do now: the rest of the work asked of the candidate engine, against staying.

The workload is asked again with the work that is left, the time and money that are left, and the measured speed as a
measurement; each way to go on is the best candidate of the one engine within that way. Staying is the forecast itself.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.candidates.choose import best_where
from planner.candidates.engine import Engine
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import prepare
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.errors import InputError
from planner.inputs.load import MAX_BYTES, load_workload
from planner.inputs.schema import SeenWait
from planner.inputs.settings import with_settings, work_setting
from planner.market.starts import ALREADY_OWNED
from planner.render.precision import dollars
from planner.render.screen import prices_note
from planner.render.words import cluster, option, place
from planner.tracking.advice import advised_of
from planner.tracking.model import Replan, Way

if TYPE_CHECKING:
    from typing import Any

    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.plan.model import PlanLine
    from planner.tracking.answer import Tracked

STAY = "stay"
_USUAL_CONFIDENCE = 0.9
_MOST_FILES = 200
_GB_PER_GIB = 1.073741824
_LARGER = 4  # sizes up to so many times the present one are tried
_BY_SET = "if values were given by --set, write them into it and plan once more"
_SUPPOSED = (
    "it counts as a request for the same capacity that has not been granted, so such capacity is later and less sure "
    "for the other options; wrong if the run stands still for another reason"
)
_UNKNOWN = (
    "the other options are planned as new launches, so their chances do not take this wait into account; if it is for "
    "spot, more nodes of the same type on spot may wait as well"
)
_LEAST_GAIN = 0.02  # of the cost from now on: less is not worth a change


def workload_of(tracked: Tracked, plan_path: Path | None, named: Path | None) -> LoadedWorkload:
    """The workload of the plan: the file named, else the one beside the plan or here whose hash is the plan's.

    Raises:
        InputError: there is none, or the one named is another one.
    """
    sha256 = tracked.planned.plan.workload_sha256
    if named is not None:
        loaded = load_workload(named)
        if loaded.sha256 != sha256:
            raise InputError(f"--workload {named}: is not the workload file of this plan; {_BY_SET}")
        return loaded
    folders = [Path.cwd()] if plan_path is None else [plan_path.resolve().parent, Path.cwd()]
    candidates = (
        path for folder in dict.fromkeys(folders) for path in sorted(folder.glob("*.y*ml"))[:_MOST_FILES]
    )
    for path in candidates:
        if _sha256(path) == sha256:
            return load_workload(path)
    raise InputError(f"--replan: needs the workload of this plan: name its file with --workload; {_BY_SET}")


def _sha256(path: Path) -> str:
    """Hash of a file that is as small as a workload must be; empty for others."""
    small = path.is_file() and path.stat().st_size <= MAX_BYTES
    return hashlib.sha256(path.read_bytes()).hexdigest() if small else ""


def replan(tracked: Tracked, loaded: LoadedWorkload, *, catalog_dir: Path | None = None) -> Tracked:
    """The run with ways to go on, and the one to take.

    Args:
        tracked: the run.
        loaded: the plan's workload.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is no training job.
        CatalogError: the catalog cannot be used.
    """
    if tracked.left_steps <= 0:
        return replace(tracked, replan=Replan(STAY, "the work is done: stop the instances", ()))
    remaining, notes = _rest(tracked, loaded)
    finder = _Ways(tracked, remaining, catalog_dir)
    ways = (_stay(tracked), *(finder.best(action) for action in ("add nodes", "change type", "go on-demand")))
    decision, why = _decide(tracked, ways)
    advised = advised_of(tracked)
    supposed = () if advised is None else (advised.supposed,)
    prices = prices_note((way.price_as_of for way in ways), tracked.now.date())
    return replace(tracked, replan=Replan(decision, why, ways, (*notes, *prices, *supposed), advised))


def _rest(tracked: Tracked, loaded: LoadedWorkload) -> tuple[LoadedWorkload, tuple[str, ...]]:
    """The workload with what is left of work, time and money, and with the measured speed."""
    planned = tracked.planned
    if loaded.workload.training is not None and loaded.workload.training.phases:
        raise InputError(
            f"{loaded.path}: training.phases: --replan takes no run in phases, as what is left is not the whole run in "
            "small: plan the phases that are left as a workload of their own, or leave --replan out"
        )
    left = work_setting(loaded.workload, tracked.left_steps / planned.steps)
    if left is None:
        raise InputError(
            f"{loaded.path}: --replan is for training jobs with training.tokens, samples, epochs or steps"
        )
    # what ends, such as a commitment, has its hours from now on, not from the first start
    settings = [left, f"start={tracked.now.isoformat(timespec='seconds')}", "earliest_start=null"]
    notes: list[str] = []
    if planned.deadline is not None:
        minutes = (planned.deadline - tracked.now) / timedelta(minutes=1)
        if minutes > 0:
            settings.append(f"constraints.deadline={int(minutes)}m")
        else:
            settings.append("constraints.deadline=null")
            notes.append("the deadline has passed: options are compared only by cost")
    if planned.budget_usd is not None:
        settings.append(f"constraints.budget_usd={max(planned.budget_usd - tracked.spent_usd, 1.0):.2f}")
    line = _line(tracked)
    if tracked.speed.measured_s is not None and planned.unit in ("tokens", "samples"):
        between = (
            tracked.speed.planned_s or planned.pace_s
        ) / planned.step_s  # the new plan adds it to the steps
        rate = planned.units / planned.steps / tracked.speed.measured_s * between
        settings.append(f"measured={rate:.3f} {planned.unit}/s on {line.nodes} x {line.instance_type}")
        notes.append("the measured speed corrects what is predicted for this accelerator generation")
        if tracked.causes and tracked.causes[0].key in ("loader", "straggler"):
            notes.append(f"fix {tracked.causes[0].title} first: other machines may be equally slow")
    rest, is_request = _with_wait(tracked, with_settings(loaded, settings))
    if tracked.stalled_hours:
        notes.append(
            f"no step for {round(tracked.stalled_hours, 1):,g} h: {_SUPPOSED if is_request else _UNKNOWN}"
        )
    return rest, tuple(notes)


def _with_wait(tracked: Tracked, loaded: LoadedWorkload) -> tuple[LoadedWorkload, bool]:
    """The workload with the wait of a stalled run among its requests for capacity, and whether there is one.

    A request for spot says nothing that plans use: how long spot stays away follows from the records of its pool. What
    is owned is there at once.
    """
    workload, hours = loaded.workload, tracked.stalled_hours
    seen = tuple(
        SeenWait(
            accelerator=line.accelerator, purchase_option=line.purchase_option, waited_hours=hours, came=False,
            accelerators=math.ceil(line.nodes * line.accelerators_per_node), provider=line.provider,
            region=line.region,
        )
        for line in tracked.planned.plan.lines
        if hours and line.purchase_option not in ("spot", "owned") and line.option_variant != ALREADY_OWNED
    )  # fmt: skip
    launch = tracked.planned.plan.launch
    if not seen or (launch is not None and launch.strategy == "spot_with_fallback"):
        return loaded, False
    limits = workload.constraints.model_copy(update={"waited": (*workload.constraints.waited, *seen)})
    return replace(loaded, workload=workload.model_copy(update={"constraints": limits})), True


def _line(tracked: Tracked) -> PlanLine:
    """The line that the run is on."""
    return tracked.planned.plan.lines[0]


def _stay(tracked: Tracked) -> Way:
    line, nodes = _line(tracked), tracked.planned.nodes
    choice = f"{cluster(nodes, line.instance_type)}, {option(line.purchase_option, line.option_variant)}"
    p_meet = None if tracked.p_late is None else 1.0 - tracked.p_late
    finish = tracked.finish[0].isoformat(timespec="minutes")
    return Way(STAY, choice, tracked.usd_left.value, 0.0, finish, p_meet)


class _Ways:
    """The rest of the work, asked again within one way after the other."""

    def __init__(self, tracked: Tracked, rest: LoadedWorkload, catalog_dir: Path | None) -> None:
        catalog = load_catalog(catalog_dir)
        self._tracked, self._run = tracked, prepare(rest, rest.workload, catalog, Options(tracked.now))

    def best(self, action: str) -> Way:
        """The best candidate within one way."""
        run, tracked = self._run, self._tracked
        line, nodes = _line(tracked), tracked.planned.nodes
        limits = run.asked.workload.constraints
        types = limits.instance_types
        changes: dict[str, Any] = {
            "instance_types": types.model_copy(update={"allow": (line.instance_type,)})
        }
        sizes: tuple[int, ...] | None = (nodes,)
        if action == "add nodes":
            sizes = tuple(range(nodes + 1, min(_LARGER * nodes, limits.max_nodes) + 1))
            if not sizes:
                return Way(action, "", None, 0.0, None, None, f"constraints.max_nodes is {limits.max_nodes}")
        elif action == "change type":
            changes = {"instance_types": types.model_copy(update={"deny": (*types.deny, line.instance_type)})}
            sizes = None
        elif all(plan_line.purchase_option == "on_demand" for plan_line in tracked.planned.plan.lines):
            return Way(action, "", None, 0.0, None, None, "it runs on-demand already")
        else:
            changes["purchase_options"] = ("on_demand",)
        workload = run.asked.workload.model_copy(update={"constraints": limits.model_copy(update=changes)})
        engine = Engine(run.with_asked(replace(run.asked, workload=workload)), sizes=sizes)
        candidates = engine.at(run.dates.deadline, Wanted(Scope.BEST)).candidates
        objective = run.asked.workload.preferences.objective
        at = best_where(candidates, candidates.bits == 0, objective)
        if at is None:
            return Way(
                action, "", None, 0.0, None, None, "none meets the deadline, the budget and the other limits"
            )
        return _described(tracked, action, candidates, at)


def _described(tracked: Tracked, action: str, candidates: Candidates, at: int) -> Way:
    brief = summarize(candidates, at, None)
    change = _change_usd(tracked) + _move_usd(tracked, candidates, brief.provider, brief.region)
    finish = tracked.now + timedelta(hours=brief.hours)
    choice = (
        f"{cluster(brief.nodes, brief.instance_type)}, {option(brief.purchase_option, brief.option_variant)}, "
        f"{place(brief.provider, brief.region, '')}"
    )
    chance = stated_chance(candidates, at)
    return Way(
        action, choice, float(brief.cost_usd) + change, change, finish.isoformat(timespec="minutes"), chance,
        price_as_of=brief.price_as_of,
    )  # fmt: skip


def _change_usd(tracked: Tracked) -> float:
    """What leaving costs: a last checkpoint is written, and the cluster stands by while the new one loads it."""
    launch = tracked.planned.plan.launch
    saved = None if launch is None else launch.checkpoints
    seconds = 720.0 if saved is None or saved.restart_s is None else saved.write_s + saved.restart_s
    return seconds / 3600.0 * tracked.planned.usd_per_hour


def _move_usd(tracked: Tracked, candidates: Candidates, provider: str, region: str) -> float:
    """What carrying the last checkpoint to another region costs; an unknown price counts as the dearest known one."""
    line, launch = _line(tracked), tracked.planned.plan.launch
    if launch is None or (line.provider, line.region) == (provider, region):
        return 0.0
    tariffs = candidates.context.market.tariffs
    curve = (
        tariffs.transfer_curve(line.provider, line.region, provider, region)
        or tariffs.dearest_internet_curve()
    )
    size = launch.checkpoints.size_gib * (1.0 if curve.unit == "GiB" else _GB_PER_GIB)
    return float(sum(quantity * price for quantity, price in curve.lines(Decimal(repr(round(size, 6))))))


def _decide(tracked: Tracked, ways: tuple[Way, ...]) -> tuple[str, str]:
    """The cheapest way that is sure enough; staying, where a change gains little; else the surest."""
    planned = tracked.planned
    sure = _USUAL_CONFIDENCE if planned.confidence_ratio is None else planned.confidence_ratio
    possible = [way for way in ways if way.usd is not None]
    within = [way for way in possible if way.p_meet is None or way.p_meet >= sure]
    stay = ways[0]
    assert stay.usd is not None
    if not within:
        best = max(possible, key=lambda way: (round(way.p_meet or 0.0, 2), -(way.usd or 0.0)))
        return (
            best.action,
            f"No option is in time with {100.0 * sure:.0f} %; {best.action} is the most likely to be.",
        )
    best = min(within, key=lambda way: way.usd or 0.0)
    if stay in within and stay.usd <= (best.usd or 0.0) * (1.0 + _LEAST_GAIN):
        return STAY, "Stay: no change is in time and saves more than it costs."
    saves = stay.usd - (best.usd or 0.0)
    words = f"saves {dollars(saves, 0)}" if saves > 0 else f"costs {dollars(-saves, 0)} more and is in time"
    return best.action, f"{best.action[0].upper()}{best.action[1:]}: it {words}."
