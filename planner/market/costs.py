"""What a candidate costs: compute, upfront parts, system disk, data and checkpoint storage, data transfer.

`CostModel.evaluate` prices all candidates at once in floats; `CostModel.lines` prices one of them in Decimal from the
same rounded quantities. Transfer amounts depend on the place only: their tiers are split once per place
(`planner.market.moved_data`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.market.ends import after_end, hours_after, owned_hours, prolonged_hours
from planner.market.moved_data import Transfer, copies, moves_of
from planner.market.place_prices import tags_of
from planner.market.pricing import (
    HOURS_PER_MONTH,
    QUANTUM,
    PriceTag,
    billed_hours,
    exact,
    price_line,
)
from planner.plan.ids import CostId
from planner.plan.labels import cost_label
from planner.plan.model import CostLine
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from catalogs.tariffs import Tariffs
    from planner.asked.job import Job
    from planner.market.ends import Spread
    from planner.market.offers import OfferSet
    from planner.market.storage.stores import Stored


@record(frozen=True, eq=False)
class Money:
    """Costs per candidate and the rounded quantities behind them, shape `(n,)`.

    `worker_usd` is compute with its disk; `kept_usd` what the place costs once (storage, transfer); `cost_usd` both.
    """

    billed_hours: Floats
    instance_hours: Floats
    dataset_gib_months: Floats
    checkpoint_gib_months: Floats
    worker_usd: Floats
    kept_usd: Floats
    cost_usd: Floats
    cash_usd: Floats


@record(frozen=True, eq=False)
class Place:
    """Tariffs of one provider/region for this job."""

    storage: PriceTag
    transfers: tuple[Transfer, ...]
    disk: PriceTag | None


class CostModel:
    """Prices candidates of one job on one offer set."""

    def __init__(
        self, offer_set: OfferSet, job: Job, tariffs: Tariffs, commitment_share: float | None
    ) -> None:
        """Index the places of the offers; tariffs are looked up once per place.

        Args:
            offer_set: what can be bought.
            job: data and checkpoint sizes.
            tariffs: transfer and storage prices.
            commitment_share: part of a new whole-term commitment that this job carries; None = all of it.
        """
        self._offers = offer_set
        self._job = job
        self._tariffs = tariffs
        self._place_of_offer, keys = offer_set.offers.distinct_keys("provider", "region")
        self._tags = offer_set.once(("tags", tariffs, job.on), lambda: tags_of(tariffs, keys, job.on))
        self._moves = moves_of(offer_set, job, tariffs)
        self._copy = np.asarray(self._moves.is_staged & (not job.stream), dtype=np.bool_)
        self._separate = offer_set.once("separate_disk", lambda: separate_disk(offer_set))
        whole = np.asarray([rule.whole_term for rule in offer_set.rules])[offer_set.rule_of_offer]
        new_share = 1.0 if commitment_share is None else commitment_share
        share = np.where(whole, new_share, 1.0)
        self._share = np.where(np.isnan(offer_set.owned_share), share, offer_set.owned_share)
        self._due_per_hour = offer_set.usd_per_hour.copy()  # nothing falls due for a machine that is paid
        for row, cost in offer_set.own_costs.items():
            self._due_per_hour[row] = float(cost.marginal_usd_per_hour)
        self._after = offer_set.once("after_end", lambda: after_end(offer_set))
        self._cash_share = np.where(np.isnan(offer_set.owned_share), 1.0, offer_set.owned_share)

    def place(self, row: int) -> Place:
        """Return the tariffs of the place of offer `row`."""
        at = int(self._place_of_offer[row])
        return Place(self._tags.storage[at], self._moves.transfers[at], self._tags.disk[at])

    @property
    def least_usd_per_hour(self) -> Floats:
        """Least that an instance-hour may cost the job, USD, 0 where it is paid already, shape `(n_offers,)`."""
        return self._offers.least_usd_per_hour * self._share

    def moved_usd(self, rows: Ints) -> Floats:
        """What moving data into and out of the places of offers costs, whatever the size and the hours of the run."""
        return np.asarray(self._moves.usd[self._place_of_offer[rows]], dtype=np.float64)

    def evaluate(
        self,
        rows: Ints,
        nodes: Ints,
        paid_hours: Floats,
        hours: Floats,
        *,
        expected: bool = False,
        spread: Spread | None = None,
        stored: Stored | None = None,
        run_hours: Floats | None = None,
    ) -> Money:
        """Price candidates.

        Args:
            rows: offer of each candidate, shape `(n,)`.
            nodes: instances.
            paid_hours: hours in use per instance.
            hours: elapsed hours, over which data and checkpoints are kept.
            expected: `paid_hours` are means over runs that differ: billed as they are, as rounding up a mean says
                nothing of any run.
            spread: of `paid_hours`; with it, what ends before a slow run does pays its expected overrun.
            stored: where nodes read the data from; None: their place costs nothing more.
            run_hours: from the start to the end of the run, in whose middle prices are expected; None: at the start.
        """
        billed = _rounded(paid_hours) if expected else self._billed(rows, paid_hours)
        if spread is not None:
            billed = billed + self._prolonged(rows, paid_hours - spread.fixed_hours, spread)
        place = self._place_of_offer.take(rows)
        share = self._share.take(rows)
        instance_hours = _rounded(np.where(share > 0, nodes * billed, 0.0) * share)
        dataset = self._copy_gib_months(place, hours)
        checkpoint = self._checkpoint_gib_months(hours)
        grown = np.ones(len(rows)) if run_hours is None else self._offers.book.growth(rows, run_hours)
        upfront = self._offers.upfront_usd.take(rows) * nodes
        after_hours = self.after_hours(rows, nodes, paid_hours, hours, spread)
        after_usd = self.after_usd(rows, after_hours, run_hours)
        compute = self._offers.usd_per_hour.take(rows) * grown * instance_hours + upfront * share
        disk = self._disk_usd(rows, instance_hours)
        kept = (dataset + checkpoint) * self._tags.storage_usd.take(place) + self._moves.usd.take(place)
        if stored is not None:
            kept = kept + stored.cost(hours)
        owed = self._cash_share.take(rows)
        cash = (
            np.where(owed > 0, self._due_per_hour.take(rows) * grown * nodes * billed + upfront, 0.0) * owed
            + after_usd
            + disk
            + kept
        )
        cost = compute + disk + after_usd
        return Money(billed, instance_hours, dataset, checkpoint, cost, kept, cost + kept, cash)

    def _billed(self, rows: Ints, paid_hours: Floats) -> Floats:
        rule_of = self._offers.rule_of_offer.take(rows)
        term = self._offers.offers["term_hours"][rows].astype(np.float64)
        out = np.empty(len(rows))
        for code in np.flatnonzero(np.bincount(rule_of)).tolist():
            at, rule = np.flatnonzero(rule_of == code), self._offers.rules[code]
            terms = np.where(np.isnan(term[at]), rule.min_term_hours or np.nan, term[at])
            out[at] = billed_hours(rule, paid_hours[at], terms)
        return out

    def _prolonged(self, rows: Ints, work: Floats, spread: Spread) -> Floats:
        """Hours by which blocks are prolonged in the mean, 0 for all else, shape `(n,)`."""
        rule_of, out = self._offers.rule_of_offer[rows], np.zeros(len(rows))
        for code in np.flatnonzero(np.bincount(rule_of)).tolist():
            rule = self._offers.rules[code]
            if len(rule.block_hours):
                at = np.flatnonzero(rule_of == code)
                out[at] = prolonged_hours(rule, work[at], spread.take(at))
        return out

    def after_hours(
        self, rows: Ints, nodes: Ints, paid_hours: Floats, hours: Floats, spread: Spread | None
    ) -> Floats:
        """Expected instance-hours after the end of what the user pays, shape `(n,)`; arguments as of `evaluate`."""
        out = np.zeros(len(rows))
        if spread is None or not self._offers.own_ends:
            return out
        at = np.flatnonzero(self._after[rows] >= 0)
        some, paid = spread.take(at), paid_hours[at]
        left = owned_hours(self._offers, rows[at], spread.start) - (hours[at] - paid)
        more = hours_after(left, paid - some.fixed_hours, some.fixed_hours, some.work_log_sd)
        out[at] = _rounded(nodes[at] * more)
        return out

    def goes_on(self, rows: Ints) -> Bools:
        """Whether what the user pays ends, and runs then go on at a known price, shape of `rows`."""
        return np.asarray(self._after[rows] >= 0, dtype=np.bool_)

    def after_usd(self, rows: Ints, after_hours: Floats, run_hours: Floats | None) -> Floats:
        """What the instance-hours after an end cost, with their disks, USD, shape `(n,)`."""
        usd, at = np.zeros(len(rows)), np.flatnonzero(after_hours)
        if len(at):
            run = np.zeros(len(at)) if run_hours is None else run_hours[at]
            usd[at] = after_hours[at] * self._offers.usd_during(self._after[rows[at]], run)
            usd[at] += self._disk_usd(rows[at], after_hours[at])
        return usd

    def _disk_usd(self, rows: Ints, instance_hours: Floats) -> Floats:
        """What default system disks cost that are billed beside their instances, USD, shape `(n,)`."""
        # an option that cannot hold the job is billed for infinite hours: 0 x inf is not a number, so mask first
        has_disk = self._separate.take(rows) & np.isfinite(instance_hours)
        each = np.where(has_disk, self._tags.disk_usd.take(self._place_of_offer.take(rows)), 0.0)
        return np.asarray(each * np.where(has_disk, instance_hours, 0.0), dtype=np.float64)

    def lines(
        self,
        row: int,
        instance_hours: float,
        dataset: float,
        checkpoint: float,
        nodes: int,
        *,
        with_place: bool = True,
        run_hours: float = 0.0,
        after_hours: float = 0.0,
    ) -> list[CostLine]:
        """Return the cost lines of one candidate; their sum equals its `cost_usd` to float rounding.

        `run_hours`: from the start to the end of the run, as in `evaluate`; 0: prices of the start. `after_hours`: as
        the method of that name says.
        """
        offers, place, tag = self._offers, self.place(row), self._tag(row, run_hours)
        option = str(offers.offers["purchase_option"][row])
        out = [
            price_line(
                CostId.COMPUTE,
                f"{offers.offers['instance_type'][row]} {option}",
                instance_hours,
                "instance-hour",
                tag,
            )
        ]
        if after_hours:
            label = f"{offers.offers['instance_type'][row]} after the commitment ends"
            after = self._tag(int(self._after[row]), run_hours)
            out.append(price_line(CostId.AFTER_END, label, after_hours, "instance-hour", after))
        upfront = str(offers.offers["upfront_per_instance"][row])
        if upfront and Decimal(upfront):
            part = exact(nodes) * exact(float(self._share[row]))
            up = PriceTag(
                Decimal(upfront), tag.currency, tag.usd_per_currency, tag.basis, tag.source, tag.as_of
            )
            out.append(price_line(CostId.UPFRONT, f"{option} upfront", part, "instance", up))
        if self._separate[row] and place.disk is not None:
            hours = instance_hours + after_hours
            out.append(
                price_line(CostId.SYSTEM_DISK, "default system disk", hours, "instance-hour", place.disk)
            )
        return [*out, *self.place_lines(row, dataset, checkpoint)] if with_place else out

    def _tag(self, row: int, run_hours: float) -> PriceTag:
        """Price of an instance-hour of an offer in the middle of a run, with its source."""
        offers = self._offers
        fx = offers.rates[int(offers.rate_of_offer[row])]
        basis, source, as_of = (str(offers.offers[name][row]) for name in ("basis", "source", "as_of"))
        flags = tuple(flag for flag in str(offers.offers["flags"][row]).split(";") if flag)
        return PriceTag(
            offers.price_during(row, run_hours), fx.currency, fx.rate, basis, source, as_of, flags
        )

    def copy_usd(self, rows: Ints, hours: Floats) -> Floats:
        """What a further region of one job costs: the data set brought there and kept, USD, shape `(n,)`.

        Args:
            rows: an offer of the region, shape `(n,)`.
            hours: elapsed hours.
        """
        place = self._place_of_offer[rows]
        usd: Floats = (
            self._copy_gib_months(place, hours) * self._tags.storage_usd[place]
            + self._moves.copied_usd[place]
        )
        return usd

    def copy_lines(self, row: int, hours: float) -> list[CostLine]:
        """The lines of `copy_usd` for one candidate."""
        place = self.place(row)
        months, out = self.gib_months(row, hours)[0], []
        if months:
            out.append(
                price_line(
                    CostId.DATASET_STORAGE,
                    self._label(CostId.DATASET_STORAGE),
                    months,
                    "GiB-month",
                    place.storage,
                )
            )
        return [*out, *(part.line() for part in copies(place.transfers))]

    def _copy_gib_months(self, place: Ints, hours: Floats) -> Floats:
        return _rounded(
            np.where(self._copy.take(place), self._job.data_gib or 0.0, 0.0) * (hours / HOURS_PER_MONTH)
        )

    def _checkpoint_gib_months(self, hours: Floats) -> Floats:
        return _rounded(self._job.checkpoint_gib * self._job.checkpoints_kept * (hours / HOURS_PER_MONTH))

    def gib_months(self, row: int, hours: float) -> tuple[float, float]:
        """Of the data set and of checkpoints that one run keeps at the place of offer `row` for so many hours."""
        place, elapsed = np.asarray([self._place_of_offer[row]]), np.asarray([hours])
        return float(self._copy_gib_months(place, elapsed)[0]), float(self._checkpoint_gib_months(elapsed)[0])

    def place_lines(self, row: int, dataset: float, checkpoint: float) -> list[CostLine]:
        """Return what the place of offer `row` costs once: storage and transfers."""
        place, out = self.place(row), []
        if dataset:
            out.append(
                price_line(
                    CostId.DATASET_STORAGE,
                    self._label(CostId.DATASET_STORAGE),
                    dataset,
                    "GiB-month",
                    place.storage,
                )
            )
        if checkpoint:
            label = f"{self._job.checkpoints_kept} {self._label(CostId.CHECKPOINT_STORAGE)}"
            out.append(price_line(CostId.CHECKPOINT_STORAGE, label, checkpoint, "GiB-month", place.storage))
        return [*out, *(part.line() for part in place.transfers)]

    def _label(self, cost_id: CostId) -> str:
        return cost_label(cost_id, inference=self._job.is_inference)


def _rounded(quantity: Floats) -> Floats:
    return np.asarray(np.round(quantity, QUANTUM), dtype=np.float64)


def separate_disk(offer_set: OfferSet) -> Bools:
    """Mask of offers whose default system disk is billed beside the instance price, shape `(n_offers,)`."""
    flags = offer_set.offers.coded("flags")
    hit = np.asarray(["system_disk_separate" in text.split(";") for text in flags.values])
    return np.asarray(hit[flags.codes], dtype=np.bool_)
