"""The screen of a commitment answer: what to buy, what it saves, what is owed whatever happens, and the lines."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.commitments.later import bought_now, later_row
from planner.render import claims
from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import percent
from planner.render.precision import dollars, known_places, rounded
from planner.render.screen import Row, Screen, prices_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.commitments.answer import CommitAnswer, Line

_MOST_LINES = 8
_WHOLE_FROM = 100  # US dollars
_NEAR = 0.5  # a gap above it proves nothing that helps to choose
_HALF_WIDTH = 0.1  # of a cost over scenarios: three digits


def commit_screen(answer: CommitAnswer, of: str, why_stopped: str, asked_as: str) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        of: the choices that the proof is about.
        why_stopped: why the search ended, where it ended early.
        asked_as: what stood after `commit`: `FILE`, or the options of a bill.
    """
    years = "1 year" if answer.years == 1 else f"{answer.years} years"
    asked = f"{answer.name}: from {answer.start}, {years}, {answer.scenarios:,} scenarios of demand"
    rows = [
        _buy(answer),
        *later_row(answer),
        _cost(answer, years),
        _worst(answer),
        *_loss(answer),
        *_owed(answer),
        *_falls(answer),
    ]
    best = claims.best_plan("Best", answer.status, answer.gap_ratio, "choice")
    near = answer.status == "optimal" or answer.gap_ratio < _NEAR
    far = f"proven to {percent(answer.gap_ratio, 2)}" if near else "how far from the best is not known"
    proof = f"{best} {of}, {far}"
    proof += f" ({why_stopped})" if why_stopped else ""
    table = _lines(answer) if bought_now(answer) else None
    steps = (f"commit {asked_as} --certificate proof.json", "verify proof.json")
    return Screen(asked, rows, table, _notes(answer), f"{proof}. Without taxes and support plans.", steps)


def ended_early(answer: CommitAnswer) -> bool:
    """Whether the search ended before the choice was proven to be the best; a price on losses alone is no such end."""
    return answer.status != "optimal" and answer.reason != "avoid_loss"


def why_nothing(answer: CommitAnswer) -> str:
    """Why nothing is bought now: it costs less, none has a price to compare with, or the search ended too soon."""
    if not answer.break_evens:
        return "none that is allowed has a known price, so none was weighed"
    if ended_early(answer):
        return "the search ended before it found one that lowers the cost"
    until = "".join(f" until {line.begins}" for line in answer.lines[:1])  # planned for then
    return f"on-demand and existing commitments cost least{until}"


def saves(answer: CommitAnswer, amount: Callable[[float], str], digits: int) -> str:
    """What the plan saves in expectation; where it costs more, for what."""
    nothing = answer.nothing.expected_usd
    saved = nothing - answer.plan.expected_usd
    share = percent(abs(saved) / nothing if nothing else 0.0, digits)
    if saved >= 0:
        return f"saves {amount(saved)} ({share})"
    return f"costs {amount(-saved)} ({share}) more, the price of less in the worst scenarios"


def _usd(value: float | Decimal) -> str:
    """A cost over scenarios, in the digits that are known of it."""
    return dollars(value, min(known_places(float(value), abs(float(value)) * _HALF_WIDTH), 0))


def _exact(value: Decimal) -> str:
    return dollars(value, _places(value))


def _places(value: Decimal) -> int:
    return min(known_places(float(value), 0.0), 0 if abs(value) >= _WHOLE_FROM else 2)


def _buy(answer: CommitAnswer) -> Row:
    now = bought_now(answer)
    if not now:
        text = f"no commitment now: {why_nothing(answer)}"
        return ("buy", "buy", "none", "text", text)
    upfront = sum((line.upfront_usd for line in now), Decimal(0))
    hourly = sum((line.usd_per_hour for line in now), Decimal(0))
    count = "1 commitment" if len(now) == 1 else f"{len(now)} commitments"
    paid = (
        f"{_exact(upfront)} upfront and {_exact(hourly)} per hour"
        if upfront
        else f"{_exact(hourly)} per hour"
    )
    return ("buy", "buy", len(now), "count", f"{count} from {answer.start}: {paid}")


def _cost(answer: CommitAnswer, years: str) -> Row:
    plan, nothing = answer.plan, answer.nothing
    text = f"{_usd(plan.expected_usd)} expected over {years}"
    if answer.lines and nothing.expected_usd:
        text += f" instead of {_usd(nothing.expected_usd)} without new commitments: {saves(answer, _usd, 0)}"
    return ("expected_usd", "cost", plan.expected_usd, "usd_rounded", text)


def _worst(answer: CommitAnswer) -> Row:
    tail = percent(1.0 - answer.risk_level, 0)
    text = f"{_usd(answer.plan.worst_usd)} on average in the worst {tail} of scenarios"
    if answer.lines:
        text += f" ({_usd(answer.nothing.worst_usd)} without)"
    return ("worst_usd", "worst", answer.plan.worst_usd, "usd_rounded", text)


def loss_words(answer: CommitAnswer, amount: Callable[[float], str]) -> str:
    """How often the purchases cost more than none; at a price on that, what it gives and costs."""
    loss = answer.loss
    limit = percent(loss.limit_ratio, 0)
    text = f"{percent(loss.chance_ratio, 0)} of scenarios cost over {limit} more than buying nothing"
    if not loss.price:
        return text
    more = answer.plan.expected_usd - loss.plain_expected_usd
    given = f"instead of {percent(loss.plain_chance_ratio, 0)}, for {amount(abs(more))} "
    given += "more in expectation" if more >= 0 else "less in expectation, as the worst outcomes count too"
    return f"{text}, {given}" if answer.method == "avoid_loss" else f"{text}; buying less would not pay"


def _loss(answer: CommitAnswer) -> list[Row]:
    if not answer.lines and not answer.loss.price:
        return []
    return [("loss", "loses", answer.loss.chance_ratio, "ratio", loss_words(answer, _usd))]


def _owed(answer: CommitAnswer) -> list[Row]:
    owed, planned = answer.plan.committed_usd, answer.plan.planned_usd
    if not owed and not planned:
        return []
    more = f", {_usd(planned)} is planned for later" if planned else ""
    text = f"{_usd(owed)} of it is owed in any case" if owed else "nothing is owed yet"
    text += f"{more}; "
    text += f"covers {percent(answer.plan.coverage_ratio, 0)} of demand"
    if answer.plan.utilisation_ratio is not None:
        text += f", {percent(answer.plan.utilisation_ratio, 0)} of the purchased commitments is used"
    return [("committed_usd", "owed", owed, "usd_rounded", text)]


def _falls(answer: CommitAnswer) -> list[Row]:
    """What the plan still saves, or loses, where demand falls."""
    if not answer.lines or not answer.falls:
        return []
    parts = [
        f"{percent(1.0 - one.share, 0)} less demand: {'saves' if one.savings_usd >= 0 else 'LOSES'} "
        f"{_usd(abs(one.savings_usd))}"
        for one in answer.falls
    ]
    return [("falls", "if it falls", "; ".join(parts), "text", "; ".join(parts))]


def _lines(answer: CommitAnswer) -> Section:
    now = bought_now(answer)
    upfront = any(line.upfront_usd for line in now)
    columns = (
        Column("option", "what", "option"), Column("serves", "covers", "text"), Column("units", "units", "measure"),
        Column("usd_per_hour", "per hour", "usd_known"), Column("upfront_usd", "upfront", "usd_known"),
        Column("total_usd", "whole term", "usd_known"), Column("expires", "until", "date"),
        Column("utilisation_ratio", "used", "ratio", 0),
    )  # fmt: skip
    rows = [_line(line, upfront=upfront) for line in now]
    return table_section("lines", "Buy", columns, rows, shown=_MOST_LINES)


def _line(line: Line, *, upfront: bool) -> tuple[Value, ...]:
    unit = "" if line.unit == "instance" else line.unit
    return (
        (line.option, line.variant), ", ".join(line.serves), "" if line.unit == "USD/h" else (line.units, unit),
        _known(line.usd_per_hour), _known(line.upfront_usd) if upfront else "", _known(line.total_usd),
        f"{line.expires}", line.utilisation_ratio,
    )  # fmt: skip


def _known(value: Decimal) -> Decimal:
    return rounded(value, _places(value))


def _notes(answer: CommitAnswer) -> tuple[str, ...]:
    soon = [item for item in answer.expiring if item.days_left <= 90]
    ends = ", ".join(f"{item.option} of {item.serves} on {item.expires}" for item in soon)
    return (
        *answer.notes,
        *prices_note([line.as_of for line in answer.lines], answer.start),
        *([f"owned commitments end soon: {ends}"] if soon else ()),
        "a commitment cannot be given back: demand is drawn from your history, check that it still describes you",
    )
