"""Waits for capacity, and the probability that it never comes: from waiting.csv and from the user.

    hours = lead + hours x accelerators / size,     P(never comes) = never_ratio x accelerators / size

size: the most accelerators that are obtainable, by the user or by obtainable.csv, whichever is more
(`largest_requests`), else that of the row. A lead time is for booking ahead and counts from planning, all else from the
start. An offer with a start hour (capacity blocks) begins at the first such hour after its lead time, not before the
start. Spot is not in the table: its wait follows from the records of its pool (`planner.spot.evidence`). Owned and
already committed machines are available at once; a new commitment is a price, not a machine.

The user's own requests (`constraints.waited`) update both. The ratio of a wait to the table's mean is modelled as
exponential, with a gamma prior of weight `requests` (waiting_prior.csv) on its rate. Requests that did not come are
censored at the time they waited. The number that never came is compared with the expected number in the same way.

The predictive distribution of a wait, exponential with a gamma distributed rate, is a Lomax distribution,
P(wait - lead > t) = (1 + t / (mean (shape - 1)))^-shape, with shape = `requests` + 1 + requests that came. A wait that
the user states, and one of a calendar, is taken as certain.
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
MOST_NEVER = 0.5  # cap of the probability, however large the cluster


@record(frozen=True)
class StartRule:
    """One row of waiting.csv; of several rows that match an offer, the first counts.

    Attributes:
        provider, accelerator: patterns.
        lead_hours: lead time at any size, from planning.
        hours: additional wait for the most obtainable accelerators (`accelerators`, where nothing bounds them);
            proportional to the number requested.
        never_ratio: probability that so many never come; proportional as well.
        start_utc: time of day at which it starts; None: any.
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
    """Lomax distributions of waits, in arrays that broadcast.

    Attributes:
        lead: certain part of the wait, hours.
        scale: of the rest, hours; 0: no spread.
        shape: of the rest, dimensionless.
    """

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
    """Waits for every offer; arrays of shape `(n_offers,)`.

    Attributes:
        lead: wait at any size, hours.
        each: mean additional wait per accelerator requested, hours.
        never_each: probability per accelerator requested that the request is never met.
        accelerators: per instance.
        never_flat: probability at any size that the request is never met.
        has_calendar: whether the wait depends on the start.
        shape: of the Lomax distribution of the additional wait.
        beside: instances of each offer that another run requests at the same time; None: none.
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
        """Quantile at `level` of the wait for `nodes` instances, hours, given that they come."""
        times = (1.0 - np.asarray(level)) ** (-1.0 / self.shape[rows]) - 1.0
        return np.asarray(self.lead[rows] + self._scale(rows, nodes) * times, dtype=np.float64)

    def kinds(self, rows: Ints, nodes: Ints | Floats) -> tuple[Floats, Floats, Floats]:
        """Parameters of the distribution of waits for `nodes` instances: lead, scale, shape; -1 where `rows` is -1."""
        none = rows < 0
        return (
            np.where(none, -1.0, self.lead[rows]), np.where(none, -1.0, self._scale(rows, nodes)),
            np.where(none, -1.0, self.shape[rows]),
        )  # fmt: skip

    def _scale(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        mean = self.each[rows] * self._asked(rows, nodes)
        return np.asarray(mean * (self.shape[rows] - 1.0), dtype=np.float64)

    def hours(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Expected hours from the request for `nodes` instances until they are available."""
        return np.asarray(self.lead[rows] + self.each[rows] * self._asked(rows, nodes), dtype=np.float64)

    def had(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Probability that a request for `nodes` instances is met at all."""
        never = self.never_flat[rows] + self.never_each[rows] * self._asked(rows, nodes)
        return np.asarray(1.0 - np.minimum(never, MOST_NEVER), dtype=np.float64)

    def _asked(self, rows: Ints, nodes: Ints | Floats) -> Floats:
        """Accelerators requested at once, those of the run beside included."""
        more = 0.0 if self.beside is None else self.beside[rows]
        return np.asarray(self.accelerators[rows] * (nodes + more), dtype=np.float64)


def usually_had(provider: str, purchase_option: str, accelerator: str, accelerators: float) -> float:
    """Probability that a request for so many accelerators is met, by waiting.csv and obtainable.csv alone."""
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
    """Waits for every offer, for a job that requests capacity at `start` and books ahead when it is planned.

    Args:
        offer_set: what can be bought.
        start_waits: waits stated by the user; the last that matches an offer overrides waiting.csv.
        most: the largest request of each offer, infinite where capacity is firm, shape `(n_offers,)`.
        start: time from which capacity is requested.
        seen: the user's own requests.
        planned: time from which a lead counts; None, or later than `start`: `start`.
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
    """Posterior factors per offer, `(n_offers,)`: of the wait, of the probability of never; and requests that came."""
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
    """Read waiting_prior.csv: weights of the table, in numbers of requests."""
    return {row["name"]: float(row["value"]) for row in bundled_rows("waiting_prior.csv")}


def _until_hour(rule: StartRule, start: datetime, ahead: float) -> float:
    """Hours from `start` to the first hour of the day at which the rule lets a cluster begin, booked `ahead` hours."""
    assert rule.start_utc is not None
    earliest = start.astimezone(UTC) + timedelta(hours=max(rule.lead_hours - ahead, 0.0))
    begin = datetime.combine(earliest.date(), rule.start_utc, tzinfo=UTC)
    begin += timedelta(days=1) if begin < earliest else timedelta(0)
    return (begin - start).total_seconds() / 3600.0
