"""A choice by expected cost and its worst outcomes, beside the choice by expected cost: the price of robustness."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.inputs.plain import section_of
from planner.normal import Z80
from planner.records import record
from planner.render.numbers import percent
from planner.render.precision import dollars, known_places

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.inputs.risk_schema import RiskAversion


FRESH = 2_000  # scenarios that no choice was made on
FRESH_SEED = 1_000_003  # added to the seed of the scenarios chosen on
MOST_PRICED = 600  # candidates worked out in scenarios: about 5 ms each on spot


@record(frozen=True)
class Terms:
    """What is minimised: (1 - weight) x expected cost + weight x mean of the worst `1 - level` of the scenarios."""

    level: float
    weight: float
    scenarios: int = 200
    seed: int = 1

    @classmethod
    def of(cls, risk_aversion: RiskAversion | None, level: float | None = None) -> Terms | None:
        """Terms of a file; a level given apart comes first.

        Args:
            risk_aversion: the file's.
            level: `--robust`.
        """
        if risk_aversion is None and level is None:
            return None
        base = section_of("RiskAversion") if risk_aversion is None else risk_aversion
        return cls(base.level if level is None else level, base.weight, base.scenarios, base.seed)

    @property
    def averse(self) -> bool:
        """Whether the worst outcomes can change the choice."""
        return self.weight > 0 and self.level > 0 and self.scenarios > 1

    def worst(self, usd: Floats) -> float:
        """Mean of the worst `1 - level` of equally likely outcomes, shape `(S,)`; that on the edge counts in part."""
        tail = len(usd) * (1.0 - self.level)
        share = np.clip(tail - np.arange(len(usd)), 0.0, 1.0)
        return float(-np.sort(-usd) @ share / tail)

    def half_width(self, usd: Floats) -> float:
        """Half of the 80 % interval of `worst` as an estimate of its expectation, from these draws, shape `(S,)`.

        The estimate is linear in the excess over the quantile (Rockafellar and Uryasev 2000), so its standard error
        is that of a mean: sd(max(usd - quantile, 0)) / (1 - level) / sqrt(S).
        """
        if len(usd) < 2:
            return 0.0
        excess = np.maximum(usd - np.quantile(usd, self.level), 0.0)
        return Z80 * float(excess.std(ddof=1)) / (1.0 - self.level) / math.sqrt(len(usd))


@record(frozen=True)
class Outcome:
    """What a choice costs, USD: expected, the mean of its worst scenarios, and what is minimised."""

    expected_usd: float
    worst_usd: float
    objective_usd: float

    @classmethod
    def of(cls, expected_usd: float, deviation: Floats, terms: Terms) -> Outcome:
        """Of a choice whose cost deviates from the expected one by `deviation`, shape `(S,)`."""
        worst = expected_usd + terms.worst(deviation)
        return cls(expected_usd, worst, (1.0 - terms.weight) * expected_usd + terms.weight * worst)

    def values(self) -> dict[str, float]:
        """As answers print it."""
        return {
            name: round(getattr(self, name), 6) for name in ("expected_usd", "worst_usd", "objective_usd")
        }


@record(frozen=True, eq=False)
class Robust:
    """The robust choice beside the plain one.

    Attributes:
        chosen, plain: both in the scenarios that the choice was made on; fresh_chosen, fresh_plain: in others.
        scenario_usd, plain_scenario_usd: cost of both in each scenario, shape `(S,)`.
        bound_usd: no choice of the candidates considered has a lower objective.
        considered: candidates considered; of: all that there are.
        changed: jobs or tasks that the two choices run in different ways.
        refused: the same of the choice of the scenarios, where it counted no less in fresh ones: the plain one stays.
        partial: whether candidates that a better choice may have were left aside: they are too many, or time was short.
    """

    terms: Terms
    chosen: Outcome
    plain: Outcome
    fresh_chosen: Outcome
    fresh_plain: Outcome
    scenario_usd: Floats
    plain_scenario_usd: Floats
    bound_usd: float
    considered: int
    of: int
    changed: int
    solver: str
    seconds: float
    refused: int = 0
    partial: bool = False

    @property
    def confirmed(self) -> bool:
        """Whether the choice counts less in fresh scenarios too, or is the plain one."""
        return not self.changed or self.fresh_chosen.objective_usd < self.fresh_plain.objective_usd

    def as_plain(self) -> Robust:
        """The plain choice in place of one that only these scenarios prefer."""
        return replace(
            self, chosen=self.plain, fresh_chosen=self.fresh_plain, scenario_usd=self.plain_scenario_usd,
            changed=0, refused=self.changed,
        )  # fmt: skip

    @property
    def gap(self) -> float:
        """(objective - bound) / objective."""
        objective = self.chosen.objective_usd
        return max(objective - self.bound_usd, 0.0) / objective if objective > 0 else 0.0

    def values(self) -> dict[str, Any]:
        """The machine form."""
        terms = self.terms
        return {
            "measure": "cvar", "level_ratio": terms.level, "weight_ratio": terms.weight, "scenarios": terms.scenarios,
            "seed": terms.seed, **self.chosen.values(),
            "bound_usd": round(min(self.bound_usd, self.chosen.objective_usd), 6), "gap_ratio": round(self.gap, 9),
            "plain": self.plain.values(),
            "price_usd": round(self.chosen.expected_usd - self.plain.expected_usd, 6),
            "relief_usd": round(self.plain.worst_usd - self.chosen.worst_usd, 6),
            "fresh": {
                "scenarios": FRESH, "seed": terms.seed + FRESH_SEED, "chosen": self.fresh_chosen.values(),
                "plain": self.fresh_plain.values(),
            },
            "changed": self.changed, "refused": self.refused, "considered": self.considered, "candidates": self.of,
            "solver": self.solver, "seconds": round(self.seconds, 3),
            # in ascending order: what follows from them does not depend on it, and any other order is a fault
            "scenario_usd": sorted(round(value, 6) for value in self.scenario_usd.tolist()),
            "plain_scenario_usd": sorted(round(value, 6) for value in self.plain_scenario_usd.tolist()),
        }  # fmt: skip

    def sentence(self, what: str, gap_asked: float) -> str:
        """What robustness costs and gives, for people.

        Args:
            what: what is chosen for: job or task.
            gap_asked: up to which gap the choice counts as the least.
        """
        worst = f"worst {percent(1.0 - self.terms.level, 0)}"
        half = max(self.terms.half_width(usd) for usd in (self.scenario_usd, self.plain_scenario_usd))
        mean = f"mean of the {worst}: {_known(self.chosen.worst_usd, half)}"
        if self.refused:
            ways = f"1 {what}" if self.refused == 1 else f"{self.refused:,} {what}s"
            return (
                f"{mean}; to run {ways} otherwise is better in these scenarios alone, not in {FRESH:,} fresh ones: the "
                "choice of least expected cost stays"
            )
        if not self.changed and (self.partial or not self._is_least(gap_asked)):
            return (
                f"{mean}; no better choice than that of least expected cost was found, but there may be one"
            )
        if not self.changed:
            return f"{mean}; the choice with the lowest expected cost is also the robust one"
        fresh = self.fresh_plain.worst_usd - self.fresh_chosen.worst_usd
        half_fresh = half * math.sqrt(self.terms.scenarios / FRESH)
        more = self.chosen.expected_usd - self.plain.expected_usd
        runs = f"1 {what} runs otherwise" if self.changed == 1 else f"{self.changed:,} {what}s run otherwise"
        change = f"{_known(abs(fresh), half_fresh)} {'less' if fresh >= 0 else 'more'}"
        return (
            f"{mean}, by expected cost alone {_known(self.plain.worst_usd, half)}; for "
            f"{_known(more, abs(more))} more expected, {runs}; "
            f"{change} in the {worst} of {FRESH:,} fresh scenarios"
        )

    def claim(self, gap_asked: float) -> str:
        """The claim below a screen.

        Args:
            gap_asked: up to which gap the choice counts as the least.
        """
        terms = self.terms
        of = f"{percent(1.0 - terms.weight, 0)} expected cost and {percent(terms.weight, 0)} worst outcomes"
        of += f" of the {self.considered:,} candidates considered"
        tail = f"over {terms.scenarios:,} scenarios. Without taxes and support plans."
        if self._is_least(gap_asked):
            return f"Least of {of}, proven to {percent(self.gap, 2)} {tail}"
        bound = max(self.bound_usd, 0.0)
        if self.chosen.objective_usd >= 2.0 * bound:
            return f"The least of {of} is not known {tail}"
        above = math.ceil((self.chosen.objective_usd / bound - 1.0) * 1000) / 1000
        return f"At most {percent(above, 1)} above the least of {of}, {tail}"

    def _is_least(self, gap_asked: float) -> bool:
        return self.gap <= gap_asked * (1 + 1e-6) + 1e-9

    def proof(self) -> str:
        """What is proven, for people."""
        return (
            f"{_usd(self.chosen.objective_usd)} is minimised over {self.terms.scenarios:,} scenarios, at most "
            f"{percent(self.gap, 2)} above the least of the {self.considered:,} candidates considered of {self.of:,}"
            f"{f' ({self.solver})' if self.solver else ''}"
        )


def _known(value: float, half_width: float) -> str:
    """An amount to the first digit that its half-width reaches; one that is smaller than it has a single digit."""
    exact = round(value, 2)
    places = known_places(exact, 10.0 * half_width)  # without the guard digit of screens
    return dollars(Decimal(repr(exact)), min(places, 0 if abs(value) >= 100 else 2))


def _usd(value: float) -> str:
    return dollars(Decimal(repr(round(value, 2))), 0 if abs(value) >= 100 else 2)
