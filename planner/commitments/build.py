"""From question, prices and futures to the commitment model, and back from its columns to things that are bought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.commitments.begins import active_in, edges_of, in_years, parts_of, starts_of
from planner.commitments.caps import caps_of
from planner.commitments.model import CommitColumn, CommitModel, Hours
from planner.commitments.prices import HOURS_PER_YEAR, MICRO, PoolPrices, Term
from planner.commitments.scenarios import DECIMALS, Futures
from planner.errors import InputError
from planner.inputs.purchase_options import COMMIT_OPTIONS
from planner.records import record
from solvers.problem.errors import ModelError

if TYPE_CHECKING:
    from planner.inputs.commit_schema import CommitQuestion, Owned

SAME_RATIO = 1e-9  # rates of two plans that differ by a constant factor, to rounding
MOST_PLANS = 2


@record(frozen=True)
class Buyable:
    """What one column of the model stands for.

    Attributes:
        option: purchase option; `variant` its variant.
        provider: who sells it.
        serves: names of the pools it covers.
        unit: what one unit is: `instance`, `vCPU`, or `USD/h`.
        usd_per_hour: due per unit and hour of the term.
        upfront_usd: due at once per unit.
        begins: first day.
        expires: last day.
        source: of the price; `as_of` its date.
        now: whether it begins at the start; else it is planned for later, and not owed yet.
    """

    option: str
    variant: str
    provider: str
    serves: tuple[str, ...]
    unit: str
    usd_per_hour: float
    upfront_usd: float
    begins: date
    expires: date
    source: str
    as_of: str
    now: bool = True

    @property
    def key(self) -> str:
        """Id of the column."""
        parts = (self.option, self.variant, "+".join(self.serves), f"{self.begins}")
        return "/".join(part for part in parts if part)


@record(frozen=True, eq=False)
class _Plan:
    """Plan dollars that are spent at rates per pool.

    Attributes:
        provider: who sells it.
        option: purchase option; `variant` its variant.
        rate: plan dollars per unit-hour of each pool, `(P,)`; infinite where not covered.
        term: price and length.
        row: of the distinct rates; a dollar of the plan counts as `capacity` dollars at these.
    """

    provider: str
    option: str
    variant: str
    rate: Floats
    term: Term
    row: int = 0
    capacity: float = 1.0


@record(frozen=True, eq=False)
class Built:
    """The model and what its numbers mean.

    Attributes:
        model: the model, net of owned commitments.
        buyable: meaning of each column.
        futures: the scenarios, owned commitments not yet taken off.
        prices: per pool.
        years: length of the horizon.
        gross: demand of each block before owned commitments, `(n, P)`.
        owned: owned reservations, used or not, in each period of the horizon, `(periods, P)`.
        notes: what was left out, and why.
    """

    model: CommitModel
    buyable: tuple[Buyable, ...]
    futures: Futures
    prices: tuple[PoolPrices, ...]
    years: int
    gross: tuple[Floats, ...]
    owned: Floats
    notes: tuple[str, ...]


def horizon_years(question: CommitQuestion, prices: Sequence[PoolPrices]) -> int:
    """Return the years looked ahead: as asked, else the longest term on sale."""
    if question.horizon_years is not None:
        return question.horizon_years
    terms = [
        term.years for price in prices for term in price.committed if term.option in question.options.allow
    ]
    return max(terms, default=1)


def build_model(
    question: CommitQuestion,
    prices: Sequence[PoolPrices],
    futures: Futures,
    years: int,
    *,
    demand_factor: float = 1.0,
) -> Built:
    """Build the model.

    Args:
        question: the question.
        prices: per pool.
        futures: the scenarios.
        years: length of the horizon.
        demand_factor: multiplies all demand, for "what if it falls".

    Raises:
        InputError: more than two savings plans of different rates cover the same pool.
    """
    rates, plans = _share_capacity(_plans(question, prices), len(prices))
    columns = _Columns(question, years)
    owned = [_owned(question, hour, plans, len(rates)) for hour in columns.edges.tolist()]
    hours, gross = _hours(question, prices, futures, owned, columns.edges, demand_factor)
    reserve, dollars = _needs(hours, rates)
    _reservations(columns, prices, plans, reserve)
    _savings_plans(columns, plans, dollars)
    model = CommitModel(
        on_demand_usd=np.array([price.on_demand.usd_per_hour for price in prices]),
        plan_rate_usd=rates,
        columns=tuple(columns.columns),
        hours=tuple(hours),
        probability=futures.probability,
        risk_weight=question.risk.weight,
        risk_level=question.risk.level,
        upfront_limit_usd=question.options.upfront_limit_usd or np.inf,
        pools=tuple(pool.name for pool in question.pools),
        caps=caps_of(question, columns.columns, len(columns.edges)),
    )
    return Built(
        model,
        tuple(columns.buyable),
        futures,
        tuple(prices),
        years,
        tuple(gross),
        np.stack([units for units, _ in owned]),
        tuple(columns.notes),
    )


def _reservations(
    columns: _Columns, prices: Sequence[PoolPrices], plans: Sequence[_Plan], reserve: Floats
) -> None:
    """Add what is bought by the unit for one pool, at most as many as its highest demand needs."""
    question = columns.question
    for number, price in enumerate(prices):
        pool = question.pools[number]
        upper = min(reserve[number], question.options.max_instances.get(pool.name, np.inf))
        for term in price.committed:
            if term.option not in question.options.allow or _is_plan(term.option, number, plans):
                continue
            item = Buyable(
                term.option, term.variant, pool.provider, (pool.name,), pool.unit, term.usd_per_hour,
                term.upfront_usd, question.start, question.start, term.source, term.as_of,
            )  # fmt: skip
            columns.add(item, term, upper=upper, pool=number)


def _savings_plans(columns: _Columns, plans: Sequence[_Plan], dollars: Floats) -> None:
    """Add what is bought by the dollar an hour for several pools."""
    question = columns.question
    for plan in plans:
        if plan.option not in question.options.allow:
            continue
        serves = tuple(question.pools[p].name for p in np.flatnonzero(np.isfinite(plan.rate)))
        item = Buyable(
            plan.option, plan.variant, plan.provider, serves, "USD/h", 1.0, 0.0,
            question.start, question.start, plan.term.source, plan.term.as_of,
        )  # fmt: skip
        upper = min(dollars[plan.row] / plan.capacity, question.options.max_usd_per_hour or np.inf)
        columns.add(item, plan.term, upper=upper, plan=plan.row, capacity=plan.capacity)


class _Columns:
    """The columns of the model and what each means, as they are found."""

    def __init__(self, question: CommitQuestion, years: int) -> None:
        self.question, self.years, self.edges = question, years, edges_of(question, years)
        self.columns: list[CommitColumn] = []
        self.buyable: list[Buyable] = []
        self.notes: list[str] = []

    def add(
        self, item: Buyable, term: Term, *, upper: float, pool: int | None = None, plan: int | None = None,
        capacity: float = 1.0,
    ) -> None:  # fmt: skip
        """Add one column per day on which the option may begin."""
        question, years = self.question, self.years
        tail = question.tail_value
        if term.years > years and tail is None:
            ends = f"its term ends after the {years} year{'' if years == 1 else 's'} looked at"
            note = f"{term.option} is left out: {ends} and 'tail_value' is absent"
            self.notes += [note] if note not in self.notes else []
            return
        if upper <= 0:
            return
        total = item.usd_per_hour * HOURS_PER_YEAR * term.years + item.upfront_usd
        starts = starts_of(question, years, term.years, item.serves, item.provider)
        for begins, hour in starts.items():
            expires = in_years(begins, term.years) - timedelta(days=1)
            bought = replace(item, begins=begins, expires=expires, now=not hour)
            covered = min(term.years, years - hour / HOURS_PER_YEAR)
            # owed after the horizon, of no use
            wasted = (1 - (1.0 if tail is None else tail)) * (term.years - covered)
            cost = total * (covered + wasted) / term.years
            periods = active_in(self.edges, hour, term.years)
            whole = plan is None
            limit = float(np.floor(upper) if whole else upper)
            upfront_usd = item.upfront_usd if not hour else 0.0
            self.columns.append(
                CommitColumn(bought.key, cost, limit, pool, plan, capacity, upfront_usd, periods, whole)
            )
            self.buyable.append(bought)


def _is_plan(option: str, pool: int, plans: Sequence[_Plan]) -> bool:
    return any(plan.option == option and np.isfinite(plan.rate[pool]) for plan in plans)


def _plans(question: CommitQuestion, prices: Sequence[PoolPrices]) -> list[_Plan]:
    """Savings plans cover all pools of a provider; committed use the pools of one family and region.

    Committed use of a single pool stays a reservation of that pool, in whole units.
    """
    owned = {own.purchase_option for own in question.commitments}
    wanted = [option for option in COMMIT_OPTIONS if option in question.options.allow or option in owned]
    groups: dict[tuple[str, ...], dict[int, Term]] = {}
    for number, (pool, price) in enumerate(zip(question.pools, prices, strict=True)):
        for term in price.committed:
            if term.option not in wanted or term.option.startswith("reserved"):
                continue
            shared = term.option.startswith("savings_plan")
            scope = [] if shared else [pool.region, price.family or f"pool {number}"]
            groups.setdefault((term.option, term.variant, pool.provider, *scope), {})[number] = term
    out = []
    for (option, variant, provider, *scope), terms in groups.items():
        if scope and len(terms) == 1:
            continue
        rate = np.full(len(prices), np.inf)
        for number, term in terms.items():
            rate[number] = round(term.all_in_usd_per_hour, MICRO)
        out.append(_Plan(provider, option, variant, rate, next(iter(terms.values()))))
    return out


def _share_capacity(plans: Sequence[_Plan], n_pools: int) -> tuple[Floats, list[_Plan]]:
    """Join plans whose rates differ by a constant factor: distinct rates `(K, P)`, and the plans with their rows.

    Raises:
        InputError: a pool is covered by more than two distinct rates.
    """
    rates: list[Floats] = []
    shared = []
    for plan in plans:
        for row, rate in enumerate(rates):
            if (np.isfinite(rate) == np.isfinite(plan.rate)).all():
                ratio = rate[np.isfinite(rate)] / plan.rate[np.isfinite(rate)]
                if np.ptp(ratio) <= SAME_RATIO * ratio.max():
                    shared.append(replace(plan, row=row, capacity=float(ratio[0])))
                    break
        else:
            shared.append(replace(plan, row=len(rates)))
            rates.append(plan.rate)
    stacked = np.stack(rates) if rates else np.zeros((0, n_pools))
    if len(rates) > MOST_PLANS:
        from planner.commitments.recourse import components

        try:
            components(stacked)
        except ModelError as error:
            names = ", ".join(f"{plan.provider} {plan.option} {plan.variant}".strip() for plan in plans)
            raise InputError(f"{error}: {names}; take some out of 'options.allow'") from None
    return stacked, shared


def _hours(
    question: CommitQuestion, prices: Sequence[PoolPrices], futures: Futures, owned: Sequence[tuple[Floats, Floats]],
    edges: Ints, demand_factor: float,
) -> tuple[list[Hours], list[Floats]]:  # fmt: skip
    """Cut each block of hours where periods begin, and take off what is owned in each; return the whole demand too."""
    spot_share = np.array([pool.spot_share for pool in question.pools])
    spot_usd = np.array([[np.inf if price.spot is None else price.spot.usd_per_hour for price in prices]])
    usd = np.where(np.isfinite(spot_usd), spot_usd, 0.0) if (spot_share > 0).any() else None
    hours, totals = [], []
    for block in futures.blocks:
        gross = (block.demand * demand_factor).round(DECIMALS)
        cap = (gross * spot_share).round(DECIMALS)
        for period, rows, each in parts_of(block.hour, edges, block.year):
            units, dollars = owned[period]
            net = np.maximum(gross[rows] - units, 0.0).round(DECIMALS)
            plan_usd = np.broadcast_to(dollars, (len(net), len(dollars))) if dollars.any() else None
            most = None if usd is None else cap[rows]
            weight = np.full(len(net), each)
            hours.append(Hours(block.scenario, period, weight, net, most, usd, plan_usd))
            totals.append(gross[rows])
    return hours, totals


def _owned(
    question: CommitQuestion, hour: int, plans: Sequence[_Plan], n_rates: int
) -> tuple[Floats, Floats]:
    """Return what is owned in the period from `hour` on: units per pool `(P,)` and plan dollars per hour `(K,)`."""
    names = [pool.name for pool in question.pools]
    units, dollars = np.zeros(len(names)), np.zeros(n_rates)
    for own in question.commitments:
        if hour >= ((own.expires - question.start).days + 1) * 24:
            continue
        if own.pool is not None and own.instances is not None:
            units[names.index(own.pool)] += own.instances
        elif own.usd_per_hour is not None:
            plan = _owned_plan(own, plans)
            dollars[plan.row] += own.usd_per_hour * plan.capacity
    return units, dollars


def _owned_plan(owned: Owned, plans: Sequence[_Plan]) -> _Plan:
    for plan in plans:
        if plan.option == owned.purchase_option and plan.provider == owned.provider:
            return plan
    raise InputError(
        f"commitments: no pool of {owned.provider} has a price for {owned.purchase_option}, so what the owned "
        f"plan covers is unknown; give 'prices' with '{owned.purchase_option}' at the pools it covers"
    )


def _needs(hours: Sequence[Hours], rates: Floats) -> tuple[Floats, Floats]:
    """Return the most that could ever be of use: units per pool `(P,)` and plan dollars per hour `(K,)`."""
    reserve = np.ceil(np.max([block.demand.max(axis=0) for block in hours], axis=0))
    finite = np.where(np.isfinite(rates), rates, 0.0)
    if not len(rates):
        return reserve, np.zeros(0)
    dollars = np.max([(block.demand @ finite.T).max(axis=0) for block in hours], axis=0)
    return reserve, np.ceil(dollars)
