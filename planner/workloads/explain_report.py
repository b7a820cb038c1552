"""Why this plan, as an answer: the verdict, what a limit is worth, the rivals, what lost, and what it rests on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from planner.candidates.decisions import HAIR_RATIO
from planner.plan import report_choice as choice
from planner.plan import report_grounds as grounds
from planner.plan import report_others as others
from planner.plan.front import bought, brief, headline, none_rows
from planner.plan.front_scale import Scale
from planner.plan.front_scale import chance as chance_words
from planner.plan.plain import plain
from planner.plan.words import claim, without_deadline
from planner.render.model import Answer, Cell, Column, Section, facts, next_steps, table_section, versioned
from planner.render.precision import figure, moment_known
from planner.render.units import change
from planner.render.words import cluster, option, place
from planner.workloads.explain_evidence import rests_on, rests_on_brief
from planner.workloads.explain_limits import binding, differs, has_frontier, saves, signed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from planner.job.lost import Lost
    from planner.job.worth import Worth
    from planner.plan.brief import Summary
    from planner.plan.model import Plan
    from planner.render.model import Value
    from planner.workloads.explain import Explanation

COLUMNS = (
    "row", "name", "setting", "change", "provider", "region", "instance_type", "purchase_option", "nodes", "cost_usd",
    "delta_cost_usd", "hours", "delta_hours", "best_ratio", "beats_ratio", "offers", "example",
    "usd_per_accelerator_hour", "removed", "removed_only_by_this", "description",
)  # fmt: skip
DETAILS: dict[str, tuple[str, ...]] = {
    "limits": ("limits",), "rivals": ("rivals",), "lost": ("lost",), "grounds": ("grounds",), "plan": ("lines",),
    "alternatives": ("alternatives",), "kinds": ("kinds",), "relaxations": ("relaxations",),
    "filters": ("filters", "filter_pairs"), "layouts": ("layouts",), "assumptions": ("assumptions",),
}  # fmt: skip
_FEW = 4
_WHY_NOT = "why_not_"
_NAMES = {"budget_usd": "budget", "deadline_confidence": "confidence"}


def explanation_report(explanation: Explanation, details: Collection[str] = ()) -> Answer:
    """Return the answer that every format is made of.

    Args:
        explanation: the explanation.
        details: names in `DETAILS`, or `all`: these sections alone, in place of the screen.
    """
    plan = explanation.plan
    sections = _sections(explanation)
    front: tuple[Section, ...] = ()
    summary: tuple[str, ...] = ()
    if not details:
        front, summary = _front(explanation), (headline(plan),)
        sections = [replace(section, detail=True) for section in sections]
    elif "all" not in details:
        wanted = {key for name in details for key in DETAILS[name]}
        sections = [one for one in sections if one.key in wanted or one.key.startswith(_WHY_NOT)]
    return Answer(
        f"Why this plan for {plan.workload}",
        _title(explanation),
        summary,
        tuple(sections),
        versioned(_values(explanation)),
        COLUMNS,
        _flat(explanation),
        success=plan.status != "infeasible",
        currency=plan.currency,
        front=front,
    )


def _title(explanation: Explanation) -> str:
    plan = explanation.plan
    if plan.status == "infeasible":
        return f"No plan for {plan.workload}: no candidate meets every limit"
    if explanation.limits:
        return f"{brief(plan)}; {_binds(explanation)}"
    return f"{claim(plan)}: {brief(plan)}"


def _sections(explanation: Explanation) -> list[Section]:
    plan = explanation.plan
    return [
        *_limits(explanation, all_of=True),
        *_rivals(explanation),
        *_lost(explanation, all_of=True),
        *([rests_on(plan)] if plan.lines else []),
        *([choice.plan_lines(plan, True)] if plan.lines else []),
        *others.alternatives(plan, verbose=True),
        *([Section("kinds", "Best of each kind", explanation.kinds)] if explanation.kinds else []),
        *grounds.relaxations(plan),
        *grounds.filters(plan, True),
        *([Section("layouts", "Layouts", explanation.layouts)] if explanation.layouts else []),
        *grounds.assumptions(plan, True),
        *_why_not(explanation),
    ]


def _why_not(explanation: Explanation) -> list[Section]:
    return [Section(f"{_WHY_NOT}{name}", f"Why not {name}", lines) for name, lines in explanation.why_not]


def _front(explanation: Explanation) -> tuple[Section, ...]:
    """The screen."""
    plan = explanation.plan
    if plan.status == "infeasible":
        return (*none_rows(plan), *grounds.relaxations(plan), *_why_not(explanation), _next(explanation))
    rows: list[tuple[str, str, Value, Any, str]] = [
        ("plan", "plan", bought(plan), "text", brief(plan)),
        ("why", "why", plan.n_feasible, "count", _why(plan)),
    ]
    if plan.kind == "fleet" and plan.launch is not None:
        rows += [(f"why_{at}", "why", text, "text", text) for at, text in enumerate(plan.launch.why, start=1)]
    if explanation.limits:
        rows.append(("binds", "binds", len(binding(explanation)), "count", _binds(explanation)))
    if explanation.stays is not None:
        rows.append(("best_ratio", "sure", explanation.stays.best_ratio, "chance", _sure(explanation)))
    return (
        facts("verdict", "Why", rows),
        *_limits(explanation),
        *_lost(explanation),
        *_why_not(explanation),
        rests_on_brief(plan),
        _next(explanation),
    )


def _next(explanation: Explanation) -> Section:
    if explanation.plan.status == "infeasible":
        return next_steps("next: planner whatif FILE --set KEY=VALUE; --details filters or all")
    steps = ["planner frontier FILE"] if has_frontier(explanation) else []
    there = {section.key for section in _sections(explanation)}
    named = [name for name in ("rivals", "layouts", "assumptions") if name in there]
    steps += ["planner whatif FILE --set KEY=VALUE", f"--details {', '.join(named)}, ... or all"]
    return next_steps(f"next: {'; '.join(steps)}")


def _why(plan: Plan) -> str:
    if plan.n_feasible is None or not plan.alternatives or plan.kind == "fleet":
        whole = "; a fleet is chosen as a whole, so no single offer lost" if plan.kind == "fleet" else ""
        return f"{claim(plan)}{whole}"
    scale, second = Scale.of(plan), plan.alternatives[0]
    more = float(second.delta_cost_usd / plan.total_usd) if plan.total_usd else 0.0
    if plan.objective == "time":
        more = second.delta_hours / plan.hours if plan.hours else 0.0
    if plan.objective == "carbon" and plan.carbon is not None and plan.carbon.operational_kgco2e:
        more = (second.operational_kgco2e or 0.0) / plan.carbon.operational_kgco2e - 1.0
    of = {"time": " hours", "carbon": " kgCO2e"}.get(plan.objective, "")
    gap = f"{change(more, 0)}{of}" if abs(more) >= 0.005 else "nearly the same"
    first = {"time": "soonest", "carbon": "least kgCO2e"}.get(plan.objective, "cheapest")
    of_all = f"{plan.n_feasible:,} feasible candidates{without_deadline(plan)} at expected prices"
    return f"{first} of {of_all}; next {_named(second)}, {scale.usd(second.cost_usd)} ({gap})"


def _binds(explanation: Explanation) -> str:
    """What a step of each binding limit is worth, in a sentence."""
    binds = binding(explanation)
    if not binds:
        return "no limit by one step: none of the changes below improves the plan by 0.1 %"
    said = [f"{_name(one)}: {one.change} {saves(explanation.plan, one)}" for one in binds[:_FEW]]
    return "; ".join(said)


def _name(one: Worth) -> str:
    return _NAMES.get(one.limit, one.limit)


def _named(best: Summary) -> str:
    """A decision: cluster, way to buy with the number of zones, first place."""
    way = option(best.purchase_option, best.option_variant)
    return f"{cluster(best.nodes, best.instance_type)}, {way}, {place(best.provider, best.region, '')}"


def _setting(one: Worth) -> str:
    if one.limit != "deadline":
        return one.setting
    moment = datetime.fromisoformat(one.setting)
    return moment_known(one.setting, 0.0, moment.year)


def _sure(explanation: Explanation) -> str:
    """How often the choice stays the best, and its cluster, and which other cluster beats it most often.

    The same machines in another place or bought in another way are near-duplicates, which share the chance.
    """
    stays = explanation.stays
    assert stays is not None
    said = (
        f"best of {explanation.compared} decisions in {chance_words(stays.best_ratio)} of {stays.draws:,} draws (seed "
        f"{stays.seed})"
    )
    if stays.cluster_ratio > stays.best_ratio:
        said += f", these machines in any place or purchase option in {chance_words(stays.cluster_ratio)}"
    said += f"; within {HAIR_RATIO * 100:.0f} % of the best in {chance_words(stays.near_ratio)}"
    others = [one for one in explanation.rivals[1:] if not one.same_cluster]
    ahead = max(others, key=lambda one: one.beats_ratio, default=None)
    if ahead is not None and ahead.beats_ratio >= 0.005:
        word = "cheaper" if explanation.plan.objective == "cost" else "sooner"
        said += (
            f"; other machines most often {word}: {_named(ahead.best)}, in {chance_words(ahead.beats_ratio)}"
        )
    if stays.late_ratio >= 0.005:
        said += f"; expected late or over budget in {chance_words(stays.late_ratio)}"
    return said


def _drawn(explanation: Explanation) -> str:
    """What is drawn, how well the share is known, and why the choice does not follow the draws."""
    stays = explanation.stays
    assert stays is not None
    low, high = (figure(100 * end, 1 if end < 0.1 else 0) for end in (stays.low_ratio, stays.high_ratio))
    return (
        f"{stays.draws:,} draws of prices, speed and interruptions (seed {stays.seed}): the plan is best in {low} to "
        f"{high} % of them at 95 % confidence; which is best is known afterwards only, expected cost decides before"
    )


def _limits(explanation: Explanation, *, all_of: bool = False) -> list[Section]:
    """A row a change: those that change the plan, and the others in a note."""
    if not explanation.limits:
        return []
    plan, scale = explanation.plan, Scale.of(explanation.plan)
    columns = (
        Column("limit", "limit", "text"), Column("setting", "set to", "text"), Column("change", "if", "text"),
        Column("cost_usd", "cost", "usd_known"), Column("delta", "change", "text"), Column("best", "best plan", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    same = []
    for one in explanation.limits:
        if one.best is not None and not all_of and not differs(one):
            same.append(f"{_name(one)} {one.change}")
            continue
        best = one.best
        change = "" if best is None else signed(plan, best.delta_cost_usd)
        rows.append((
            _name(one), _setting(one), one.change, None if best is None else scale.known(best.cost_usd), change,
            "no plan meets every limit" if best is None else _instead(explanation, best, all_of=all_of),
        ))  # fmt: skip
    notes = [f"nothing changes with: {'; '.join(same)}"] if same else []
    if not rows:
        return [Section("limits", "What a limit is worth", tuple(notes))]
    return [
        table_section("limits", "What a limit is worth, each question solved again", columns, rows, notes)
    ]


def _instead(explanation: Explanation, best: Summary, *, all_of: bool) -> str:
    """The best plan under a changed limit; on the screen only where it is another decision."""
    name = _named(best)
    return (
        "the same"
        if not all_of and explanation.rivals and name == _named(explanation.rivals[0].best)
        else name
    )


def _rivals(explanation: Explanation) -> list[Section]:
    if explanation.stays is None or not explanation.rivals:
        return []
    scale = Scale.of(explanation.plan)
    columns = (
        Column("decision", "rivals, in hindsight", "text"), Column("cost_usd", "cost", "usd_known"),
        Column("finish", "done", "date"), Column("in_time", "in time", "chance"),
        Column("best_ratio", "best in", "chance"), Column("beats_ratio", "beats the plan in", "chance"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for number_of, one in enumerate(explanation.rivals):
        hours = one.best.hours
        rows.append((
            ("" if number_of else "the plan: ") + _named(one.best), scale.known(one.best.cost_usd),
            scale.moment(one.finish, hours), "" if one.p_meet_deadline is None else one.p_meet_deadline,
            one.best_ratio, "" if not number_of else one.beats_ratio,
        ))  # fmt: skip
    notes = [_drawn(explanation)]
    if explanation.compared > len(rows):
        named = sum(one.best_ratio for one in explanation.rivals)
        left = chance_words(max(1 - named - explanation.stays.none_ratio, 0.0))
        notes.append(f"others of the {explanation.compared} compared: best in {left} of the draws")
    return [table_section("rivals", "Rivals, by how often they turn out best", columns, rows, notes)]


def _lost(explanation: Explanation, *, all_of: bool = False) -> list[Section]:
    if not explanation.lost:
        return []
    plan, scale = explanation.plan, Scale.of(explanation.plan)
    columns = (
        Column("reason", "cheaper by price, rejected", "text"), Column("offers", "offers", "count"),
        Column("example", "cheapest of them for this job", "text"), Column("cost_usd", "cost", "usd_known"),
    )  # fmt: skip
    # what would cost less than the plan first, then what is most of the list
    ranked = sorted(explanation.lost, key=lambda one: _rank(one, plan))
    shown = ranked if all_of else ranked[:_FEW]
    rows: list[tuple[Value, ...]] = [
        (
            one.words if all_of else one.words.partition(" (")[0], one.offers,
            one.cost_example or f"{one.example} (does not run)",
            "" if one.cost_usd is None else scale.known(one.cost_usd),
        )
        for one in shown
    ]  # fmt: skip
    count = sum(one.offers for one in explanation.lost)
    more = len(explanation.lost) - len(shown)
    if more:
        reasons = "1 more reason" if more == 1 else f"{more} more reasons"
        notes = [f"{count:,} offers in all; {reasons}: --details lost"]
    else:
        notes = [f"{count:,} offers cost less per accelerator-hour than the plan's, or less in all if a limit is "
                 "ignored; the first reason in the order of reports counts"]  # fmt: skip
    title = "Cheaper-looking offers that lost" if plan.objective == "cost" else "Cheaper offers that lost"
    return [table_section("lost", title, columns, rows, notes)]


def _rank(one: Lost, plan: Plan) -> tuple[bool, float]:
    less = one.cost_usd is not None and one.cost_usd < plan.total_usd
    return not less, float(one.cost_usd) if less and one.cost_usd is not None else -float(one.offers)


def _values(explanation: Explanation) -> dict[str, Any]:
    plan, stays = explanation.plan, explanation.stays
    often = {} if stays is None else {name: value for name, value in plain(stays).items() if name != "rivals"}
    return {
        "workload": plan.workload,
        "workload_sha256": plan.workload_sha256,
        "created_at": plan.created_at,
        "status": plan.status,
        "objective": plan.objective,
        "choice": bought(plan) if plan.lines else None,
        "total_usd": str(plan.total_usd) if plan.lines else None,
        "hours": plan.hours if plan.lines else None,
        "limits": [plain(one) for one in explanation.limits],
        "stays_best": None if stays is None else {**often, "compared": explanation.compared},
        "rivals": [plain(one) for one in explanation.rivals],
        "lost": [plain(one) for one in explanation.lost],
        "relaxations": [plain(one) for one in plan.relaxations],
        "filters": [
            {
                "filter": one.name, "removed": one.removed, "removed_only_by_this": one.removed_only_by_this,
                "description": one.description,
            }
            for one in plan.filters
        ],
        "filter_pairs": [
            {"filters": [pair.first, pair.second], "removed": pair.removed} for pair in plan.filter_pairs
        ],
        "layouts": list(explanation.layouts),
        "best_of_kind": list(explanation.kinds),
        "why_not": {name: list(lines) for name, lines in explanation.why_not},
    }  # fmt: skip


def _flat(explanation: Explanation) -> list[Mapping[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for one in explanation.limits:
        row: dict[str, Cell] = {"row": "limit", "name": one.limit}
        row |= {"setting": one.setting, "change": one.change}
        rows.append(row | ({} if one.best is None else _of_summary(one.best)))
    for rival in explanation.rivals:
        more: dict[str, Cell] = {"best_ratio": rival.best_ratio, "beats_ratio": rival.beats_ratio}
        rows.append({"row": "rival", "name": rival.best.label} | _of_summary(rival.best) | more)
    rows += [
        {
            "row": "lost", "name": lost.reason, "offers": lost.offers, "example": lost.cost_example or lost.example,
            "usd_per_accelerator_hour": lost.usd_per_accelerator_hour, "cost_usd": lost.cost_usd,
            "description": lost.words,
        }
        for lost in explanation.lost
    ]  # fmt: skip
    rows += [
        {
            "row": "filter", "name": count.name, "removed": count.removed,
            "removed_only_by_this": count.removed_only_by_this, "description": count.description,
        }
        for count in explanation.plan.filters
    ]  # fmt: skip
    return [dict.fromkeys(COLUMNS) | row for row in rows]


def _of_summary(best: Summary) -> dict[str, Cell]:
    return {name: getattr(best, name) for name in COLUMNS if hasattr(best, name)}
