"""When the run ends and what it costs by then: futures of speed, interruptions and prices from the present state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.normal import Z80
from planner.records import record
from planner.spot.zones import comes_given
from planner.tracking.model import Speed
from planner.tracking.renewal import SETBACK_SHAPE, Interruptions

if TYPE_CHECKING:
    from planner.tracking.planned import Planned

FUTURES = 4000
_MOST_SPELLS = 5000
_LONGEST_HOURS = 10.0 * 8766.0


@record(frozen=True, eq=False)
class Futures:
    """What may come, one entry per future.

    Attributes:
        hours: from now to the end; paid: hours in use among them; usd: cost from now on.
        on_demand: whether on-demand had to take over.
    """

    hours: Floats
    paid: Floats
    usd: Floats
    on_demand: np.ndarray[tuple[int], np.dtype[np.bool_]]


def draw_futures(
    planned: Planned, speed: Speed, interruptions: Interruptions, left_steps: float, *, hours_to_deadline: float | None,
    stalled_hours: float = 0.0, share_left: float = 1.0, n: int = FUTURES, seed: int = 1,
) -> Futures:  # fmt: skip
    """Draw futures.

    Args:
        planned: the plan.
        speed: seconds per step from now on.
        interruptions: interruptions so far, and their posterior.
        left_steps: still to do.
        hours_to_deadline: from now; None without a deadline.
        stalled_hours: for how long the run has stood still; 0: it goes on.
        share_left: of storage and transfer that is still to be paid.
        n: futures.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    step_s = speed.step_s * np.exp(speed.log_sd * rng.standard_normal(n) - 0.5 * speed.log_sd**2)
    work = left_steps * step_s / 3600.0 + (planned.final_hours if left_steps > 0 else 0.0)
    rates, scales = interruptions.draw(rng, n)
    run = _Run(planned, rng, work, rates, scales, hours_to_deadline)
    hours, paid, on_demand_hours = run.to_the_end(stalled_hours)
    price = _lognormal(rng, planned, n)
    usd = (paid - on_demand_hours) * price + on_demand_hours * (planned.fallback_usd_per_hour or 0.0)
    return Futures(hours, paid, usd + share_left * planned.other_usd, on_demand_hours > 0)


def _lognormal(rng: np.random.Generator, planned: Planned, n: int) -> Floats:
    """Prices per hour of the cluster, with the plan's price as their mean."""
    low, high = planned.usd_low, planned.usd_high
    sd = math.log(high / low) / (2.0 * Z80) if high > low > 0 else 0.0
    return np.asarray(planned.usd_per_hour * np.exp(sd * rng.standard_normal(n) - 0.5 * sd**2))


class _Run:
    """All futures, spell by spell together."""

    def __init__(
        self, planned: Planned, rng: np.random.Generator, work: Floats, rates: Floats, scales: Floats,
        deadline: float | None,
    ) -> None:  # fmt: skip
        self.planned, self.rng, self.work = planned, rng, work.copy()
        self.rates, self.scales = np.maximum(rates, 1e-12), scales
        self.hours, self.paid, self.waited = np.zeros((3, len(work)))
        self.falls_back = planned.fallback_usd_per_hour is not None and deadline is not None
        self.luck = rng.random(len(work))
        self.deadline = np.inf if deadline is None else deadline

    def to_the_end(self, stalled_hours: float) -> tuple[Floats, Floats, Floats]:
        """Hours to the end, paid hours, and those of them on-demand; a run stands still for what is left of that."""
        planned, n = self.planned, len(self.work)
        # from this time on on-demand must be asked for, so that what is left then is done in time
        guard = self.deadline - planned.fallback_hours - planned.paid_setback_ratio * planned.setback_hours
        # with on-demand from there on: hours, paid hours, those of them on-demand
        other, asked = np.zeros((3, n)), np.zeros(n, dtype=np.bool_)
        broken = np.full(n, stalled_hours > 0)
        if stalled_hours > 0:  # the longer a wait, the smaller the share of the restart in it
            self._set_back(
                broken, self._rest_of(stalled_hours), planned.paid_setback_ratio * planned.setback_hours
            )
        for _ in range(_MOST_SPELLS):
            # what stands still at the last moment that on-demand can help goes on there
            late = broken & ~asked & (self.hours + self.work >= guard)
            late &= self.falls_back & (self.hours - self.waited < self.deadline)
            waited = np.minimum(np.maximum(self.hours + self.work - guard, 0.0), self.waited)
            after = self.hours - waited + planned.fallback_hours + self.work
            other = np.where(late, [after, self.paid + self.work, self.work], other)
            asked |= late
            self.work = np.where(self.hours > _LONGEST_HOURS, 0.0, self.work)
            active = self.work > 0
            if not active.any():
                break
            spell = np.where(active, self.rng.standard_exponential(n) / self.rates, 0.0)
            ran = np.minimum(spell, self.work)
            self.hours, self.paid, self.work = self.hours + ran, self.paid + ran, self.work - ran
            broken = active & (self.work > 0)
            self._set_back(broken, self._setbacks())
        # spot went on alone in all; where on-demand was asked for and comes, it did from there on
        too_late = self.hours > self.deadline
        with_it = asked & (self.luck < comes_given(too_late, planned.had_ratio, planned.link_ratio))
        hours, paid, on_demand = np.where(with_it, other, [self.hours, self.paid, np.zeros(n)])
        return hours, paid, on_demand

    def _set_back(
        self, broken: np.ndarray[tuple[int], np.dtype[np.bool_]], hours: Floats, most_paid: float = np.inf
    ) -> None:
        """An interruption of so many hours: a setback of which a share is paid."""
        setback = np.where(broken, hours, 0.0)
        paid = np.minimum(self.planned.paid_setback_ratio * setback, most_paid)
        self.hours, self.paid, self.waited = self.hours + setback, self.paid + paid, setback - paid

    def _setbacks(self) -> Floats:
        """Hours of an interruption, one per future."""
        return np.asarray(self.scales * self.rng.standard_gamma(SETBACK_SHAPE, len(self.work)))

    def _rest_of(self, passed: float) -> Floats:
        """Hours that are left of setbacks of which so many have passed, one per future.

        The density of what is left is in proportion to (1 + left / passed)^(shape - 1) e^(-left / scale): exponential
        draws, kept with the chance of the first factor. The shape is below 1, so the longer a wait has lasted, the
        longer what is left of it.
        """
        left = np.zeros(len(self.work))
        at = np.arange(len(left))
        while len(at):
            drawn = self.scales[at] * self.rng.standard_exponential(len(at))
            kept = self.rng.random(len(at)) < (1.0 + drawn / passed) ** (SETBACK_SHAPE - 1.0)
            left[at[kept]] = drawn[kept]
            at = at[~kept]
        return left
