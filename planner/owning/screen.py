"""The screen of buy or rent: what costs least, by how much, from when and from which use on, and every way."""

from __future__ import annotations

import math
from operator import mul
from typing import TYPE_CHECKING

from planner.owning import words
from planner.owning.figures import owning_parts
from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import percent
from planner.render.screen import Row, Screen, prices_note

if TYPE_CHECKING:
    from planner.owning.answer import TcoAnswer
    from planner.owning.model import Factor, Way

NEXT = ("tco FILE --owned own.yaml", "verify ANSWER.json --workload FILE")
_NAMED = 0.01  # shares of the cost of owning from which on they are told
_BIGGEST = 3  # factors that turn the answer are named
_SOME = 4  # of the assumed ones
_RENTS = 3  # ways to rent on the screen


def tco_screen(answer: TcoAnswer) -> Screen:
    """Return the screen."""
    proof = "From the file and the catalog's expected prices; intervals join all ranges. Without taxes."
    own, rent = _both(answer)
    verdict = [
        _verdict(answer),
        own,
        *_made_of(answer),
        rent,
        _saving(answer),
        _pays(answer),
        *_turns(answer),
    ]
    return Screen(asked(answer), verdict, _shown(answer), _notes(answer), proof, NEXT)


def asked(answer: TcoAnswer) -> str:
    """The question in one line."""
    utilisation = value_of(answer, "utilisation_ratio").value
    hours = answer.figures.useful_hours_per_month * answer.figures.months
    count = answer.fixed.all_accelerators
    return (
        f"{answer.name}: {count} x {answer.accelerator} for {words.lasting(answer)} from {answer.start}, "
        f"{percent(utilisation, 0)} busy: {hours:,.0f} useful hours"
    )


def headline(answer: TcoAnswer) -> str:
    """The verdict in one line."""
    best = answer.spread(answer.best)
    other = answer.spread(answer.rent if answer.best == answer.own else answer.own)
    return (
        f"{answer.name}: {words.way(best.name)} costs least, {words.per_hour(best)} per useful accelerator-hour; "
        f"{words.way(other.name)} {words.per_hour(other)}"
    )


def value_of(answer: TcoAnswer, key: str) -> Factor:
    """The factor of a key."""
    return next(one for one in answer.factors if one.key == key)


def _verdict(answer: TcoAnswer) -> Row:
    sure = "" if _apart(answer) else ", but not for certain: intervals overlap"
    text = f"{words.way(answer.best)} costs least{sure}"
    return ("best", "verdict", answer.best, "text", text)


def _apart(answer: TcoAnswer) -> bool:
    """Whether the intervals of owning and renting do not meet."""
    own, rent = answer.spread(answer.own), answer.spread(answer.rent)
    return own.high < rent.low or rent.high < own.low


def _both(answer: TcoAnswer) -> list[Row]:
    """Cost per useful hour of the best site and of the best way to rent."""
    rows: list[Row] = []
    for label, name in (("own", answer.own), ("rent", answer.rent)):
        found = answer.spread(name)
        text = f"{words.per_hour(found)} per useful accelerator-hour, {words.short(name)}"
        if label == "own":
            text += f"; {words.money(_start(answer))} at the start"
        rows.append((f"{label}_usd_per_useful_hour", label, found.value, "usd_price", text))
    return rows


def _made_of(answer: TcoAnswer) -> list[Row]:
    """What the best site's cost is for, most first, and the staff of all machines: its default is often the most.

    Nothing where resale returns all that was paid: there is no cost to have a share of.
    """
    figures, values = answer.figures, {one.key: one.value for one in answer.factors}
    parts = owning_parts(answer.own, values, answer.fixed, figures.months)
    npv = {name: math.fsum(map(mul, cash, figures.discount)) for name, cash in parts.items()}
    whole = math.fsum(npv.values())
    if whole < 0.5:  # in dollars
        return []
    shares = {name: usd / whole for name, usd in sorted(npv.items(), key=lambda item: -item[1])}
    staff = value_of(answer, f"{answer.own}.staff_fte")
    people = (
        f" ({staff.value * answer.fixed.machines:g} FTE{'' if staff.origin == 'given' else ', a default'})"
    )
    named = [
        f"{name} {percent(share, 0)}{people if name == 'staff' else ''}"
        for name, share in shares.items()
        if share >= _NAMED
    ]
    return [("own_staff_share", "for", shares["staff"], "ratio", ", ".join(named))]


def _start(answer: TcoAnswer) -> float:
    return next(way for way in answer.figures.own if way.name == answer.own).cash_usd[0]


def _saving(answer: TcoAnswer) -> Row:
    pair, rate = answer.pair, value_of(answer, "capital_ratio").value
    amount = words.money(abs(pair.saving_usd))
    said = f"costs {amount} {'less' if pair.saving_usd >= 0 else 'more'}"
    text = f"owning {said} than {words.way(pair.rent)} over {words.lasting(answer)}, at {percent(rate, 1)} a year"
    return ("saving_usd", "NPV", pair.saving_usd, "usd_rounded", text)


def _pays(answer: TcoAnswer) -> Row:
    pair, months = answer.pair, answer.figures.months
    when = f"cash break-even in month {words.month(pair, months)}"
    if pair.break_even_month is None:
        when = f"no cash break-even in {months} months"
    when += f" against {words.way(pair.rent)}"
    less = {"never": "owning costs more at any use", "always": "owning costs less at any use"}
    use = less.get(pair.holds, f"owning costs less {words.use(pair)} of the time busy")
    text = f"{when}; {use}"
    return ("break_even_month", "pays", pair.break_even_month, "count", text)


def _turns(answer: TcoAnswer) -> list[Row]:
    """Factors within whose range the other answer holds."""
    found = [bar.words for bar in answer.bars if bar.turns]
    if not found:
        return [("turns", "reversed by", 0, "count", "no single input, over its whole range")]
    more = f" and {len(found) - _BIGGEST} more" if len(found) > _BIGGEST else ""
    text = f"{', '.join(found[:_BIGGEST])}{more}, {'each alone ' if len(found) > 1 else ''}within its range"
    return [("turns", "reversed by", len(found), "count", text)]


def _shown(answer: TcoAnswer) -> Section:
    """Sites and the ways to rent that cost least, cheapest first, without what `--details ways` adds."""
    rents = sorted(answer.figures.rent, key=lambda way: way.usd_per_useful_hour)
    ways = sorted((*answer.figures.own, *rents[:_RENTS]), key=lambda way: way.usd_per_useful_hour)
    columns = (
        Column("way", "own or rent", "text"), Column("offer", "offer", "text"),
        Column("usd_per_useful_hour", "USD per useful h", "text"),
        Column("break_even_month", "pays in, months", "text"),
        Column("break_even_utilisation", "own if busy", "text"),
    )  # fmt: skip
    left = len(rents) - _RENTS
    notes = (f"{left} more expensive ways to rent: --details ways",) if left > 0 else ()
    rows = [(*cells[:3], *cells[4:]) for cells in (_way(answer, way) for way in ways)]
    return table_section("cheapest", "Ways to own or rent", columns, rows, notes)


def ways_table(answer: TcoAnswer) -> Section:
    """Every way, cheapest first, with when and from which use the best site beats it."""
    ways = sorted((*answer.figures.own, *answer.figures.rent), key=lambda way: way.usd_per_useful_hour)
    columns = (
        Column("way", "own or rent", "text"), Column("offer", "offer", "text"),
        Column("usd_per_useful_hour", "USD per useful h", "text"), Column("npv_usd", "NPV", "text"),
        Column("break_even_month", "pays in, months", "text"),
        Column("break_even_utilisation", "own if busy", "text"),
    )  # fmt: skip
    return table_section("ways", "Ways to own or rent", columns, [_way(answer, way) for way in ways])


def _way(answer: TcoAnswer, way: Way) -> tuple[Value, ...]:
    offer = next((words.rented(one) for one in answer.fixed.rents if one.option == way.name), "own machine")
    pair = next((one for one in answer.pairs if (one.own, one.rent) == (answer.own, way.name)), None)
    pays = words.month(pair, answer.figures.months) if pair else ""
    return (
        words.short(way.name), offer, words.cell(answer.spread(way.name)), words.money(way.npv_usd), pays,
        words.use(pair) if pair else "",
    )  # fmt: skip


def _notes(answer: TcoAnswer) -> tuple[str, ...]:
    broken = [one for one in answer.checks if one.verdict == "broken"]
    apart = [one for one in answer.quotes if one.disagrees]
    assumed = [one.words for one in answer.factors if one.origin == "assumed" and one.low < one.high]
    return (
        *(f"{one.words}: {one.has}, but needs {one.needs}" + (f"; {one.why}" if one.why else "") for one in broken),
        *([_disagreeing(answer)] if apart else []),
        *_shared(answer),
        *([f"assumed, enter yours: {_some(assumed)} (--details inputs)"] if assumed else []),
        *([f"no fitting price in the catalog: {', '.join(answer.missing)}"] if answer.missing else []),
        *prices_note([one.as_of for one in answer.fixed.rents], answer.start),
    )  # fmt: skip


def _shared(answer: TcoAnswer) -> list[str]:
    """Ways whose smallest fitting instance holds more accelerators than are wanted."""
    wanted = answer.fixed.all_accelerators
    large = [one for one in answer.fixed.rents if not one.term_months and one.accelerators > wanted]
    if not large:
        return []
    named = ", ".join(f"{words.short(one.option)} of {one.accelerators:g}" for one in large)
    return [
        f"rented by the instance ({named} accelerators): the share of {wanted} is counted, others must use the rest"
    ]


def _some(names: list[str]) -> str:
    """The first of many names."""
    return ", ".join([*names[:_SOME], *(["..."] if len(names) > _SOME else [])])


def _disagreeing(answer: TcoAnswer) -> str:
    """How far published prices lie from those of the list."""
    apart = [one for one in answer.quotes if one.disagrees]
    low, high = min(one.ratio_low for one in apart), max(one.ratio_high for one in apart)
    return (
        f"{len(apart)} of {len(answer.quotes)} published prices disagree with the list: {low:.2g} to {high:.2g} "
        "times it (--details quotes)"
    )
