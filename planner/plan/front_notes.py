"""What a buyer must know or do first, most important first, and the verdict with its proof."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from catalogs.tables.regions import off_by_default
from planner.plan.front_scale import Scale
from planner.plan.ids import AT_WORK
from planner.plan.model import Plan
from planner.plan.starters import starter_of
from planner.plan.words import claim, old_price, over_budget, quota_lines
from planner.render import claims
from planner.render.model import Section
from planner.render.numbers import number, whole_percent
from planner.render.precision import about, dollars, dollars_stated

_MOST = 5
_MOST_REGIONS = 4
_NEAR = 0.02  # gap of a fleet from which on it is said what its bound leaves out
_IN_HOURS_FROM = 2.0  # intervals between checkpoints
_UNKNOWN_QUOTA = "unknown quota"  # the name that a line has where its provider publishes none
_LEAST_GAIN_USD = 1.0  # of a measurement: less is $0 on the screen
_PLACES = {"not-stated": "a place not stated"}
_NEXT = ("explain FILE", "frontier FILE", "compare FILE --over region", "whatif FILE --set KEY=VALUE")
_OF_ONE_JOB = _NEXT[1:3]  # a fleet is chosen as a whole


def before_you_buy(plan: Plan) -> list[Section]:
    """Return at most five notes: the worst case, slow decoding, old prices, interruptions, quotas, other warnings."""
    notes = [*_budget(plan), *_decoding(plan), *_prices(plan), *_interruptions(plan), *_quotas(plan)]
    summarized = {*_said(plan)}
    # those of the chosen machines come last, and matter most
    further = [text for text in reversed(plan.warnings) if text not in summarized]
    shown = [*further[: max(_MOST - len(notes), 1)], *notes][:_MOST]
    more = len(further) + len(notes) - len(shown)
    if len(shown) < _MOST:
        shown += _profile(plan)
    if more:
        shown[-1] += f" (+ {more} more: --details warnings)"
    return [Section("before_you_buy", "Before you buy", tuple(shown), warning=True)] if shown else []


def _profile(plan: Plan) -> list[str]:
    """The measurement that is worth making before anything is bought."""
    cost, narrows = plan.profile_cost_usd, plan.profile_narrows_usd
    if cost is None or narrows is None or narrows < _LEAST_GAIN_USD:
        return []
    gained = dollars(_rounded(narrows), 0)
    spent = f"about {dollars(_rounded(cost), 0)}" if cost >= 1.0 else "under $1"
    return [f"profile 100 steps first ({spent}), then planner calibrate: cost interval narrower by {gained}"]


def _rounded(value: float) -> float:
    """To two digits."""
    return float(f"{value:.2g}")


def _said(plan: Plan) -> list[str]:
    """Warnings of the plan that are said here in other words."""
    out = [
        old_price(line.instance_type, line.price_as_of, int(line.price_age_days))
        for line in plan.lines
        if line.price_age_days is not None
    ]
    if plan.risk is not None and plan.goal is not None and plan.goal.budget_usd is not None:
        out.append(over_budget(plan.risk.worst_cost_usd, plan.goal.budget_usd))
    return out


def _budget(plan: Plan) -> list[str]:
    """The worst case, where it exceeds the budget."""
    if plan.risk is None or plan.goal is None or plan.goal.budget_usd is None:
        return []
    worst, budget = plan.risk.worst_cost_usd, plan.goal.budget_usd
    if worst <= budget or over_budget(worst, budget) not in plan.warnings:
        return []
    high = Scale.of(plan).usd(worst, plan.total_usd)
    return [f"one time in ten it costs more than {high}: the budget is {dollars_stated(budget)}"]


def _decoding(plan: Plan) -> list[str]:
    """That the cores of the machines decode fewer samples than the speed needs, where that is not in the speed."""
    item = plan.loading
    if item is None or item.in_speed or not item.is_bound:
        return []
    cores, needed = item.cores_per_accelerator, item.cores_needed_per_accelerator
    if not cores or not needed:
        return []
    return [
        f"not in the speed: if the samples are compressed, the CPU cores decode only {whole_percent(cores / needed)} "
        f"as many {item.encoded}s a second; state data.encoded: {item.encoded}"
    ]


def _prices(plan: Plan) -> list[str]:
    """Old prices that the plan rests on, in one line."""
    warned = [
        line
        for line in plan.lines
        if line.price_age_days is not None
        and old_price(line.instance_type, line.price_as_of, int(line.price_age_days)) in plan.warnings
    ]
    if not warned:
        return []
    oldest = max(warned, key=lambda line: line.price_age_days or 0.0)
    since = "" if len({line.price_as_of for line in warned}) == 1 else " and later"
    return [
        f"prices of {oldest.price_as_of}{since} ({oldest.price_age_days:.0f} days old): refresh before buying "
        "(planner catalog refresh)"
    ]


def _interruptions(plan: Plan) -> list[str]:
    launch = plan.launch
    if launch is None:
        return []
    saves = launch.checkpoints
    every = _interval(saves.interval_hours)
    count = about(launch.expected_interruptions)
    word = "interruption" if count in ("about 1", "fewer than 1") else "interruptions"
    save = "save progress" if plan.kind == "inference" else "save"
    on_warning = saves.fits_in_notice  # the expected hours count on it
    if plan.kind != "fleet" and saves.interval_hours >= _work_hours(plan):
        when = f", {save} on warning" if on_warning else f"; it ends before a checkpoint is due ({every})"
    else:
        when = f", {save} every {every}{' and on warning' if on_warning else ''}"
    return [f"{count} {word}: resume automatically{when}"]


def _interval(hours: float) -> str:
    """Time between checkpoints: `60 min`, `6 h`."""
    value, unit = (hours * 60.0, "min") if hours < _IN_HOURS_FROM else (hours, "h")
    return f"{number(float(f'{value:.2g}'))} {unit}"


def _work_hours(plan: Plan) -> float:
    """Hours of the work itself, of which an interruption takes what is not saved."""
    return math.fsum(part.hours for part in plan.timeline if part.id in AT_WORK)


def _quotas(plan: Plan) -> list[str]:
    """Quotas in one line: what is needed of each, and where."""
    where: dict[tuple[str, str, str], list[str]] = {}
    needed_of: dict[tuple[str, ...], float] = {}
    bought = (line for line in quota_lines(plan) if line.purchase_option != "owned")
    for line in (line for line in bought if line.option_variant != "already_owned"):
        need = line.quota
        of: tuple[str, ...] = (
            need.name or "quota",
            need.unit,
            need.status,
            _PLACES.get(line.region, line.region) or line.provider,
        )
        if plan.side_by_side:  # other lines may take turns
            needed_of[of] = needed_of.get(of, 0.0) + need.needed
        else:
            of = (*of, line.offer_id)
            needed_of[of] = need.needed
    for (name, stated_unit, status, region, *_), amount in needed_of.items():
        unit = "instance" if stated_unit == "instances" and amount == 1 else stated_unit
        where.setdefault((name, f"{number(amount, 6)} {unit}".strip(), status), []).append(region)
    off = {line.region for line in plan.lines if f"{line.provider}/{line.region}" in off_by_default()}
    at: dict[tuple[str, str], list[str]] = {}
    for (name, needed, status), regions in where.items():
        need_text = f"{needed} {'without a published quota' if name == _UNKNOWN_QUOTA else f'of {name}'}"
        at.setdefault((_listed(regions, off), status), []).append(need_text)
    if not at:
        return []
    texts = [(f"{' and '.join(needs)} in {place}", status) for (place, status), needs in at.items()]
    if len({status for _, status in texts}) == 1:
        return [f"quota {texts[0][1]}: {'; '.join(text for text, _ in texts)}"]
    return [f"quota: {'; '.join(f'{text}: {status}' for text, status in texts)}"]


def _listed(regions: Iterable[str], off: Collection[str]) -> str:
    """Each region once, no more than a line has room for; those in `off` with what the account has to do first."""
    each = list(dict.fromkeys(regions))
    if len(each) > _MOST_REGIONS:
        each.sort(key=lambda region: region not in off)  # what has to be done is not cut
    labels = [f"{region} (enable it first: off by default)" if region in off else region for region in each]
    more = f" and {len(labels) - _MOST_REGIONS} more" if len(labels) > _MOST_REGIONS else ""
    return f"{', '.join(labels[:_MOST_REGIONS])}{more}"


def verdict_lines(plan: Plan) -> tuple[str, ...]:
    """Return what was proven of the choice and of which set, what is left out, and what to ask next."""
    left_out = f"Without {' and '.join(plan.excluded[:2])}." if plan.excluded and plan.lines else ""
    if plan.status == "infeasible":
        changed = " ".join(item.constraint for item in plan.relaxations)
        other = (
            "frontier FILE, "
            if plan.kind != "fleet" and ("deadline" in changed or "budget" in changed)
            else ""
        )
        budget = None if plan.goal is None else plan.goal.budget_usd
        within = f", optimize FILE --best-within {budget}" if other and budget and "budget" in changed else ""
        following = f"next: planner {other}explain FILE{within}; --details filters, relaxations or all"
    else:
        steps = [step for step in _NEXT if plan.kind != "fleet" or step not in _OF_ONE_JOB]
        if plan.objective == "carbon":
            steps = [step.replace("frontier FILE", "frontier FILE --against carbon") for step in steps]
        steps.append(f"export PLAN.json --to {starter_of(plan)}")
        following = f"next: planner {', '.join(steps)}; --details SECTION|all"
    unsure = "Low confidence: name your model." if plan.confidence == "low" and plan.lines else ""
    return " ".join(text for text in (_proven(plan), left_out, unsure) if text), following


def _proven(plan: Plan) -> str:
    proof = plan.proof
    if proof is None:
        return "Not proven."
    of = f"of the {proof.candidates:,} candidates compared"
    if plan.status == "infeasible":
        if proof.note:
            return f"No feasible plan found: {proof.note}."
        said = f"; {claims.NEEDS_DEADLINE}" if proof.fallback_left_out else ""
        if plan.kind == "fleet":
            return f"No feasible plan: none {of} meets every limit{said}."
        return f"No feasible plan among these candidates: proven by {proof.method}{said}."
    best = claim(plan)
    feasible = f" ({plan.n_feasible:,} feasible)" if plan.n_feasible else ""
    checks = ["proven"] if proof.status == "optimal" else []
    checks += ["re-checked"] if proof.verified else ["not re-checked"]
    text = f"{best} {of}{feasible}, {' and '.join(checks)}"
    if "which agree" in proof.method:
        text += f" ({proof.method})"
    if proof.near_ties:
        others = "another costs" if proof.near_ties == 1 else f"{proof.near_ties:,} others cost"
        others = others.replace("cost", {"time": "take", "carbon": "emit"}.get(plan.objective, "cost"))
        text += f"; {others} nearly the same"
    if proof.fallback_left_out:
        text += f"; {claims.NEEDS_DEADLINE}"
    if plan.kind == "fleet" and plan.launch is not None and plan.launch.in_turn:
        return f"{text}; with a fall-back, fleets of one spot offer are compared."
    if plan.launch is not None and plan.launch.in_parts:
        which = "fleets of one spot offer beside one on on-demand are compared"
        return f"{text}; with a fall-back, {which}, in the divisions of the runs that --details proof names."
    if plan.kind == "fleet" and plan.launch is not None and proof.gap_ratio > _NEAR:
        text += "; the bound excludes the cost of the required probability on spot (--details proof)"
    return f"{text}."
