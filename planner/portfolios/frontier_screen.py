"""The screen of `planner portfolio --frontier`: what less waiting costs, the ends, the best trade, and the points."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.plan.words import enable_first, sentence
from planner.render import numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, dollars_stated, figure, known_places, moment_known, rounded
from planner.render.screen import Row, Screen, prices_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    _Point = Mapping[str, Any]

_HALF_WIDTH = 0.3  # of a figure whose interval is not worked out: that of a usual plan
_MOST_ROWS = 9
_FAR = 1.0  # a gap from which nothing is proven of a point


def frontier_screen(
    values: Mapping[str, Any], dates: Iterable[str], *, half: float, budget: float | None, notes: Sequence[str],
    beside: str = "",
) -> Screen:  # fmt: skip
    """Return the screen.

    Args:
        values: the machine form of the frontier.
        dates: of the prices of the offers chosen.
        half: half of the interval of a cost, of the cost; 0: it is not known.
        budget: of the file, US dollars.
        notes: of the candidates.
        beside: what hours of trainings have beside their steps by default.
    """
    points = _distinct([point for point in values["points"] if point["cost_usd"] is not None])
    jobs = len(points[0]["jobs"]) if points else 0
    counted = "1 job" if jobs == 1 else f"{jobs:,} jobs"
    limit = "" if budget is None else f", budget {dollars_stated(Decimal(repr(budget)))}"
    asked = f"{values['name']}: the least delay of {counted} by cost{limit}"
    if not points:
        why = "none: no plan of all jobs was found"
        helps = "`planner portfolio` says which limits to relax"
        rows: list[Row] = [("plan", "plan", "none", "text", why), ("change", "instead", helps, "text", helps)]
        return Screen(asked.replace("0 jobs", "all jobs"), rows, None, notes, "", ("portfolio FILE",))
    form = _Form(values, half or _HALF_WIDTH)
    fair = min(points, key=lambda point: point["cost_usd"] * point["delay"])
    rows = [form.row("cheapest", "cheapest", points[0])]
    if len(points) > 1:
        rows += [
            form.row("fair", "best trade", fair),
            form.row("soonest", "soonest", points[-1]),
            form.price(points),
        ]
    following = (
        "portfolio FILE",
        f"portfolio FILE --frontier {len(values['points'])} -o json --out frontier.json",
        "verify frontier.json --workload FILE",
    )
    proof = f"{_proven(points)} {sentence(beside)}".rstrip()
    return Screen(asked, rows, form.table(_thin(points)), form.notes(dates, notes), proof, following)


def _distinct(points: Sequence[_Point]) -> list[_Point]:
    """Points of more money with the same plan are one."""
    out: list[_Point] = []
    for point in points:
        if not out or point["delay"] < out[-1]["delay"]:
            out.append(point)
    return out


def _thin(points: list[_Point]) -> list[_Point]:
    """As many points as a screen has room for, both ends among them."""
    if len(points) <= _MOST_ROWS:
        return points
    return [points[round(at * (len(points) - 1) / (_MOST_ROWS - 1))] for at in range(_MOST_ROWS)]


class _Form:
    """How figures of one frontier are written.

    Attributes:
        values: the machine form.
        half: half of the interval of a figure, of the figure.
        start: from when delay counts.
        weighted: whether delay is in US dollars, else in hours of jobs.
    """

    def __init__(self, values: Mapping[str, Any], half: float) -> None:
        """Keep what all figures share."""
        self.values, self.half = values, half
        self.start = datetime.fromisoformat(values["start"])
        self.weighted = values["delay_unit"] != "job-hours"
        self.count = len(_distinct([point for point in values["points"] if point["cost_usd"] is not None]))

    def row(self, key: str, label: str, point: _Point) -> Row:
        """A line of the verdict."""
        delay = f"{self._delay(point['delay'])} {'of delay' if self.weighted else 'job-hours to the end'}"
        text = f"{self._usd(point['cost_usd'])}: {delay}; the last job ends {self._end(point)}"
        return (key, label, point["cost_usd"], "usd", text)

    def price(self, points: Sequence[_Point]) -> Row:
        """What an hour less costs, from end to end."""
        first, last = points[0], points[-1]
        more = last["cost_usd"] - first["cost_usd"]
        hours = (first["mean_hours"] - last["mean_hours"]) * len(first["jobs"])
        if hours <= 0 or more <= 0:
            return ("more_usd", "in all", more, "usd", f"{self._usd(more)} more for the least delay")
        text = (
            f"{self._usd(more)} more lets a job end {numbers.hours(hours / len(first['jobs']))} h sooner on average: "
            f"{self._usd(more / hours)} an hour of a job"
        )
        return ("more_usd", "in all", more, "usd", text)

    def table(self, shown: Sequence[_Point]) -> Section:
        """The points."""
        columns = (
            Column("cost_usd", "cost", "usd_known"), Column("delay", "delay" if self.weighted else "job-hours", "text"),
            Column("delay_bound", "at least", "text"), Column("mean_hours", "mean h to end", "hours"),
            Column("end", "last ends", "text"), Column("owned", "on owned", "of"),
            Column("moved", "bought otherwise", "text"),
        )  # fmt: skip
        rows: list[tuple[Value, ...]] = []
        before: _Point | None = None
        for point in shown:
            jobs = point["jobs"]
            owned = sum(1 for job in jobs if job.get("owned"))
            bound = point["delay_bound"] if point["gap_ratio"] < _FAR else None
            rows.append(
                (
                    rounded(point["cost_usd"], self._places(point["cost_usd"])), self._delay(point["delay"]),
                    "no bound" if bound is None else self._delay(bound), point["mean_hours"], self._end(point),
                    (owned, len(jobs), ""), "" if before is None else _moved(before, point),
                )
            )  # fmt: skip
            before = point
        left = self.count - len(shown)
        notes = ["`bought otherwise`: jobs on other machines than in the row above"] if len(shown) > 1 else []
        if left:
            notes.append(f"{left} {'point' if left == 1 else 'points'} between not shown; -o csv lists all")
        return table_section("by_cost", "Delay by cost", columns, rows, notes)

    def notes(self, dates: Iterable[str], given: Sequence[str]) -> tuple[str, ...]:
        """What must be known before buying."""
        points = self.values["points"]
        today = date.fromisoformat(self.values["created_at"][:10])
        jobs = [job for point in points for job in point["jobs"]]
        spot = any(str(job.get("purchase_option", "")).startswith("spot") for job in jobs)
        missing = sum(1 for point in points if point["cost_usd"] is None)
        counted = (
            "delay is what waiting costs by `delay_usd_per_hour`, $1 an hour for a job without one"
            if self.weighted
            else "delay is hours from the start to the end, of all jobs together"
        )
        return (
            *([f"{missing} points have no plan yet: raise --time-limit"] if missing else ()),
            f"{counted}; costs are expected ones",
            "all jobs run, each as early as it can: `planner portfolio` may let some wait, and cost less",
            *given,
            *prices_note(dates, today),
            *(["spot needs automatic resume and checkpoints"] if spot else ()),
            *enable_first((job["provider"], job["region"]) for job in jobs if "region" in job),
            "quotas that neither the portfolio nor a job's file declares are not checked",
        )

    def _places(self, usd: float) -> int:
        return min(known_places(usd, usd * self.half), 0 if usd >= 100 else 2)

    def _usd(self, usd: float) -> str:
        return dollars(Decimal(repr(round(usd, 6))), self._places(usd))

    def _delay(self, delay: float) -> str:
        places = min(known_places(delay, delay * _HALF_WIDTH), 2)
        return dollars(delay, places) if self.weighted else figure(delay, places)

    def _end(self, point: _Point) -> str:
        last = max((job["end"] for job in point["jobs"] if "end" in job), default=self.values["start"])
        return moment_known(last, 1.0, self.start.year)


def _moved(before: _Point, point: _Point) -> str:
    names = ("nodes", "instance_type", "purchase_option", "provider", "region")
    moved = sum(
        any(one.get(name) != other.get(name) for name in names)
        for one, other in zip(before["jobs"], point["jobs"], strict=True)
    )
    return f"{moved:,} of {len(point['jobs']):,}"


def _proven(points: Sequence[_Point]) -> str:
    gaps = [point["gap_ratio"] for point in points]
    kind = "of the candidates gathered for these jobs"
    count = "The point is" if len(points) == 1 else f"Each of {len(points):,} points is"
    if any(point["status"] not in ("optimal", "feasible") for point in points) or not max(gaps) < _FAR:
        return f"{count} a plan that meets every limit; `gap_ratio` of -o csv states how close {kind}."
    above = math.ceil(max(gap / (1.0 - gap) for gap in gaps) * 1e4) / 1e4
    return (
        f"{count} at most {numbers.percent(above, 2)} above the least delay within its budget by the solver's bound, "
        f"{kind}. Without taxes and support plans."
    )
