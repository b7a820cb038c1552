"""The screen of a serving fleet: what to run, what it costs an hour and a month, and on what that rests."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from catalogs.tariffs import load_tariffs
from planner.plan.words import enable_first
from planner.render import claims, numbers
from planner.render.model import Section
from planner.render.precision import dollars, known_places
from planner.render.screen import Row, Screen, prices_note
from planner.render.words import cluster

if TYPE_CHECKING:
    from planner.serving.answer import ServingAnswer

HOURS_PER_MONTH = 730
_FULL = 0.9  # of what a machine can do, from which the page warns of queues
NEXT = ("serving FILE -o json --out answer.json", "verify answer.json --workload FILE")


def serving_screen(answer: ServingAnswer, table: Section | None, why: str, advice: str) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        table: its machines; None where there is no fleet.
        why: there is none, where there is none.
        advice: what helps then.
    """
    buckets = {name for line in answer.lines for name in line.buckets}
    sizes = "1 size" if len(buckets) == 1 else f"{len(buckets)} sizes"
    title = f"{answer.name}: requests of {sizes}, {numbers.percent(answer.headroom_ratio, 0)} headroom"
    if not answer.lines:
        rows: list[Row] = [
            ("plan", "plan", "none", "text", why),
            ("change", "instead", advice, "text", advice),
        ]
        return Screen(f"{answer.name}: no fleet", rows, table, (), _proven(answer), NEXT[:1])
    rows = [_fleet(answer), _cost(answer), *_alone(answer), _load(answer)]
    return Screen(title, rows, table, _notes(answer), _proven(answer), NEXT)


def searched(answer: ServingAnswer) -> str:
    """The fleets that a proof is about."""
    return f"of those that the machines and speeds {'predicted' if answer.speeds else 'given'} allow"


def _usd(value: Decimal) -> str:
    return dollars(value, known_places(float(value), 0.0))


def _fleet(answer: ServingAnswer) -> Row:
    text = " + ".join(cluster(line.count, line.name) for line in answer.lines)
    return ("fleet", "plan", text, "text", text)


def _cost(answer: ServingAnswer) -> Row:
    total = answer.total_usd_per_hour
    assert total is not None
    text = f"{_usd(total)} per hour, {_usd(total * HOURS_PER_MONTH)} a month of {HOURS_PER_MONTH} h, all of it running"
    return ("cost_usd_per_hour", "cost", total, "usd", text)


def _alone(answer: ServingAnswer) -> list[Row]:
    if answer.single_kind is None:
        text = "no kind of machine can serve everything alone"
        return [("saved_ratio", "mixing", "", "text", text)]
    total, (name, cost) = answer.total_usd_per_hour, answer.single_kind
    assert total is not None
    saved = float((cost - total) / cost) if cost else 0.0
    text = f"saves {numbers.percent(saved, 0)}: {name} alone costs {_usd(cost)} per hour"
    return [("saved_ratio", "mixing", saved, "ratio", text)] if saved >= 5e-3 else []


def _load(answer: ServingAnswer) -> Row:
    busy = sorted(line.load_ratio for line in answer.lines)
    ends = dict.fromkeys(numbers.percent(ratio, 0) for ratio in (busy[0], busy[-1]))
    text = f"machines are {' to '.join(ends)} busy at the rates given"
    return ("load_ratio", "load", busy[-1], "ratio", text)


def _notes(answer: ServingAnswer) -> tuple[str, ...]:
    dates = [line.price.as_of for line in answer.lines]
    return (
        *(prices_note(dates, date.fromisoformat(answer.on)) if answer.on else ()),
        *_bought(answer),
        *enable_first((line.price.provider, line.price.region) for line in answer.lines),
        *_full(answer),
        "quotas and capacity are not checked: ask the provider for this many machines first",
        *(f"low confidence: {doubt}" for doubt in answer.doubts),
        _speeds(answer),
    )


def _bought(answer: ServingAnswer) -> tuple[str, ...]:
    """What follows from buying otherwise than on demand."""
    spot = ", ".join(line.name for line in answer.lines if line.price.option == "spot")
    tariffs = load_tariffs()
    owed = ", ".join(
        line.name
        for line in answer.lines
        if tariffs.option_rule(line.price.provider, line.price.option).is_owed
    )
    return (
        *(
            (f"{spot} on spot: may be taken away while it answers, and the cost holds no fall-back",)
            if spot
            else ()
        ),
        *((f"{owed}: the whole term is owed, used or not",) if owed else ()),
    )


def _full(answer: ServingAnswer) -> tuple[str, ...]:
    """That requests queue where machines have nothing to spare for bursts."""
    busiest = max((line.load_ratio for line in answer.lines), default=0.0)
    if answer.headroom_ratio > 0 or busiest < _FULL:
        return ()
    return (
        f"machines are up to {numbers.percent(busiest, 0)} busy on average: bursts wait in a queue; "
        "headroom_ratio: 0.15 keeps 15 % of each machine free",
    )


def _speeds(answer: ServingAnswer) -> str:
    """What is known of the speeds that the fleet rests on."""
    if answer.speeds:
        sure = numbers.percent(answer.confidence, 0)
        return f"speeds are predicted and reached with {sure} each; only a load test is conclusive (machines.measured)"
    return "no interval: speeds and request rates are used as given; only your load test is conclusive"


def _proven(answer: ServingAnswer) -> str:
    result = answer.result
    if not answer.lines:
        return f"Not proven: {result.status.value}." if result.status.value != "infeasible" else (
            f"No fleet {searched(answer)} carries the load."
        )  # fmt: skip
    best = claims.best_plan("Cheapest", result.status.value, result.gap, "feasible fleet")
    gap = answer.proven_gap
    how = "" if gap is None else f", proven to {numbers.percent(gap, 3)} (`planner verify` checks it)"
    return f"{best} {searched(answer)}{how}. Without taxes, support and traffic."
