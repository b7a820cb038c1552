"""How long capacity takes to come, and how often it never does: waiting.csv and the user's word.

    hours = lead + hours x accelerators / size,     P(it never comes) = never_ratio x accelerators / size

size: the most that asking brings (`planner.market.obtainable`, the user's word included), else that of the row.
A lead is that of booking ahead: it counts from the moment of planning, all else from the start. An offer with a start
hour (capacity blocks) begins at the first such hour after its lead, not before the start. Spot is not in the table: its
wait follows from the records of its pool (`planner.spot.evidence`). What is owned or already committed to is there at
once; a new commitment is a price, not a machine.

Requests that the user made (`constraints.waited`) tighten both. Waits over the mean that the table gives their size
are taken as exponential; their mean has a gamma prior with the weight of `requests` of waiting_prior.csv. Those that
did not come count as longer than they waited. How many never came is held against the number expected, likewise.

What a wait may come to follows from the same model: the mixture of exponential waits over the gamma distribution of
their rate is a Lomax distribution, P(wait - lead > t) = (1 + t / (mean (shape - 1)))^-shape with the shape
`requests` + 1 + requests that came. A wait that the user states, and one of a calendar, is what it is.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.naming import fits_name
from catalogs.patterns import matches
from planner.bundled import bundled_rows
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.inputs.schema import SeenWait, StartWait
    from planner.market.offers import OfferSet


ALREADY_OWNED = "already_owned"  # variant of a commitment that the workload has
MOST_NEVER = 0.5  # however large the cluster


@record(frozen=True)
class StartRule:
    """One row of waiting.csv; of several rows that match an offer, the first counts.

    Attributes:
        provider, accelerator: patterns.
        lead_hours: whatever the size, from when it is planned; hours: more for as many accelerators as asking brings
            (where nothing bounds them, `accelerators`), in proportion.
        never_ratio: probability that so many never come, in proportion too.
        start_utc: hour of the day at which it starts, None: any.
        basis: `assumed`, or `recorded` where a public record shows it.
    """

    provider: str
    purchase_option: str
    accelerator: str
    lead_hours: float
    hours: float
    accelerators: float
    never_ratio: float
    start_utc: time | None
    basis: str
    source: str
    as_of: str


@cache
def load_starts() -> tuple[StartRule, ...]:
    """Read waiting.csv in its order."""
    return tuple(
        StartRule(
            row["provider"], row["purchase_option"], row["accelerator"], float(row["lead_hours"]),
            float(row["hours"]), float(row["accelerators"]), float(row["never_ratio"]),
            time.fromisoformat(row["start_utc"]) if row["start_utc"] else None,
            row["basis"], row["source"], row["as_of"],
        )
        for row in bundled_rows("waiting.csv")
    )  # fmt: skip


@record(frozen=True, eq=False)
class Spread:
    """Lomax distributions of waits, arrays that broadcast: hours whatever the luck, scale in hours, and shape."""

    lead: Floats
    scale: Floats
    shape: Floats

    def within(self, hours: Floats) -> Floats:
        """Probability that capacity is there within `hours`."""
        over, scale = hours - self.lead, self.scale
        later = (1.0 + np.maximum(over, 0.0) / np.where(scale > 0, scale, 1.0)) ** -self.shape
        return np.where(scale > 0, 1.0 - later, np.where(over >= -1e-9, 1.0, 0.0))


@record(frozen=True, eq=False)
class Starts:
    """Waits of every offer, shape `(n_offers,)`: hours whatever the size, per accelerator, `shape` of their spread.

    `has_calendar`: whether a wait depends on the start. `beside`: machines of each offer that are asked for at the same
    time by another; None: of none.
    """

    lead: Floats
    each: Floats
    never_each: Floats
    accelerators: Floats
    never_flat: Floats
    has_calendar: Bools
    shape: Floats
    beside: Floats | None = None

    def has_spread(self, rows: Ints) -> Bools:
        """Whether a wait may be longer or shorter than its mean."""
        return np.asarray(self.each[rows] > 0, dtype=np.bool_)

    def within(self, rows: Ints, nodes: Ints | Floats, hours: Floats) -> Floats:
        """Probability that `nodes` instances are there within `hours`, given that they come."""
        return self.spread_of(rows, nodes).within(hours)

    def spread_of(self, rows: Ints, nodes: Ints | Floats) -> Spread:
        """How the waits for `nodes` instances of offers are distributed, given that they come."""
        return Spread(self.lead[rows], self._scale(rows, nodes), self.shape[rows])

    def at_level(self, rows: Ints, nodes: Ints | Floats, level: float | Floats) -> Floats:
        """Hours that waiting for `nodes` instances does not exceed with probability `level`, given that they come."""
        times = (1.0 - np.asarray(level)) ** (-1.0 / self.shape[rows]) - 1.0
        return np.asarray(self.lead[rows] + self._scale(rows, nodes) * times, dtype=np.float64)

    def kinds(self, rows: Ints, nodes: Ints | Floats) -> tuple[Floats, Floats, Floats]:
        """What the spread of waits for `nodes` instances follows from; -1 where `rows` is, of no offer."""
        none = rows < 0
        return (
            np.where(none, -1.0, self.lead[rows]), np.where(none, -1.0, self._scale(rows, nodes)),
            np.where(none, -1.0, self.shape[rows]),
        )  # fmt: skip

    def _scale(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        mean = self.each[rows] * self._asked(rows, nodes)
        return np.asarray(mean * (self.shape[rows] - 1.0), dtype=np.float64)

    def hours(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Hours from asking for `nodes` instances of offers to having them."""
        return np.asarray(self.lead[rows] + self.each[rows] * self._asked(rows, nodes), dtype=np.float64)

    def had(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Probability that they come at all."""
        never = self.never_flat[rows] + self.never_each[rows] * self._asked(rows, nodes)
        return np.asarray(1.0 - np.minimum(never, MOST_NEVER), dtype=np.float64)

    def _asked(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Accelerators that are asked for at once."""
        more = 0.0 if self.beside is None else self.beside[rows]
        return np.asarray(self.accelerators[rows] * (nodes + more), dtype=np.float64)


def usually_had(provider: str, purchase_option: str, accelerator: str, accelerators: float) -> float:
    """Probability that so many accelerators come when they are asked for, by waiting.csv and obtainable.csv alone."""
    from planner.market.obtainable import load_obtainable

    rule = next(
        (
            one
            for one in load_starts()
            if matches(one.provider, provider)
            and purchase_option == one.purchase_option
            and matches(one.accelerator, accelerator)
        ),
        None,
    )
    if rule is None:
        return 1.0
    most = (
        one.most_accelerators
        for one in load_obtainable()
        if one.purchase_option == purchase_option and matches(one.accelerator, accelerator)
    )
    return 1.0 - min(rule.never_ratio * accelerators / next(most, rule.accelerators), MOST_NEVER)


@lru_cache(maxsize=1024)
def _fitting(values: tuple[str, ...], pattern: str) -> Bools:
    """Mask of the texts that fit a pattern, with a last entry for no text, shape `(n_values + 1,)`."""
    mask = np.asarray([*(matches(pattern, value) for value in values), False], dtype=np.bool_)
    mask.setflags(write=False)
    return mask


@lru_cache(maxsize=1024)
def _fitting_kinds(values: tuple[str, ...], pattern: str) -> Bools:
    """Mask of the accelerators that a pattern or a plain word (`h100`) means, with a last entry for none."""
    mask = np.asarray([*(fits_name(pattern, value) for value in values), False], dtype=np.bool_)
    mask.setflags(write=False)
    return mask


def starts_of(
    offer_set: OfferSet,
    start_waits: Sequence[StartWait],
    most: Floats,
    start: datetime,
    seen: Sequence[SeenWait] = (),
    planned: datetime | None = None,
) -> Starts:
    """Waits of every offer for a job that starts to ask at `start`, and books ahead from when it is planned.

    Args:
        offer_set: what can be bought.
        start_waits: what the user knows; the last that matches an offer wins over waiting.csv.
        most: accelerators of each offer that asking brings, infinite where it is firm, shape `(n_offers,)`.
        start: moment from which capacity is asked for.
        seen: requests that the user made.
        planned: moment from which a lead counts; None, or later than `start`: `start`.
    """
    offers, count = offer_set.offers, offer_set.offers.n_rows
    names = offer_set.types.coded("accelerator")
    own = names.codes[offer_set.type_of_offer]

    def matching(provider: str, option: str, accelerator: str, region: str = "*") -> Bools:
        hit = np.ones(count, dtype=np.bool_)
        for column, pattern in (("provider", provider), ("purchase_option", option), ("region", region)):
            if pattern != "*":
                values = offers.coded(column)
                hit &= _fitting(values.values, pattern)[values.codes]
        return np.asarray(hit & _fitting_kinds(names.values, accelerator)[own], dtype=np.bool_)

    lead, each, never, flat = (np.zeros(count) for _ in range(4))
    calendar, booked = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    ahead = max((start - (planned or start)).total_seconds() / 3600.0, 0.0)
    for rule in reversed(load_starts()):
        mine = matching(rule.provider, rule.purchase_option, rule.accelerator)
        lead[mine] = rule.lead_hours if rule.start_utc is None else _until_hour(rule, start, ahead)
        size = np.where(np.isfinite(most[mine]), most[mine], rule.accelerators)
        each[mine], never[mine] = rule.hours / size, rule.never_ratio / size
        calendar[mine], booked[mine] = rule.start_utc is not None, rule.lead_hours > 0
    shape = np.full(count, 1.0 + load_prior()["requests"])
    held = offers.equals("option_variant", ALREADY_OWNED)
    lead[held], each[held], never[held] = 0.0, 0.0, 0.0
    if seen:
        masks = [
            matching(one.provider or "*", one.purchase_option, one.accelerator, one.region) for one in seen
        ]
        longer, oftener, came = _learnt(seen, masks, np.where(calendar, 0.0, lead), each, never)
        shape += came
        lead, each, never = np.where(calendar, lead, lead * longer), each * longer, never * oftener
    lead = np.where(calendar, lead, np.maximum(lead - ahead, 0.0))
    calendar |= booked & ~held
    for known in start_waits:
        mine = matching(known.provider or "*", known.purchase_option, known.accelerator, known.region)
        lead[mine], each[mine], never[mine], calendar[mine] = known.hours, 0.0, 0.0, False
        flat[mine] = known.never_ratio
    spot = offers.equals("purchase_option", "spot")
    lead[spot], each[spot], never[spot], flat[spot] = 0.0, 0.0, 0.0, 0.0
    count_of = np.asarray(offer_set.types["accelerator_count"][offer_set.type_of_offer], dtype=np.float64)
    return Starts(lead, each, never, np.nan_to_num(count_of, nan=1.0), flat, calendar, shape)


def _learnt(
    seen: Sequence[SeenWait], masks: Sequence[Bools], lead: Floats, each: Floats, never: Floats
) -> tuple[Floats, Floats, Floats]:
    """How much longer capacity takes, how much more often it never comes, and requests that came, by offer."""
    prior = load_prior()
    waited, came, missed, expected = (np.zeros(len(lead)) for _ in range(4))
    for one, mask in zip(seen, masks, strict=True):
        mean = lead + each * one.accelerators
        mine = mask & (mean > 0)  # what is there at once, and what a calendar sells, is not learnt
        waited[mine] += one.waited_hours / mean[mine]
        came[mine] += one.came
        missed[mine] += not one.came and one.waited_hours >= prior["never_after_hours"]
        expected[mine] += np.minimum(never[mine] * one.accelerators, MOST_NEVER)
    longer = (prior["requests"] + waited) / (prior["requests"] + came)
    return longer, (prior["nevers"] + missed) / (prior["nevers"] + expected), came


@cache
def load_prior() -> dict[str, float]:
    """Read waiting_prior.csv: what the table weighs against requests that were made."""
    return {row["name"]: float(row["value"]) for row in bundled_rows("waiting_prior.csv")}


def _until_hour(rule: StartRule, start: datetime, ahead: float) -> float:
    """Hours from `start` to the first hour of the day at which the rule lets a cluster begin, booked `ahead` hours."""
    assert rule.start_utc is not None
    earliest = start.astimezone(UTC) + timedelta(hours=max(rule.lead_hours - ahead, 0.0))
    begin = datetime.combine(earliest.date(), rule.start_utc, tzinfo=UTC)
    begin += timedelta(days=1) if begin < earliest else timedelta(0)
    return (begin - start).total_seconds() / 3600.0
