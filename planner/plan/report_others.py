"""The sections that compare a plan: the baseline, and the decisions beside it with what each of them stands for."""

from __future__ import annotations

from planner.plan.brief import Folded, Summary
from planner.plan.model import Plan
from planner.plan.relaxation import Relaxation
from planner.plan.words import own_machines_of, summary
from planner.render.model import Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import hours, percent, usd
from planner.render.words import is_derived

# What alternatives differ in, in the order of reports: its name, and what differs in it alone, one and several.
FACETS = {
    "accelerator": ("accelerator", "other accelerator", "other accelerators"),
    "size": ("size", "other size", "other sizes"),
    "region": ("region", "other region", "other regions"),
    "way": ("purchase option", "other purchase option", "other purchase options"),
    "provider": ("provider", "at another provider", "at other providers"),
}


def savings(plan: Plan) -> list[Section]:
    """Return the baseline and the difference to it."""
    saved = plan.savings
    if saved is None:
        return []
    rows: list[tuple[str, str, Value, Unit, str]] = []
    if saved.baseline is None:
        rows.append(("baseline_usd", "baseline", None, "usd", "none"))
    else:
        base = saved.baseline
        label = f"{base.label}: " if base.label else ""
        baseline_text = f"{label}{summary(base)}: {usd(base.cost_usd)}, {hours(base.hours)} h"
        rows.append(("baseline_usd", "baseline", base.cost_usd, "usd", baseline_text))
        if text := own_machines_of(base):
            rows.append(("baseline_own_machines", "own machines", text, "text", text))
    if saved.saved_usd:
        word = "saves" if saved.saved_usd >= 0 else "costs more"
        ratio = "" if saved.saved_ratio is None else f" ({percent(abs(saved.saved_ratio))})"
        rows.append(("saved_usd", word, saved.saved_usd, "usd", f"{usd(abs(saved.saved_usd))}{ratio}"))
    if saved.note:
        rows.append(("note", "note", saved.note, "text", saved.note))
    return [facts("baseline", "Baseline", rows)]


def alternatives(plan: Plan, *, verbose: bool = False) -> list[Section]:
    """Return the ranked other decisions, each with what it costs and takes beyond the plan.

    Args:
        plan: what was found.
        verbose: whether the best of what a decision stands for is named in full.
    """
    if not plan.alternatives and not plan.relaxations and plan.on_known_prices is None:
        return []
    columns = (
        Column("rank", "#", "count"), Column("label", "", "text"), Column("cluster", "instance type", "cluster"),
        Column("accelerators", "accelerators", "devices"), Column("place", "where", "place"),
        Column("option", "option", "option"), Column("cost_usd", "cost", "usd_marked"),
        Column("delta_cost_usd", "+$", "usd_change"), Column("delta_hours", "+h", "hours_change"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            rank, item.label, (item.nodes, item.instance_type), (item.accelerators, item.accelerator),
            (item.provider, item.region, item.zone), (item.purchase_option, item.option_variant),
            (item.cost_usd, is_derived("", item.flags)), item.delta_cost_usd, item.delta_hours,
        )
        for rank, item in enumerate(plan.alternatives, start=2)
    ]  # fmt: skip
    shown = f"{len(rows) + 1:,} of {max(plan.n_feasible, len(rows) + 1):,} feasible candidates shown"
    notes = [f"{shown}, the plan being the first; a listed price is not availability"]
    notes += [text for rank in range(1, len(rows) + 2) if (text := _stands_for(plan, rank, verbose))]
    owned = [(rank, own_machines_of(item)) for rank, item in enumerate(plan.alternatives, start=2)]
    notes += [f"#{rank}: own machines: {text}" for rank, text in owned if text]
    notes += [_hidden(item) for item in plan.relaxations]
    if plan.on_known_prices is not None:
        notes.append(_on_known_prices(plan.on_known_prices))
    return [table_section("alternatives", "Alternatives", columns, rows, notes)]


def _on_known_prices(best: Summary) -> str:
    change = f"{'+' if best.delta_cost_usd >= 0 else '-'}{usd(abs(best.delta_cost_usd))}"
    return f"best plan on observed or firm prices only: {summary(best)}, {usd(best.cost_usd)}, {change}"


def _hidden(item: Relaxation) -> str:
    """What would be better, but for one limit."""
    improvement = "nothing" if item.best is None else f"{summary(item.best)}: {usd(item.best.cost_usd)}"
    return f"hidden: {improvement}: {item.constraint} {item.current} -> {item.needed}"


def _stands_for(plan: Plan, rank: int, verbose: bool) -> str:
    """In what the decision at `rank` is new, and what is folded into it."""
    folded = {item.differs_in: item for item in plan.folded if item.rank == rank}
    brings = plan.alternatives[rank - 2].brings if rank > 1 else ()
    head = f"#{rank}" if rank > 1 else "the plan"
    new = " and ".join(FACETS[name][0] for name in brings if name in FACETS)
    also = [_fold(folded[name], verbose, plan.objective) for name in FACETS if name in folded]
    remaining = sum(item.count for name, item in folded.items() if name not in FACETS)
    also += [f"{remaining:,} more"] if remaining else []
    parts = [f"another {new}"] if new else []
    parts += [f"also {', '.join(also)}"] if also else []
    return f"{head}: {'; '.join(parts)}" if parts else ""


def _fold(item: Folded, verbose: bool, objective: str) -> str:
    _, singular, plural = FACETS[item.differs_in]
    text = f"{item.count:,} {singular if item.count == 1 else plural}"
    if item.best is None:
        return text
    best = item.best
    least, other = usd(best.cost_usd), f"{hours(best.hours)} h"
    if objective == "time":
        least, other = other, least
    return f"{text} from {least}" + (f" ({summary(best)}, {other})" if verbose else "")
