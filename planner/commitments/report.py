"""A commitment answer as a report: what to buy first, then what it saves, what is at risk, and the grounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.commitments.answer import SCHEMA_VERSION
from planner.render.document import Block, Document, Facts, Grid, Notes, without_empty
from planner.render.numbers import UNKNOWN, number, percent, usd
from planner.render.report import Report
from planner.render.words import option

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.commitments.answer import CommitAnswer, Level, Line
    from planner.render.model import Cell

_MAX_LINES = 40
_ENDS = {"time_limit": "the time limit ended the search", "interrupted": "the search was interrupted"}
_YEAR_HOURS = 8760
_COLUMNS = (
    "row", "option", "variant", "provider", "serves", "units", "unit", "usd_per_hour", "upfront_usd", "total_usd",
    "begins", "expires", "now", "utilisation_ratio", "source", "as_of",
)  # fmt: skip


def commit_report(answer: CommitAnswer, *, verbose: bool = False) -> Report:
    """Return the report of a commitment answer.

    Args:
        answer: the answer.
        verbose: whether every break-even is listed.
    """
    document = build_document(answer, verbose=verbose)
    rows = [_row(line) for line in answer.lines]
    return Report(document, answer.to_dict(), _COLUMNS, rows, SCHEMA_VERSION)


def build_document(answer: CommitAnswer, *, verbose: bool = False) -> Document:
    """Return the document that the text formats lay out."""
    blocks: list[Block] = [
        *([Notes("Warnings", answer.notes, True)] if answer.notes else []),
        _lines(answer),
        _money(answer),
        *([_levels(answer)] if answer.lines and len(answer.levels) > 2 else []),
        *([_falls(answer)] if answer.lines and answer.falls else []),
        *([_expiring(answer)] if answer.expiring else []),
        _break_even(answer, verbose),
        _grounds(answer),
    ]
    return Document(_headline(answer), _summary(answer), tuple(blocks), success=answer.status == "optimal")


def _headline(answer: CommitAnswer) -> str:
    now = [line for line in answer.lines if line.now]
    if not now:
        return f"{answer.name}: buy no commitment now"
    upfront = sum(line.upfront_usd for line in now)
    hourly = sum(line.usd_per_hour for line in now)
    count = "1 commitment" if len(now) == 1 else f"{len(now)} commitments"
    paid = f"{usd(upfront)} upfront and {_usd(hourly)} per hour" if upfront else f"{_usd(hourly)} per hour"
    return f"{answer.name}: buy {count} from {answer.start}: {paid}"


def _summary(answer: CommitAnswer) -> tuple[str, ...]:
    plan, nothing = answer.plan, answer.nothing
    saved = nothing.expected_usd - plan.expected_usd
    share = saved / nothing.expected_usd if nothing.expected_usd else 0.0
    costs = f"{_usd(plan.expected_usd)} instead of {_usd(nothing.expected_usd)} without new commitments"
    first = f"Expected cost over {_years(answer)} {costs}: saves {_usd(saved)} ({percent(share)})"
    if not answer.lines:
        first = (
            f"Expected cost over {_years(answer)} {_usd(plan.expected_usd)}: no commitment on sale lowers it"
        )
    second = (
        f"{'Optimal' if answer.status == 'optimal' else f'Best known, {_ENDS.get(answer.reason, answer.reason)}'}: "
        f"{_objective(answer)} {_usd(answer.objective_usd)}, and no choice has less than {_usd(answer.bound_usd)} "
        f"(gap {percent(answer.gap_ratio, 3)})"
    )
    return first, second


def _years(answer: CommitAnswer) -> str:
    return "1 year" if answer.years == 1 else f"{answer.years} years"


def _objective(answer: CommitAnswer) -> str:
    if not answer.risk_weight:
        return "expected cost"
    weight, tail = percent(answer.risk_weight, 0), percent(1 - answer.risk_level, 0)
    return f"{percent(1 - answer.risk_weight, 0)} expected cost + {weight} mean of the worst {tail} is"


def _lines(answer: CommitAnswer) -> Grid:
    rows = [_line(line) for line in answer.lines[:_MAX_LINES]]
    notes = (
        [f"{len(answer.lines) - _MAX_LINES} more lines in -o csv"] if len(answer.lines) > _MAX_LINES else []
    )
    if any(not line.now for line in answer.lines):
        notes.append("later lines are planned renewals: decide them when they come, with the history of then")
    dated = sorted({line.as_of for line in answer.lines if line.as_of})
    if dated:
        span = dated[0] if len(dated) == 1 else f"{dated[0]} to {dated[-1]}"
        notes.append(f"prices of {span}; the source of each is in -o json")
    header = ("what", "covers", "units", "USD/h", "upfront", "term total", "begins", "expires", "used")
    if not rows:
        return Grid("Buy", ("what",), (("nothing: on-demand and what is owned cost least",),), "l")
    if not any(line.upfront_usd for line in answer.lines):
        rows = [row[:4] + row[5:] for row in rows]
        return Grid("Buy", header[:4] + header[5:], tuple(rows), "llrrrllr", tuple(notes))
    return Grid("Buy", header, tuple(rows), "llrrrrllr", tuple(notes))


def _line(line: Line) -> tuple[str, ...]:
    units = f"{line.units:,f}" + ("" if line.unit in ("instance", "USD/h") else f" {line.unit}")
    return (
        option(line.option, line.variant),
        ", ".join(line.serves),
        "" if line.unit == "USD/h" else units,
        f"{line.usd_per_hour:,.3f}",
        usd(line.upfront_usd),
        usd(line.total_usd),
        f"{line.begins}",
        f"{line.expires}",
        percent(line.utilisation_ratio),
    )


def _money(answer: CommitAnswer) -> Grid:
    plan, nothing = answer.plan, answer.nothing
    worst = f"worst {percent(1 - answer.risk_level, 0)}"
    rows = [
        ("without new commitments", nothing.expected_usd, nothing.worst_usd, nothing.coverage_ratio, None),
        ("this plan", plan.expected_usd, plan.worst_usd, plan.coverage_ratio, plan.utilisation_ratio),
    ]
    cells = [
        (name, _usd(mean), _usd(tail), percent(cover), _share(used)) for name, mean, tail, cover, used in rows
    ]
    notes = [f"of the plan's cost, {_usd(plan.committed_usd)} is committed and owed whatever happens"]
    if answer.regret is not None:
        regret = answer.regret
        notes.append(
            f"regret against perfect foresight, over {regret.scenarios} scenarios: mean {_usd(regret.mean_usd)} "
            f"({percent(regret.mean_ratio)}), P90 {_usd(regret.p90_usd)}, worst {_usd(regret.worst_usd)}"
        )
    header = ("cost over the horizon", "expected", worst, "coverage", "utilisation")
    return Grid("Cost and risk", header, tuple(cells), "lrrrr", tuple(notes))


def _levels(answer: CommitAnswer) -> Grid:
    rows = [(percent(level.share, 0), *_level(level)) for level in answer.levels]
    header = ("of the plan", "committed", "expected", "worst", "savings", "coverage", "utilisation")
    return Grid("More or less of it", header, tuple(rows), "rrrrrrr")


def _falls(answer: CommitAnswer) -> Grid:
    rows = [(f"-{percent(1 - level.share, 0)}", *_level(level)) for level in answer.falls]
    lost = [level for level in answer.falls if level.savings_usd < 0]
    text = "; ".join(
        f"{percent(1 - one.share, 0)} less demand loses {_usd(-one.savings_usd)}" for one in lost
    )
    notes = (
        (f"{text}, against having bought nothing",) if lost else ("the plan still saves money in both cases",)
    )
    header = ("demand", "committed", "expected", "worst", "savings", "coverage", "utilisation")
    return Grid("If demand falls", header, tuple(rows), "rrrrrrr", notes)


def _level(level: Level) -> tuple[str, ...]:
    return (
        _usd(level.committed_usd),
        _usd(level.expected_usd),
        _usd(level.worst_usd),
        _usd(level.savings_usd),
        percent(level.coverage_ratio),
        _share(level.utilisation_ratio),
    )


def _expiring(answer: CommitAnswer) -> Grid:
    rows = [
        (
            item.option,
            item.serves,
            f"{number(item.units, 6)}{' USD/h' if item.unit == 'USD/h' else ''}",
            f"{item.expires}",
            f"{item.days_left:,}",
            UNKNOWN if item.used_ratio is None else percent(item.used_ratio),
            f"{number(item.renewed_units, 6)}{' USD/h' if item.unit == 'USD/h' else ''}",
        )
        for item in answer.expiring
    ]
    header = ("owned", "covers", "units", "expires", "days", "used until then", "plan buys there")
    return Grid("Owned commitments that end", header, tuple(rows), "llrlrrr")


def _break_even(answer: CommitAnswer, verbose: bool) -> Grid:
    shown = answer.break_evens if verbose else answer.break_evens[:_MAX_LINES]
    rows = [
        (
            item.pool,
            option(item.option, item.variant),
            f"{item.on_demand_usd_per_hour:,.4f}",
            f"{item.all_in_usd_per_hour:,.4f}",
            _hours(item.hours_per_year),
            percent(item.hours_per_year / _YEAR_HOURS),
            "" if item.spot_hours_per_year is None else _hours(item.spot_hours_per_year),
        )
        for item in shown
    ]
    header = ("pool", "option", "on-demand/h", "all-in/h", "pays from h/year", "of the year", "against spot")
    notes = (
        []
        if len(shown) == len(answer.break_evens)
        else [f"{len(answer.break_evens) - len(shown)} more with -v"]
    )
    if not rows:
        notes.append("no commitment of these pools has a price")
    return Grid("Break-even", *without_empty(header, rows, "llrrrrr"), tuple(notes), detail=True)


def _grounds(answer: CommitAnswer) -> Facts:
    how = (
        f"{answer.method.replace('_', ' ')}, {answer.rounds} rounds"
        if answer.rounds
        else "closed form (exact)"
    )
    rows = [
        ("futures", f"{answer.scenarios} scenarios, {answer.rows:,} hours evaluated, {_years(answer)}"),
        ("method", f"{how}, {answer.seconds:.1f} s"),
        ("use", "reservations first, then plans where they save most per dollar, then spot, then on-demand"),
    ]
    rows += [
        (f"catalog {item.provider}", f"{item.oldest_as_of} to {item.newest_as_of}, {item.sha256[:12]}")
        for item in answer.catalog
    ]
    return Facts("Grounds", tuple(rows), detail=True)


def _row(line: Line) -> dict[str, Cell]:
    return {
        "row": "line", "option": line.option, "variant": line.variant, "provider": line.provider,
        "serves": "+".join(line.serves), "units": line.units, "unit": line.unit, "usd_per_hour": line.usd_per_hour,
        "upfront_usd": line.upfront_usd, "total_usd": line.total_usd, "begins": f"{line.begins}",
        "expires": f"{line.expires}", "now": str(line.now).lower(), "utilisation_ratio": line.utilisation_ratio,
        "source": line.source, "as_of": line.as_of,
    }  # fmt: skip


def _usd(value: float | Decimal) -> str:
    """Money without cents from a thousand dollars on."""
    value = float(value)
    sign, size = ("-" if value < 0 else ""), abs(value)
    return f"{sign}${size:,.0f}" if size >= 1000 else f"{sign}${size:,.2f}"


def _share(ratio: float | None) -> str:
    return "" if ratio is None else percent(ratio)


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value <= _YEAR_HOURS else "never"
