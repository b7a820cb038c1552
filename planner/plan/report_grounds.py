"""The sections that support an answer: warnings, assumptions, filters, what is unknown, sources, proof."""

from __future__ import annotations

from planner.plan.model import Assumption, Plan
from planner.plan.words import summary
from planner.render import claims
from planner.render.model import Column, Section, Value, facts, table_section
from planner.render.numbers import hours, number, percent, usd
from planner.render.words import join_some

_ORIGIN_ORDER = ("unknown", "derived", "model", "default", "tariff", "catalog", "workload")
_MAX_ASSUMPTIONS = 10
_MAX_UNKNOWN = 4
_MAX_PAIRS = 6
_HASH_LENGTH = 12


def warnings(plan: Plan) -> list[Section]:
    """Return what the reader must not overlook."""
    return [Section("warnings", "Warnings", plan.warnings, warning=True)] if plan.warnings else []


def assumptions(plan: Plan, verbose: bool) -> list[Section]:
    """Return the values the plan rests on; the most doubtful ones when not verbose."""
    ordered = sorted(plan.assumptions, key=lambda item: _ORIGIN_ORDER.index(item.origin))
    if not ordered:
        return []
    if verbose:
        columns = (
            Column("assumption", "assumption", "text"), Column("value", "value", "text"),
            Column("origin", "origin", "text"), Column("note", "note", "text"),
        )  # fmt: skip
        rows: list[tuple[Value, ...]] = [
            (item.key, f"{item.value} {item.unit}".strip(), item.origin, item.note) for item in ordered
        ]
        return [table_section("assumptions", "Assumptions", columns, rows, detail=True)]
    assumed = [item for item in ordered if item.origin != "workload"]
    hidden = len(ordered) - min(len(assumed), _MAX_ASSUMPTIONS)
    notes = [_assumption(item) for item in assumed[:_MAX_ASSUMPTIONS]]
    if hidden:
        notes.append(f"{hidden:,} more with -v")
    return [Section("assumptions", "Assumptions", ("; ".join(notes),), detail=True)]


def _assumption(item: Assumption) -> str:
    return f"{item.key} = {item.value} {item.unit}".strip() + f" ({item.origin})"


def filters(plan: Plan, verbose: bool) -> list[Section]:
    """Return what each filter removed; a full table where nothing was left."""
    active = sorted((f for f in plan.filters if f.removed), key=lambda f: (-f.removed, f.name))
    if not active:
        return []
    folded = plan.status == "planned"
    if folded and not verbose:
        counts = ", ".join(f"{item.name} {item.removed:,}" for item in active)
        removed = [("by_filter", "by filter", len(active), "count", counts)]
        return [facts("filters", "Candidates excluded", removed, detail=True)]  # type: ignore[arg-type]
    columns = (
        Column("filter", "filter", "text"), Column("meaning", "meaning", "text"),
        Column("removed", "excluded", "count"), Column("removed_only_by_this", "by it alone", "count"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (f.name, f.description, f.removed, f.removed_only_by_this) for f in active
    ]
    sections = [table_section("filters", "Candidates excluded", columns, rows, detail=folded)]
    pairs = sorted((p for p in plan.filter_pairs if p.removed), key=lambda p: (-p.removed, p.first, p.second))
    if pairs:
        both: list[tuple[Value, ...]] = [
            (f"{p.first} + {p.second}", p.removed) for p in pairs[: None if verbose else _MAX_PAIRS]
        ]
        title = "Excluded by two filters together and no other"
        heads = (Column("filters", "filters", "text"), Column("removed", "excluded", "count"))
        sections.append(table_section("filter_pairs", title, heads, both, detail=folded))
    return sections


def relaxations(plan: Plan) -> list[Section]:
    """Return the smallest change of one limit that would make a plan possible, or a better one."""
    if not plan.relaxations:
        return []
    rows: list[tuple[Value, ...]] = []
    for item in plan.relaxations:
        best = (
            ""
            if item.best is None
            else f"{summary(item.best)}: {usd(item.best.cost_usd)}, {hours(item.best.hours)} h"
        )
        note = (
            item.note if item.times is None else f"{item.note}; {item.times:,.1f} times as long as required"
        )
        rows.append((item.constraint, item.current, item.needed, best, note))
    columns = (
        Column("limit", "limit", "text"), Column("now", "now", "text"), Column("enough", "enough", "text"),
        Column("plan", "the plan would be", "text"), Column("note", "note", "text"),
    )  # fmt: skip
    title = "Relaxation found among the candidates compared"  # of a fleet it is not proven to be the smallest
    if plan.status != "infeasible":
        title = "What would be better than the plan, but for one limit"
    elif plan.kind != "fleet":
        title = "Smallest relaxations of the candidates compared (each is sufficient)"
    return [table_section("relaxations", title, columns, rows)]


def unknown(plan: Plan, verbose: bool) -> list[Section]:
    """Return the options that could not be judged because no price or figure is known."""
    if not plan.unknown_options:
        return []
    if verbose:
        return [Section("unknown", "Unknown, so not considered", plan.unknown_options, detail=True)]
    text = join_some(plan.unknown_options, _MAX_UNKNOWN)
    return [Section("unknown", "Unknown, so not considered", (text,), detail=True)]


def excluded(plan: Plan) -> list[Section]:
    """Return the costs that are in no total."""
    return [Section("excluded", "Not included", ("; ".join(plan.excluded),))] if plan.excluded else []


def sources(plan: Plan) -> list[Section]:
    """Return the age and the hash of each provider's prices."""
    if not plan.catalog:
        return []
    columns = (
        Column("provider", "provider", "text"), Column("offers", "offers", "count"),
        Column("oldest_as_of", "oldest price", "date"), Column("newest_as_of", "newest price", "date"),
        Column("sha256", "sha256", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            source.provider,
            source.offers,
            source.oldest_as_of or None,
            source.newest_as_of or None,
            source.sha256[:_HASH_LENGTH],
        )
        for source in plan.catalog
    ]
    return [table_section("prices", "Prices", columns, rows, detail=True)]


def proof(plan: Plan, verbose: bool) -> list[Section]:
    """Return how the choice was proven."""
    grounds = plan.proof
    if grounds is None:
        return []
    solver = f" ({grounds.solver})" if grounds.solver else ""
    checked = "verified" if grounds.verified else "not verified"
    exact = grounds.gap_exact_ratio
    searched = f"of the {grounds.candidates:,} candidates compared"
    parts = [
        f"{grounds.method}{solver}: {claims.state(grounds.status, searched, grounds.gap_ratio)}",
        f"gap {percent(grounds.gap_ratio, 2)} to the bound {usd(grounds.bound_usd)}",
        *([f"{percent(exact, 2)} in exact arithmetic"] if exact is not None else []),
        f"{grounds.offers:,} offers, {grounds.shapes:,} shapes",
        checked,
        f"{number(grounds.seconds, 2)} s",
    ]
    notes = [", ".join(parts)]
    if grounds.near_ties:
        verb = {"time": "take", "carbon": "emit"}.get(plan.objective, "cost")
        singular = f"{verb}s"
        decisions = f"other decision {singular}" if grounds.near_ties == 1 else f"other decisions {verb}"
        notes.append(f"{grounds.near_ties:,} {decisions} nearly the same")
    if grounds.fallback_left_out:
        notes.append(claims.NEEDS_DEADLINE)
    if grounds.note:
        notes.append(grounds.note)
    if verbose:
        notes.append(f"workload {plan.workload} sha256 {plan.workload_sha256}")
        notes.append(f"planner {plan.planner_version}, schema {plan.schema_version}, made {plan.created_at}")
    return [Section("proof", "Proof", tuple(notes), detail=True)]
