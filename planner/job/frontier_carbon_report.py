"""The cost/carbon frontier as a report: a row per point, with what a kilogram less costs."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.job.frontier import spread_out
from planner.plan.front_choices import in_brief
from planner.plan.words import beside_steps, enable_first, places_of, sentence
from planner.render import numbers, words
from planner.render.model import Answer, Chart, Column, Section, Value, facts, table_section, versioned
from planner.render.precision import dollars, known_places, rounded
from planner.render.screen import Row, Screen, has_room, on_screen, prices_note

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.job.frontier_carbon import CarbonFrontier, CarbonPoint
    from planner.plan.brief import Summary

_COLUMNS = (
    "operational_kgco2e", "energy_kwh", "cost_usd", "expected_hours", "provider", "region", "zone", "instance_type",
    "accelerator", "accelerators", "nodes", "purchase_option", "option_variant", "p_meet_deadline", "within_limit",
    "price_as_of", "flags",
)  # fmt: skip
_SHOWN = (
    Column("operational_kgco2e", "kgCO2e", "number"), Column("cost_usd", "cost", "usd_known"),
    Column("expected_hours", "done in", "hours"), Column("usd_per_kg", "per kg less", "usd_known"),
    Column("plan", "plan", "text"), Column("limit", "limit", "text"),
)  # fmt: skip
MOST_SHOWN = 10
_LIMIT_COLUMNS = 8  # of a screen, for whether a point keeps the workload's own limit
_HALF_WIDTH = 0.3  # of a cost whose interval is not worked out: that of a usual plan


def carbon_report(
    frontier: CarbonFrontier, shown: int | None = None, *, details: Collection[str] = ()
) -> Answer:
    """Build the answer.

    Args:
        frontier: all points, which the data formats and the chart hold.
        shown: most points that the table lists; None: as many as a screen has room for.
        details: keys of sections to show in place of the screen, or `all`.
    """
    rows = [_values(point) for point in frontier.points]
    values: dict[str, Any] = {
        "against": "carbon", "workload": frontier.workload, "workload_sha256": frontier.workload_sha256,
        "created_at": frontier.created_at, "start": frontier.start, "candidates": frontier.candidates,
        "unknown_candidates": frontier.unknown, "limit_kgco2e": frontier.limit_kgco2e, "searched": frontier.note,
        "catalog": [vars(source) for source in frontier.sources], "points": rows,
    }  # fmt: skip
    flat = [{**row, "flags": ";".join(row["flags"])} for row in rows]
    title = f"{frontier.workload}: no plan with known emissions meets every limit"
    if frontier.points:
        first, last = frontier.points[0].best, frontier.points[-1].best
        title = (
            f"{frontier.workload}: from {_kg(last)} at {numbers.usd(last.cost_usd)} "
            f"to {_kg(first)} at {numbers.usd(first.cost_usd)}"
        )
    table = _table(frontier, _listed(frontier, shown))
    whole = Answer(
        f"Cost by emissions of {frontier.workload}", title, (_METHOD,), (table, _proof(frontier)), versioned(values),
        _COLUMNS, flat, success=bool(frontier.points),
    )  # fmt: skip
    return on_screen(whole, _screen(frontier, table), details)


def _listed(frontier: CarbonFrontier, most: int | None) -> list[int]:
    """The points that tell the most."""
    places = [(point.best.operational_kgco2e or 0.0, float(point.best.cost_usd)) for point in frontier.points]
    if most is not None:
        return spread_out(places, most)
    beside = _LIMIT_COLUMNS if frontier.limit_kgco2e is not None else 0
    for count in range(MOST_SHOWN, 2, -1):
        kept = spread_out(places, count)
        if has_room((in_brief(frontier.points[at].best) for at in kept), beside):
            return kept
    return spread_out(places, 2)


_METHOD = (
    "Each row is the cheapest plan that `optimize` finds with its kgCO2e as constraints.max_kgco2e: expected emissions "
    "of the electricity, yearly means by location. Grids differ in basis and year (docs/carbon.md)."
)


def _values(point: CarbonPoint) -> dict[str, Any]:
    best = point.best
    own: dict[str, Any] = {
        "expected_hours": best.hours,
        "within_limit": point.within_limit,
        "p_meet_deadline": point.p_meet_deadline,
    }
    own |= {"parts": [vars(part) for part in best.parts]}
    return own | {name: getattr(best, name) for name in _COLUMNS if name not in own}


def _kg(best: Summary) -> str:
    return f"{numbers.number(_two_digits(best.operational_kgco2e) or 0.0)} kgCO2e"


def _table(frontier: CarbonFrontier, at: Sequence[int]) -> Section:
    """The points shown, each with what a kilogram less costs from the next cheaper one shown."""
    rows: list[tuple[Value, ...]] = []
    emitted = _digits_apart([frontier.points[number].best.operational_kgco2e for number in at])
    for place, number in enumerate(at):
        point = frontier.points[number]
        price: Value = ""
        if place + 1 < len(at):
            other = frontier.points[at[place + 1]].best
            less = (other.operational_kgco2e or 0.0) - (point.best.operational_kgco2e or 0.0)
            price = _in_digits((point.best.cost_usd - other.cost_usd) / Decimal(repr(less)))
        kept = {None: "", True: "kept", False: "above"}[point.within_limit]
        rows.append(
            (
                emitted[place], _in_digits(point.best.cost_usd), point.best.hours, price,
                in_brief(point.best), kept,
            )
        )  # fmt: skip
    left = len(frontier.points) - len(at)
    notes = (
        (f"{left} {'point' if left == 1 else 'points'} between not shown; -o csv lists all",) if left else ()
    )
    return table_section("by_emissions", "Cost by emissions", _SHOWN, rows, notes, charts=_chart(frontier))


def _two_digits(kg: float | None) -> float | None:
    """Emissions as well as grids are known."""
    return None if kg is None else float(f"{kg:.2g}")


def _digits_apart(values: Sequence[float | None]) -> list[float | None]:
    """Emissions in the two digits that are known, or in three where two do not set them apart."""
    known = {kg for kg in values if kg is not None}
    digits = 2 if len({f"{kg:.2g}" for kg in known}) == len(known) else 3
    return [None if kg is None else float(f"{kg:.{digits}g}") for kg in values]


def _in_digits(usd: Decimal) -> Decimal:
    """A cost in the digits of a usual plan's interval."""
    return rounded(usd, min(known_places(float(usd), abs(float(usd)) * _HALF_WIDTH), 2)) if usd else usd


def _usd(usd: Decimal) -> str:
    return dollars(usd, min(known_places(float(usd), float(usd) * _HALF_WIDTH), 2))


def _chart(frontier: CarbonFrontier) -> tuple[Chart, ...]:
    if len(frontier.points) < 2:
        return ()
    best = [point.best for point in frontier.points]
    labels = tuple(words.cluster(one.nodes, one.instance_type) for one in best)
    series = (
        ("x", tuple(one.operational_kgco2e or 0.0 for one in best)),
        ("cost", tuple(float(one.cost_usd) for one in best)),
    )
    alt = f"Cost falls from {numbers.usd(best[0].cost_usd)} to {numbers.usd(best[-1].cost_usd)} as more may be emitted."
    return (
        Chart(
            "cost_by_emissions",
            "",
            "steps",
            labels,
            series,
            "usd",
            alt,
            drawn_only=True,
            axis="limit, kgCO2e",
        ),
    )


def _proof(frontier: CarbonFrontier) -> Section:
    method = (
        "exact: no candidate with known emissions is better in both; those not evaluated are worse by bounds"
    )
    return facts(
        "proof",
        "Proof",
        [
            ("method", "method", "exact", "text", method),
            (
                "candidates",
                "candidates",
                frontier.candidates,
                "count",
                f"{frontier.candidates:,} feasible, emissions known",
            ),
            (
                "unknown",
                "unknown",
                frontier.unknown,
                "count",
                f"{frontier.unknown:,} feasible with unknown emissions, excluded",
            ),
            ("searched", "searched", frontier.note, "text", frontier.note),
        ],
        detail=True,
    )


def _screen(frontier: CarbonFrontier, table: Section) -> Screen:
    asked = f"{frontier.workload}: the cheapest plan for every limit on emissions, within all other limits"
    if not frontier.points:
        helps = "`planner optimize` shows which limits exclude the candidates"
        rows: list[Row] = [
            ("plan", "plan", "none", "text", "none"),
            ("change", "instead", helps, "text", helps),
        ]
        return Screen(asked, rows, None, (), "No candidate of known emissions is left.", ("optimize FILE",))
    fair = min(
        frontier.points, key=lambda one: float(one.best.cost_usd) * (one.best.operational_kgco2e or 0.0)
    )
    named = (("cheapest", frontier.points[-1]), ("best trade", fair), ("least carbon", frontier.points[0]))
    rows = [
        (
            name.replace(" ", "_"),
            name,
            point.best.cost_usd,
            "usd",
            f"{_usd(point.best.cost_usd)}, {_kg(point.best)}: {in_brief(point.best)}",
        )
        for name, point in named
    ]
    proof = (
        f"Exact: none of {frontier.candidates:,} feasible candidates of known emissions is better than a point in "
        f"both. Without taxes and support plans. {sentence(beside_steps(frontier.beside_steps_ratio))}"
    ).rstrip()
    limit = fair.best.operational_kgco2e or 0.0
    steps = (f"optimize FILE --set constraints.max_kgco2e={limit * 1.001:.4g}", "compare FILE --over region")
    return Screen(asked, rows, table, _notes(frontier), proof, steps)


def _notes(frontier: CarbonFrontier) -> tuple[str, ...]:
    today = datetime.fromisoformat(frontier.created_at).date() if frontier.created_at else None
    dates = [point.best.price_as_of for point in frontier.points]
    out = [
        "kgCO2e: expected, of the electricity; yearly means by location, of several bases (docs/carbon.md)"
    ]
    if frontier.cheaper_unknown is not None:
        other = frontier.cheaper_unknown
        out.append(f"cheaper, with unknown emissions: {numbers.usd(other.cost_usd)}, {in_brief(other)}")
    elif frontier.unknown:
        out.append(f"{frontier.unknown:,} feasible candidates with unknown emissions are excluded")
    if frontier.limit_kgco2e is not None:
        out.append(
            f"your limit of {frontier.limit_kgco2e:g} kgCO2e is not applied here; all other limits are"
        )
    out += enable_first(places_of(point.best for point in frontier.points))
    return (*out, *(prices_note(dates, today) if today is not None else ()))
