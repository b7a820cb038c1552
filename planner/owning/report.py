"""Buy or rent as a report: the screen, then inputs with their sources, parts, tests, cash by month and the tornado."""

from __future__ import annotations

from dataclasses import fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from planner.owning import words
from planner.owning.model import SCHEMA_VERSION
from planner.owning.screen import asked, headline, tco_screen, ways_table
from planner.plan.plain import plain
from planner.render.model import Answer, Chart, Column, Section, Value, table_section, versioned
from planner.render.numbers import usd
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.owning.answer import TcoAnswer
    from planner.owning.model import Bar, Way
    from planner.render.model import Cell

_COLUMNS = (
    "row", "name", "month", "cash_usd", "cumulative_usd", "low", "value", "high", "unit",
    "saving_low_usd_per_useful_hour", "saving_high_usd_per_useful_hour", "origin", "source", "as_of",
)  # fmt: skip
_SHOWN = 13


def tco_report(answer: TcoAnswer, *, details: Collection[str] = ()) -> Answer:
    """Return the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    sections = (
        ways_table(answer), _pairs(answer), _tornado(answer), _cash(answer), _inputs(answer), _parts(answer),
        *([_quotes(answer)] if answer.quotes else []), _checks(answer), _resales(answer), _owned(answer),
    )  # fmt: skip
    whole = Answer(
        "Buy or rent", headline(answer), (asked(answer),), sections, values_of(answer), _COLUMNS, _rows(answer),
        sources=tuple(f"{source.provider} {source.oldest_as_of} to {source.newest_as_of}" for source in answer.sources),
    )  # fmt: skip
    return on_screen(whole, tco_screen(answer), details)


def values_of(answer: TcoAnswer) -> dict[str, Any]:
    """The machine form: `to_dict`, `-o json`."""
    values = {
        item.name: plain(getattr(answer, item.name)) for item in fields(answer) if item.name != "sources"
    }
    head = {"kind": "tco", "currency": "USD", "best": answer.best, "catalog": plain(answer.sources)}
    return versioned({**head, **values}, SCHEMA_VERSION)


def _pairs(answer: TcoAnswer) -> Section:
    months = answer.figures.months
    columns = (
        Column("own", "own", "text"), Column("rent", "rent", "text"), Column("saving_usd", "owning saves", "text"),
        Column("break_even_month", "pays in month", "text"), Column("use", "own if busy", "text"),
    )  # fmt: skip
    rows = [
        (
            words.short(pair.own), words.short(pair.rent), words.money(pair.saving_usd), words.month(pair, months),
            words.use(pair),
        )
        for pair in answer.pairs
    ]  # fmt: skip
    note = "saved: NPV over the life with the resale; month: by all that was paid, undiscounted, the resale in the last"
    return table_section("pairs", "Owning against renting", columns, rows, (note,))


def _tornado(answer: TcoAnswer) -> Section:
    owning, rent = answer.spread(answer.own), answer.spread(answer.rent)
    base = rent.value - owning.value
    columns = (
        Column("factor", "input", "text"), Column("from", "low", "three"), Column("low", "saves at low", "usd_change"),
        Column("to", "high", "three"), Column("high", "saves at high", "usd_change"), Column("unit", "unit", "text"),
        Column("turns", "reverses it", "text"),
    )  # fmt: skip
    rows = [_bar(bar) for bar in answer.bars]
    notes = (
        f"saved per useful accelerator-hour by {words.way(answer.own)} against {words.way(answer.rent)}: "
        f"{base:+.2f} USD with every input at its centre; each row is the whole answer with one input at its ends",
    )
    labels = tuple(bar.words for bar in answer.bars)
    ends = [sorted(end.saving_usd_per_useful_hour for end in (bar.low, bar.high)) for bar in answer.bars]
    name = "owning saves"
    series = (
        (name, (base,) * len(ends)), (f"{name} low", tuple(low for low, _ in ends)),
        (f"{name} high", tuple(high for _, high in ends)),
    )  # fmt: skip
    chart = Chart(
        "tornado", "What moves the answer", "dots", labels, series, "usd_price",
        "Saving of owning per useful accelerator-hour over the range of each input; left of zero renting costs less.",
        marks=(0.0,), drawn_only=True, axis="USD saved per useful accelerator-hour",
    )  # fmt: skip
    return table_section("tornado", "What moves the answer", columns, rows, notes, charts=(chart,))


def _bar(bar: Bar) -> tuple[Value, ...]:
    low, high = (round(end.saving_usd_per_useful_hour, 2) for end in (bar.low, bar.high))
    return bar.words, bar.low.value, low, bar.high.value, high, bar.unit, "yes" if bar.turns else ""


def _cash(answer: TcoAnswer) -> Section:
    ways = _compared(answer)
    columns = [Column("month", "month", "count")]
    columns += [Column(way.name, words.short(way.name), "usd_rounded") for way in ways]
    totals = [list(accumulate(way.cash_usd)) for way in ways]
    rows = [(month, *(total[month] for total in totals)) for month in range(answer.figures.months + 1)]
    labels = tuple(str(month) for month in range(answer.figures.months + 1))
    chart = Chart(
        "cash", "All that was paid, by month", "lines", labels,
        tuple((words.short(way.name), tuple(total)) for way, total in zip(ways, totals, strict=True)), "usd_rounded",
        "Cumulative cash of owning and of renting by month; the resale of the machine is in the last month.",
        drawn_only=True,
    )  # fmt: skip
    note = "all that was paid by the end of each month, undiscounted; the last month counts the resale"
    return table_section("cash", "Cash by month", columns, rows, (note,), shown=_SHOWN, charts=(chart,))


def _compared(answer: TcoAnswer) -> list[Way]:
    """Sites, and the ways to rent that cost least: what a chart can hold."""
    rents = sorted(answer.figures.rent, key=lambda way: way.usd_per_useful_hour)[:3]
    return [*answer.figures.own, *rents]


def _inputs(answer: TcoAnswer) -> Section:
    columns = (
        Column("input", "input", "text"), Column("low", "low", "three"), Column("value", "value", "three"),
        Column("high", "high", "three"), Column("unit", "unit", "text"), Column("origin", "origin", "text"),
        Column("source", "source", "text"), Column("as_of", "as of", "text"),
    )  # fmt: skip
    rows = [
        (
            factor.words,
            factor.low,
            factor.value,
            factor.high,
            factor.unit,
            factor.origin,
            factor.source,
            factor.as_of,
        )
        for factor in answer.factors
    ]
    return table_section("inputs", "Inputs", columns, rows)


def _parts(answer: TcoAnswer) -> Section:
    columns = (
        Column("part", "part", "text"), Column("count", "count", "count"), Column("low", "low", "usd_rounded"),
        Column("usd", "each", "usd_rounded"), Column("high", "high", "usd_rounded"), Column("source", "source", "text"),
        Column("as_of", "as of", "text"), Column("note", "note", "text"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (part.name, part.count, part.low_usd, part.usd, part.high_usd, part.source, part.as_of, part.note)
        for part in answer.parts
    ]  # fmt: skip
    price = next(factor for factor in answer.factors if factor.key == "hardware_usd")
    rows.append(("one machine", "", price.low, price.value, price.high, "", "", ""))
    return table_section("parts", "Bill of materials", columns, rows)


def _quotes(answer: TcoAnswer) -> Section:
    columns = (
        Column("part", "part", "text"), Column("item", "published", "text"), Column("condition", "condition", "text"),
        Column("low", "low", "usd_rounded"), Column("high", "high", "usd_rounded"),
        Column("ratio", "of the list's", "text"), Column("disagrees", "disagrees", "text"),
        Column("source", "source", "text"), Column("as_of", "as of", "text"),
    )  # fmt: skip
    rows = [
        (
            quote.part, quote.item, quote.condition, quote.low_usd, quote.high_usd,
            _times(quote.ratio_low, quote.ratio_high), "yes" if quote.disagrees else "", quote.source, quote.as_of,
        )
        for quote in answer.quotes
    ]  # fmt: skip
    return table_section("quotes", "Published prices beside the list", columns, rows)


def _times(low: float, high: float) -> str:
    return f"{low:.2f} x" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f} x"


def _checks(answer: TcoAnswer) -> Section:
    columns = (
        Column("check", "test", "text"), Column("needs", "needs", "text"), Column("has", "has", "text"),
        Column("verdict", "verdict", "text"), Column("rule", "published rule", "text"),
        Column("rule_verdict", "the rule", "text"), Column("why", "why", "text"),
    )  # fmt: skip
    rows = [
        (
            check.words,
            check.needs,
            check.has,
            check.verdict,
            f"{check.rule_id} {check.rule}".strip(),
            check.rule_verdict,
            check.why,
        )
        for check in answer.checks
    ]
    return table_section("checks", "Tests of the machine", columns, rows)


def _resales(answer: TcoAnswer) -> Section:
    columns = (
        Column("item", "generation", "text"), Column("years", "years", "tenths"),
        Column("low", "kept, low", "ratio", 0), Column("high", "kept, high", "ratio", 0),
        Column("yearly_low", "each year, low", "ratio", 0),
        Column("yearly_high", "each year, high", "ratio", 0), Column("source", "source", "text"),
        Column("as_of", "as of", "text"),
    )  # fmt: skip
    rows = [
        (
            resale.item,
            resale.years,
            resale.low,
            resale.high,
            resale.yearly_low,
            resale.yearly_high,
            resale.source,
            resale.as_of,
        )
        for resale in answer.resales
    ]
    residual = next(factor for factor in answer.factors if factor.key == "residual_ratio")
    after = answer.fixed.residual_after_years
    note = (
        f"here {residual.value:.0%} after {after:g} years ({residual.low:.0%} to {residual.high:.0%}): "
        f"{residual.value ** (1 / after):.0%} kept each year; other lives follow from it"
    )
    return table_section("resales", "Resale of earlier generations", columns, rows, (note,))


def _owned(answer: TcoAnswer) -> Section:
    """The file that makes the machine compete in plans of jobs."""
    handover = answer.handover
    first = (
        f"an hour of one machine costs {usd(handover.marginal_usd_per_hour)} at the margin and "
        f"{usd(handover.full_usd_per_hour)} in full; `--owned FILE` writes this"
    )
    lacking = tuple(f"{name} must be added: the parts do not say it" for name in handover.lacks)
    return Section("owned", "For prices.offers of a workload", (first, *lacking, *handover.text.splitlines()))


def _rows(answer: TcoAnswer) -> list[dict[str, Cell]]:
    """Flat rows: cash by way and month, inputs, the tornado."""
    blank: dict[str, Cell] = dict.fromkeys(_COLUMNS, "")
    rows: list[dict[str, Cell]] = [
        {**blank, "row": "way", "name": one.name, "low": one.low, "value": one.value, "high": one.high,
         "unit": "USD/useful accelerator-hour"} for one in answer.spreads
    ]  # fmt: skip
    rows += [
        {**blank, "row": "cash", "name": way.name, "month": month, "cash_usd": paid, "cumulative_usd": total}
        for way in (*answer.figures.own, *answer.figures.rent)
        for month, (paid, total) in enumerate(zip(way.cash_usd, accumulate(way.cash_usd), strict=True))
    ]
    bars = {bar.key: bar for bar in answer.bars}
    for factor in answer.factors:
        bar = bars.get(factor.key)
        rows.append({
            **blank, "row": "input", "name": factor.key, "low": factor.low, "value": factor.value, "high": factor.high,
            "unit": factor.unit, "origin": factor.origin, "source": factor.source, "as_of": factor.as_of,
            "saving_low_usd_per_useful_hour": bar.low.saving_usd_per_useful_hour if bar else "",
            "saving_high_usd_per_useful_hour": bar.high.saving_usd_per_useful_hour if bar else "",
        })  # fmt: skip
    return rows
