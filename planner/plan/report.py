"""A plan as an answer: which sections it has, in which order, and its machine and flat forms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from planner.plan import report_choice as choice
from planner.plan import report_grounds as grounds
from planner.plan import report_others as others
from planner.plan import report_rows as rows
from planner.plan import report_storage as stored
from planner.plan.details import ALL_DETAILS, DETAILS
from planner.plan.front import brief, front, headline
from planner.plan.model import Plan
from planner.plan.outcome import change_words
from planner.plan.report_carbon import carbon
from planner.plan.report_quotas import quotas
from planner.plan.report_quote import quote_sentence
from planner.plan.words import claim
from planner.render.model import Answer, Section


def plan_answer(plan: Plan, *, verbose: bool = False, details: Collection[str] = ()) -> Answer:
    """Return the answer that every format is made of: the screen, and the sections behind it.

    Args:
        plan: what was found, or that nothing was.
        verbose: whether nothing is summarised.
        details: names in `DETAILS`, or `ALL_DETAILS`: these sections alone, in place of the screen.
    """
    title, summary, sections = (
        _infeasible(plan, verbose) if plan.status == "infeasible" else _found(plan, verbose)
    )
    screen: tuple[Section, ...] = ()
    if not details:
        screen, summary = front(plan), (headline(plan),)
        sections = [replace(section, detail=True) for section in sections]
        title = title if plan.status == "infeasible" else f"{claim(plan)}: {brief(plan)}"
    elif ALL_DETAILS not in details:
        keys = {key for name in details for key in DETAILS[name]}
        sections = [section for section in sections if section.key in keys]
    return Answer(
        f"Plan for {plan.workload}",
        title,
        summary,
        tuple(sections),
        plan.to_dict(),
        rows.COLUMNS,
        rows.flat_rows(plan),
        success=plan.status != "infeasible",
        currency=plan.currency,
        front=screen,
        attached="plan.json",
    )


def _found(plan: Plan, verbose: bool) -> tuple[str, tuple[str, ...], list[Section]]:
    return (
        choice.verdict(plan),
        tuple(filter(None, [quote_sentence(plan)])),
        [
            *grounds.warnings(plan),
            choice.plan_lines(plan, verbose),
            *choice.costs(plan, verbose),
            *choice.timeline(plan, verbose),
            *choice.performance(plan, verbose),
            *stored.storage(plan, verbose),
            *stored.loading(plan),
            *choice.risk(plan),
            *others.savings(plan),
            *others.alternatives(plan, verbose=verbose),
            *quotas(plan),
            *choice.cash(plan),
            *carbon(plan),
            *grounds.assumptions(plan, verbose),
            *grounds.filters(plan, verbose),
            *grounds.unknown(plan, verbose),
            *grounds.excluded(plan),
            *grounds.sources(plan),
            *grounds.proof(plan, verbose),
        ],
    )


def _infeasible(plan: Plan, verbose: bool) -> tuple[str, tuple[str, ...], list[Section]]:
    removed = max((item.removed for item in plan.filters), default=0)
    tried = plan.proof.candidates if plan.proof is not None else removed
    why = plan.proof.note if plan.proof is not None else ""
    title = (
        f"No feasible plan for {plan.workload}: {why or f'none of {tried:,} candidates meets every limit'}"
    )
    best = next(iter(plan.relaxations), None)
    summary = (f"Smallest change that admits a candidate: {change_words(best)}",) if best else ()
    sections = [
        *grounds.warnings(plan),
        *grounds.relaxations(plan),
        *grounds.filters(plan, verbose),
        *grounds.assumptions(plan, verbose),
        *grounds.unknown(plan, verbose),
        *grounds.sources(plan),
        *grounds.proof(plan, verbose),
    ]
    return title, summary, sections
