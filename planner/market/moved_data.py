"""What a job moves between places and what that costs: its data in, its model out, split into tiers once per place."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.market.place_prices import USD, curves_of
from planner.market.pricing import PriceTag, exact, price_line
from planner.plan.ids import CostId
from planner.plan.labels import cost_label
from planner.plan.model import CostLine
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools, Floats
    from catalogs.tariffs import Tariffs, TierCurve
    from planner.asked.job import Job
    from planner.market.offers import OfferSet


@record(frozen=True)
class Transfer:
    """One tier of one transfer: `quantity` in the curve's unit at `unit_price` USD."""

    cost_id: CostId
    label: str
    quantity: Decimal
    unit_price: Decimal
    curve: TierCurve
    known: bool

    def line(self) -> CostLine:
        """Return the exact cost line."""
        basis, flags = ("list", ()) if self.known else ("derived", ("unknown_transfer_price",))
        tag = PriceTag(self.unit_price, "USD", USD, basis, self.curve.source, self.curve.as_of, flags)
        return price_line(self.cost_id, self.label, self.quantity, self.curve.unit, tag)


@record(frozen=True, eq=False)
class Moves:
    """Transfers of a job by place, in the order of `offers.distinct_keys("provider", "region")`.

    Attributes:
        transfers: tiers of each place.
        usd: their cost, shape `(n_places,)`.
        is_staged: whether the data lie elsewhere, shape `(n_places,)`.
    """

    transfers: tuple[tuple[Transfer, ...], ...]
    usd: Floats
    is_staged: Bools

    @cached_property
    def copied_usd(self) -> Floats:
        """What bringing the data to each place costs, USD, shape `(n_places,)`."""
        known = {id(transfers): _usd_of(copies(transfers)) for transfers in self.transfers}
        return np.asarray([known[id(transfers)] for transfers in self.transfers], dtype=np.float64)


def moves_of(offer_set: OfferSet, job: Job, tariffs: Tariffs) -> Moves:
    """What `job` moves to and from the places of offers: worked out once for all jobs that move the same."""
    asked = (
        job.location, job.data_gb, job.read_gb, job.stream, job.egress_used_gb, job.export_gb, job.is_inference
    )  # fmt: skip
    return offer_set.once(("moves", tariffs, *asked), lambda: _moves(offer_set, job, tariffs))


def copies(transfers: Sequence[Transfer]) -> list[Transfer]:
    """Transfers that every region of a job needs: the data into it, not the one model out of it."""
    return [part for part in transfers if part.cost_id != CostId.MODEL_EXPORT]


def _moves(offer_set: OfferSet, job: Job, tariffs: Tariffs) -> Moves:
    _, keys = offer_set.offers.distinct_keys("provider", "region")
    curves = offer_set.once(("curves", tariffs, job.location), lambda: curves_of(tariffs, job.location, keys))
    staged = [bool(job.data_gb) and job.location != f"{provider}/{region}" for provider, region in keys]
    tiers = _Tiers(job, tariffs)
    known: dict[tuple[int, int, bool], tuple[tuple[Transfer, ...], float]] = {}
    moves = []
    for (into, out), moved_in in zip(curves, staged, strict=True):  # many places share their curves
        alike = id(into), id(out), moved_in
        if alike not in known:
            transfers = tiers.transfers(into if moved_in else None, out, staged=moved_in)
            known[alike] = transfers, _usd_of(transfers)
        moves.append(known[alike])
    usd = np.asarray([cost for _, cost in moves], dtype=np.float64)
    return Moves(tuple(transfers for transfers, _ in moves), usd, np.asarray(staged, dtype=np.bool_))


class _Tiers:
    """Splits transfers of a job into priced tiers; places that share a curve share the pieces."""

    def __init__(self, job: Job, tariffs: Tariffs) -> None:
        self._job, self._tariffs = job, tariffs
        self._known: dict[tuple[CostId, int], tuple[TierCurve, tuple[Transfer, ...]]] = {}

    def transfers(
        self, into: TierCurve | None, out: TierCurve | None, *, staged: bool
    ) -> tuple[Transfer, ...]:
        """What moves where data come by the curve `into`, if at all, and the model leaves by `out`; None: unknown."""
        job = self._job
        found: tuple[Transfer, ...] = ()
        if staged:
            moved = job.read_gb if job.stream else job.data_gb
            cost_id = CostId.DATASET_STREAM if job.stream else CostId.DATASET_TRANSFER
            found += self._split(cost_id, into, moved or 0.0, job.egress_used_gb)
        if job.export_gb:
            found += self._split(CostId.MODEL_EXPORT, out, job.export_gb, 0.0)
        return found

    def _split(
        self, cost_id: CostId, known: TierCurve | None, gb: float, used_gb: float
    ) -> tuple[Transfer, ...]:
        curve = self._tariffs.dearest_internet_curve() if known is None else known
        key = (cost_id, id(curve))
        if key not in self._known:
            pieces = curve.lines(curve.quantity(exact(gb)), curve.quantity(exact(used_gb)))
            label = cost_label(cost_id, inference=self._job.is_inference)
            transfers = tuple(
                Transfer(cost_id, label, exact(float(q)), price, curve, known is not None)
                for q, price in pieces
                if price
            )
            self._known[key] = curve, transfers  # kept, so that no other curve takes its number
        return self._known[key][1]


def _usd_of(transfers: Sequence[Transfer]) -> float:
    """Cost of transfers."""
    return sum(float(part.quantity) * float(part.unit_price) for part in transfers)
