"""A commitment answer as a report: what to buy first, then what it saves, what is at risk, and the grounds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from planner.commitments.answer import SCHEMA_VERSION
from planner.commitments.later import bought_now, planned
from planner.commitments.screen import commit_screen, ended_early, loss_words, saves, why_nothing
from planner.render.model import Answer, Chart, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.numbers import percent, usd
from planner.render.screen import on_screen
from planner.render.units import bare

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from decimal import Decimal

    from planner.commitments.answer import CommitAnswer, Level, Line
    from planner.render.model import Cell

_MAX_LINES = 40
_ENDS = {
    "time_limit": "the time limit ended the search", "interrupted": "the search was interrupted",
    "avoid_loss": "the bound is that without the price on losses",
}  # fmt: skip
_YEAR_HOURS = 8760
_OTHER_UNITS = (
    "units bought and planned are those of the same kind; reservations in place of a plan in dollars, or the reverse, "
    "are listed under --details later"
)
_SET = "of the commitments on sale in these scenarios"
_COLUMNS = (
    "row", "option", "variant", "provider", "serves", "units", "unit", "usd_per_hour", "upfront_usd", "total_usd",
    "begins", "expires", "now", "utilisation_ratio", "source", "as_of",
)  # fmt: skip


def commit_report(
    answer: CommitAnswer, *, verbose: bool = False, details: Collection[str] = (), asked_as: str = "FILE"
) -> Answer:  # fmt: skip
    """Return a commitment answer in the shape that every format is made of.

    Args:
        answer: the answer.
        verbose: whether every break-even is listed.
        details: keys of sections to show in place of the screen, or `all`.
        asked_as: what stood after `commit`: `FILE`, or the options of a bill.
    """
    sections = (
        *([Section("warnings", "Warnings", answer.notes, warning=True)] if answer.notes else []),
        _lines(answer),
        *([_later(answer)] if planned(answer) else []),
        _money(answer),
        *([_levels(answer)] if answer.lines and len(answer.levels) > 2 else []),
        *([_falls(answer)] if answer.lines and answer.falls else []),
        *([_expiring(answer)] if answer.expiring else []),
        _break_even(answer, verbose),
        _grounds(answer),
    )
    whole = Answer(
        f"Commitments for {answer.name}", _headline(answer), _summary(answer), sections,
        versioned(answer.values(), SCHEMA_VERSION), _COLUMNS, [_row(line) for line in answer.lines],
        success=answer.status == "optimal",
    )  # fmt: skip
    why = "" if answer.status == "optimal" else _ENDS.get(answer.reason, answer.reason)
    return on_screen(whole, commit_screen(answer, _SET, why, asked_as), details)


def _headline(answer: CommitAnswer) -> str:
    now = bought_now(answer)
    if not now:
        return f"{answer.name}: buy no commitment now"
    upfront = sum(line.upfront_usd for line in now)
    hourly = sum(line.usd_per_hour for line in now)
    count = "1 commitment" if len(now) == 1 else f"{len(now)} commitments"
    paid = f"{usd(upfront)} upfront and {_usd(hourly)} per hour" if upfront else f"{_usd(hourly)} per hour"
    return f"{answer.name}: buy {count} from {answer.start}: {paid}"


def _summary(answer: CommitAnswer) -> tuple[str, ...]:
    plan, nothing = answer.plan, answer.nothing
    costs = f"{_usd(plan.expected_usd)} instead of {_usd(nothing.expected_usd)} without new commitments"
    first = f"Expected cost over {_years(answer)} {costs}: {saves(answer, _usd, 1)}"
    if not answer.lines:
        lowest = answer.break_evens and not ended_early(answer)
        why = "no commitment on sale lowers it" if lowest else why_nothing(answer)
        first = f"Expected cost over {_years(answer)} {_usd(plan.expected_usd)}: {why}"
    second = (
        f"{'Optimal' if answer.status == 'optimal' else f'Best known, {_ENDS.get(answer.reason, answer.reason)}'}: "
        f"{_objective(answer)} {_usd(answer.objective_usd)}, and no choice {_SET} "
        f"has less than {_usd(answer.bound_usd)} "
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


def _lines(answer: CommitAnswer) -> Section:
    notes, lines = [], bought_now(answer)
    dated = sorted({line.as_of for line in answer.lines if line.as_of})
    if dated:
        span = dated[0] if len(dated) == 1 else f"{dated[0]} to {dated[-1]}"
        notes.append(f"prices of {span}; the source of each is in -o json")
    if not lines:
        of = f" {_SET}" if answer.break_evens and not ended_early(answer) else ""
        nothing = ((f"nothing: {why_nothing(answer)}{of}",),)
        return table_section("buy", "Buy", (Column("what", "what", "text"),), nothing)
    rows = _line_rows(lines)
    return table_section("buy", "Buy", _LINE_COLUMNS, rows, notes, shown=_MAX_LINES)


def _later(answer: CommitAnswer) -> Section:
    notes = (
        "not bought now, and nothing of it is owed: ask again on the first day of each, with the history of then",
    )
    rows = _line_rows(planned(answer))
    return table_section("later", "Planned for later", _LINE_COLUMNS, rows, notes, shown=_MAX_LINES)


_LINE_COLUMNS = (
    Column("option", "what", "option"), Column("serves", "covers", "text"), Column("units", "units", "measure"),
    Column("usd_per_hour", "USD/h", "usd_per_hour"), Column("upfront_usd", "upfront", "usd"),
    Column("total_usd", "term total", "usd"), Column("begins", "begins", "date"),
    Column("expires", "expires", "date"), Column("utilisation_ratio", "used", "ratio"),
)  # fmt: skip


def _line_rows(lines: Sequence[Line]) -> list[tuple[Value, ...]]:
    upfront = any(line.upfront_usd for line in lines)
    return [_line(line, upfront) for line in lines]


def _line(line: Line, upfront: bool) -> tuple[Value, ...]:
    unit = "" if line.unit == "instance" else line.unit
    return (
        (line.option, line.variant),
        ", ".join(line.serves),
        "" if line.unit == "USD/h" else (line.units, unit),
        line.usd_per_hour,
        line.upfront_usd if upfront else "",
        line.total_usd,
        f"{line.begins}",
        f"{line.expires}",
        line.utilisation_ratio,
    )


def _money(answer: CommitAnswer) -> Section:
    plan, nothing = answer.plan, answer.nothing
    worst = f"worst {percent(1 - answer.risk_level, 0)}"
    rows: list[tuple[Value, ...]] = [
        ("without new commitments", nothing.expected_usd, nothing.worst_usd, nothing.coverage_ratio, ""),
        ("this plan", plan.expected_usd, plan.worst_usd, plan.coverage_ratio, _blank(plan.utilisation_ratio)),
    ]
    more = f"; {_usd(plan.planned_usd)} is planned for later and not owed yet" if plan.planned_usd else ""
    notes = [f"of the plan's cost, {_usd(plan.committed_usd)} is committed and owed whatever happens{more}"]
    if answer.regret is not None:
        regret = answer.regret
        notes.append(
            f"regret against perfect foresight, over {regret.scenarios} scenarios: mean {_usd(regret.mean_usd)} "
            f"({percent(regret.mean_ratio)}), P90 {_usd(regret.p90_usd)}, worst {_usd(regret.worst_usd)}"
        )
    notes += [loss_words(answer, _usd)] if answer.lines or answer.loss.price else []
    columns = (
        Column("case", "cost over the horizon", "text"), Column("expected_usd", "expected", "usd_rounded"),
        Column("worst_usd", worst, "usd_rounded"), Column("coverage_ratio", "coverage", "ratio"),
        Column("utilisation_ratio", "utilisation", "ratio"),
    )  # fmt: skip
    series = (
        ("expected", (float(nothing.expected_usd), float(plan.expected_usd))),
        (worst, (float(nothing.worst_usd), float(plan.worst_usd))),
    )
    names = ("without new commitments", "this plan")
    chart = Chart("cost", "", "bars", names, series, "usd_rounded", "", drawn_only=True)
    return table_section("money", "Cost and risk", columns, rows, notes, charts=(chart,))


_LEVEL_COLUMNS = (
    Column("committed_usd", "committed", "usd_rounded"), Column("planned_usd", "planned", "usd_rounded"),
    Column("expected_usd", "expected", "usd_rounded"), Column("worst_usd", "worst", "usd_rounded"),
    Column("savings_usd", "savings", "usd_rounded"),
    Column("coverage_ratio", "coverage", "ratio"), Column("utilisation_ratio", "utilisation", "ratio"),
)  # fmt: skip


def _levels(answer: CommitAnswer) -> Section:
    later = bool(planned(answer))
    rows = [(level.share, *_level(level, later=later)) for level in answer.levels]
    columns = (Column("share_ratio", "of the plan", "ratio", 0), *_LEVEL_COLUMNS)
    return table_section("levels", "More or less of it", columns, rows)


def _falls(answer: CommitAnswer) -> Section:
    later = bool(planned(answer))
    rows = [(level.share - 1, *_level(level, later=later)) for level in answer.falls]
    lost = [level for level in answer.falls if level.savings_usd < 0]
    text = "; ".join(
        f"{percent(1 - one.share, 0)} less demand loses {_usd(-one.savings_usd)}" for one in lost
    )
    notes = (
        (f"{text}, against having bought nothing",) if lost else ("the plan still saves money in both cases",)
    )
    columns = (Column("demand_ratio", "demand", "ratio", 0), *_LEVEL_COLUMNS)
    return table_section("falls", "If demand falls", columns, rows, notes)


def _level(level: Level, *, later: bool) -> tuple[Value, ...]:
    return (
        level.committed_usd,
        level.planned_usd if later else "",
        level.expected_usd,
        level.worst_usd,
        level.savings_usd,
        level.coverage_ratio,
        _blank(level.utilisation_ratio),
    )


def _expiring(answer: CommitAnswer) -> Section:
    rows: list[tuple[Value, ...]] = []
    for item in answer.expiring:
        unit = item.unit if item.unit == "USD/h" else ""
        rows.append((
            item.option, item.serves, (item.units, unit), f"{item.expires}", item.days_left, item.used_ratio,
            (item.renewed_units, unit), (item.later_units, unit) if item.later_units else "",
        ))  # fmt: skip
    columns = (
        Column("option", "owned", "text"), Column("serves", "covers", "text"), Column("units", "units", "measure"),
        Column("expires", "expires", "date"), Column("days_left", "days", "count"),
        Column("used_ratio", "used until then", "ratio"), Column("renewed", "bought now", "measure"),
        Column("later", "planned for then", "measure"),
    )  # fmt: skip
    notes = (_OTHER_UNITS,) if _replaced_in_other_units(answer) else ()
    return table_section("expiring", "Owned commitments that end", columns, rows, notes)


def _replaced_in_other_units(answer: CommitAnswer) -> bool:
    """Whether a reservation is planned for the day after a plan in dollars ends, or the reverse."""
    ends = {(own.expires + timedelta(days=1), own.unit == "USD/h") for own in answer.expiring}
    return any((line.begins, line.unit != "USD/h") in ends for line in planned(answer))


def _break_even(answer: CommitAnswer, verbose: bool) -> Section:
    rows: list[tuple[Value, ...]] = [
        (
            item.pool,
            (item.option, item.variant),
            item.on_demand_usd_per_hour,
            item.all_in_usd_per_hour,
            _hours(item.hours_per_year),
            item.hours_per_year / _YEAR_HOURS,
            "" if item.spot_hours_per_year is None else _hours(item.spot_hours_per_year),
        )
        for item in answer.break_evens
    ]
    if not rows:
        return Section(
            "break_even",
            "Break-even",
            ("no commitment of these pools that is allowed has a price",),
            detail=True,
        )
    columns = (
        Column("pool", "pool", "text"), Column("option", "option", "option"),
        Column("on_demand_usd_per_hour", "on-demand/h", "usd_price"),
        Column("all_in_usd_per_hour", "all-in/h", "usd_price"), Column("hours_per_year", "pays from h/year", "count"),
        Column("of_year_ratio", "of the year", "ratio"), Column("against_spot", "against spot", "count"),
    )  # fmt: skip
    shown = len(rows) if verbose else _MAX_LINES
    return table_section("break_even", "Break-even", columns, rows, shown=shown, detail=True)


def _grounds(answer: CommitAnswer) -> Section:
    how = (
        f"{answer.method.replace('_', ' ')}, {answer.rounds} rounds"
        if answer.rounds
        else "closed form (exact)"
        if answer.method == "closed_form"
        else "closed form, then less of it"
    )
    futures = f"{answer.scenarios} scenarios, {answer.rows:,} hours evaluated, {_years(answer)}"
    use = "reservations first, then plans where they save most per dollar, then spot, then on-demand"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("scenarios", "futures", answer.scenarios, "count", futures),
        ("seconds", "method", answer.seconds, "seconds", f"{how}, {answer.seconds:.1f} s"),
        ("use", "use", use, "text", use),
    ]
    for item in answer.catalog:
        said = f"{item.oldest_as_of} to {item.newest_as_of}, {item.sha256[:12]}"
        rows.append((f"catalog_{item.provider}", f"catalog {item.provider}", item.newest_as_of, "date", said))
    return facts("grounds", "Grounds", rows, detail=True)


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
    return bare(value, "usd_rounded", "USD")


def _blank(ratio: float | None) -> float | str:
    """The ratio; nothing where there is none."""
    return "" if ratio is None else ratio


def _hours(value: float) -> float | str:
    return value if value <= _YEAR_HOURS else "never"
