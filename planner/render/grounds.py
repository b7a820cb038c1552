"""The sections that support an answer: warnings, assumptions, filters, what is unknown, sources, proof."""

from __future__ import annotations

from planner.plan.model import Assumption, Plan
from planner.render.document import Block, Facts, Grid, Notes, without_empty
from planner.render.numbers import UNKNOWN, hours, number, percent, usd
from planner.render.words import join_some, summary

_ORIGIN_ORDER = ("unknown", "derived", "model", "default", "tariff", "catalog", "workload")
_MAX_ASSUMPTIONS = 10
_MAX_UNKNOWN = 4
_MAX_PAIRS = 6
_HASH_LENGTH = 12


def warnings(plan: Plan) -> list[Block]:
    """Return what the reader must not overlook."""
    return [Notes("Warnings", plan.warnings, level="warning")] if plan.warnings else []


def assumptions(plan: Plan, verbose: bool) -> list[Block]:
    """Return the values the plan rests on; the most doubtful ones when not verbose."""
    ordered = sorted(plan.assumptions, key=lambda item: _ORIGIN_ORDER.index(item.origin))
    if not ordered:
        return []
    if verbose:
        rows = [(item.key, f"{item.value} {item.unit}".strip(), item.origin, item.note) for item in ordered]
        header, cells, align = without_empty(("assumption", "value", "origin", "note"), rows, "llll")
        return [Grid("Assumptions", header, cells, align, detail=True)]
    given = [item for item in ordered if item.origin != "workload"]
    hidden = len(ordered) - min(len(given), _MAX_ASSUMPTIONS)
    notes = [_assumption(item) for item in given[:_MAX_ASSUMPTIONS]]
    if hidden:
        notes.append(f"{hidden:,} more with -v")
    return [Notes("Assumptions", ("; ".join(notes),), detail=True)]


def _assumption(item: Assumption) -> str:
    return f"{item.key} = {item.value} {item.unit}".strip() + f" ({item.origin})"


def filters(plan: Plan, verbose: bool) -> list[Block]:
    """Return what each filter removed; a full table where nothing was left."""
    active = sorted((f for f in plan.filters if f.removed), key=lambda f: (-f.removed, f.name))
    if not active:
        return []
    if plan.status == "planned" and not verbose:
        counts = [f"{item.name} {item.removed:,}" for item in active]
        return [Facts("Candidates removed", (("by filter", ", ".join(counts)),), detail=True)]
    rows = tuple((f.name, f.description, f"{f.removed:,}", f"{f.removed_only_by_this:,}") for f in active)
    header = ("filter", "meaning", "removed", "by it alone")
    blocks: list[Block] = [Grid("Candidates removed", header, rows, "llrr", detail=plan.status == "planned")]
    pairs = sorted((p for p in plan.filter_pairs if p.removed), key=lambda p: (-p.removed, p.first, p.second))
    if pairs:
        cells = tuple(
            (f"{p.first} + {p.second}", f"{p.removed:,}") for p in pairs[: None if verbose else _MAX_PAIRS]
        )
        title = "Removed by two filters together and no other"
        blocks.append(Grid(title, ("filters", "removed"), cells, "lr", detail=plan.status == "planned"))
    return blocks


def relaxations(plan: Plan) -> list[Block]:
    """Return the smallest change of one limit that would make a plan possible."""
    if not plan.relaxations:
        return []
    rows = []
    for item in plan.relaxations:
        best = (
            ""
            if item.best is None
            else f"{summary(item.best)}: {usd(item.best.cost_usd)}, {hours(item.best.hours)} h"
        )
        rows.append((item.constraint, item.current, item.needed, best, item.note))
    header = ("limit", "now", "enough", "the plan would be", "note")
    names, cells, align = without_empty(header, rows, "lllll")
    return [Grid("Smallest relaxations (each alone suffices)", names, cells, align)]


def unknown(plan: Plan, verbose: bool) -> list[Block]:
    """Return the options that could not be judged because no price or figure is known."""
    if not plan.unknown_options:
        return []
    if verbose:
        return [Notes("Unknown, so not considered", plan.unknown_options, detail=True)]
    text = join_some(plan.unknown_options, _MAX_UNKNOWN)
    return [Notes("Unknown, so not considered", (text,), detail=True)]


def excluded(plan: Plan) -> list[Block]:
    """Return the costs that are in no total."""
    return [Notes("Not included", ("; ".join(plan.excluded),))] if plan.excluded else []


def sources(plan: Plan) -> list[Block]:
    """Return the age and the hash of each provider's prices."""
    if not plan.catalog:
        return []
    rows = tuple(
        (
            source.provider,
            f"{source.offers:,}",
            source.oldest_as_of or UNKNOWN,
            source.newest_as_of or UNKNOWN,
            source.sha256[:_HASH_LENGTH],
        )
        for source in plan.catalog
    )
    header = ("provider", "offers", "oldest price", "newest price", "sha256")
    return [Grid("Prices", header, rows, "lrlll", detail=True)]


def proof(plan: Plan, verbose: bool) -> list[Block]:
    """Return how the choice was proven."""
    grounds = plan.proof
    if grounds is None:
        return []
    solver = f" ({grounds.solver})" if grounds.solver else ""
    checked = "verified" if grounds.verified else "not verified"
    exact = grounds.gap_exact_ratio
    parts = [
        f"{grounds.method}{solver}: {grounds.status}",
        f"gap {percent(grounds.gap_ratio, 2)} to the bound {usd(grounds.bound_usd)}",
        *([f"{percent(exact, 2)} in exact arithmetic"] if exact is not None else []),
        f"{grounds.candidates:,} candidates ({grounds.offers:,} offers, {grounds.shapes:,} shapes)",
        checked,
        f"{number(grounds.seconds, 2)} s",
    ]
    notes = [", ".join(parts)]
    if grounds.near_ties:
        notes.append(f"{grounds.near_ties:,} other candidates cost nearly the same")
    if grounds.note:
        notes.append(grounds.note)
    if verbose:
        notes.append(f"workload {plan.workload} sha256 {plan.workload_sha256}")
        notes.append(f"planner {plan.planner_version}, schema {plan.schema_version}, made {plan.created_at}")
    return [Notes("Proof", tuple(notes), detail=True)]
