"""Checks the certificate of a commitment portfolio: its cost, and a bound made of cuts, in whole numbers and fractions.

Per hour and for any prices `l_k >= 0` of the plans' capacity, with `m_p` the least `l_k rate_kp` over the plans that
cover pool p, every `pi_p <= min(od_p, m_p)` with `sigma_p = max(0, pi_p - spot_p)` is feasible in the hour's dual, so

    Q_n(x) >= sum_p pi_p (d_np - reserved_p(x)) - sigma_p cap_np - sum_k l_k (owned_nk + plans_k(x)).

Summed over hours, and over cuts and scenarios with weights `y` that stay within what the objective gives a scenario,
`sum y <= (1 - w) p_s + w q_s`, `q_s <= p_s / (1 - a)`, `sum q_s <= 1` (costs are at least 0), this leaves a linear
function of x, whose least value over the columns' bounds is the bound. The cost of the point comes from a use of the
commitments that can be done: reservations, then plans, then spot, then on-demand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

MICRO = 10**6
MILLI = 10**3
FINE = 2**20
Matrix = list[list[int]]
HINT = 2**30  # of a hint, one dollar per plan dollar
CLOSE = 1e-7
Pair = tuple[int, int]  # a use and a plan
Use = tuple[int, int, int]  # micro-dollars per unit, pool, amount
Rates = list[list[int | None]]


def check(certificate: Mapping[str, Any]) -> list[str]:
    """Return every fault of a `benders` certificate."""
    from planner.plan.certificates.milp import gap_faults

    faults = list(_model_faults(certificate["model"]))
    faults = faults or [*_point_faults(certificate), *_weight_faults(certificate)]
    if faults:
        return faults
    objective, bound = certificate["objective"], certificate["bound"]
    real = exact_objective(certificate)
    if real > Fraction(objective):
        faults.append(f"the point costs {float(real):,.6f}, more than the stated objective {objective:,.6f}")
    proven = exact_bound(certificate)
    if proven < Fraction(bound):
        faults.append(f"the cuts prove {float(proven):,.6f}, less than the stated bound {bound:,.6f}")
    return faults + gap_faults(certificate)


def _model_faults(model: Mapping[str, Any]) -> Iterator[str]:
    """Shapes, signs and kinds of numbers that the argument needs."""
    pools, plans = len(model["on_demand_micro_usd"]), len(model["plan_rate_micro_usd"])
    scenarios = len(model["probability"])
    prices = [
        *model["on_demand_micro_usd"],
        *(v for row in model["plan_rate_micro_usd"] for v in row if v is not None),
    ]
    if not _whole(prices) or any(len(row) != pools for row in model["plan_rate_micro_usd"]):
        yield "prices and rates must be whole numbers of at least 0, one per pool"
    for column in model["columns"]:
        pool, plan = column["pool"], column["plan"]
        ends = (pool is None) != (plan is None) and (
            pool in range(pools) if plan is None else plan in range(plans)
        )
        if (
            not ends
            or min(column["upper"], column["capacity"], column["upfront_usd"], column["cost_usd"]) < 0
        ):
            yield f"{column['key']}: serves no pool or plan of the model, or has a negative number"
        if column.get("now", _is_now(column)) is not _is_now(column):
            yield f"{column['key']}: is not told apart rightly as bought now or planned for later"
    if not {n for cap in model.get("caps", ()) for n in cap["columns"]} <= {*range(len(model["columns"]))}:
        yield "a cap is on columns that are not there"
    widths = {
        "demand_milli": pools,
        "spot_cap_milli": pools,
        "spot_micro_usd": pools,
        "owned_plan_micro_usd": plans,
    }
    for number, block in enumerate(model["hours"]):
        rows = len(block["demand_milli"])
        weights = block["weight"] if isinstance(block["weight"], list) else [block["weight"]] * rows
        fits = len(weights) == rows and block["scenario"] in range(scenarios) and min(weights, default=0) >= 0
        for name, width in widths.items():
            part = block[name]
            one_row = name == "spot_micro_usd" and part is not None and len(part) == 1
            fits &= part is None or (
                (len(part) == rows or one_row) and all(len(row) == width for row in part)
            )
            fits &= part is None or _whole([value for row in part for value in row])
        fits &= (block["spot_cap_milli"] is None) == (block["spot_micro_usd"] is None)
        if not fits:
            yield f"block {number} of hours: arrays that do not fit together, or no whole numbers of at least 0"


def _is_now(column: Mapping[str, Any]) -> bool:
    """Whether a column is bought now: what is not active in the first period is planned for later."""
    return not column["periods"] or 0 in column["periods"]


def _whole(values: Sequence[Any]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


def _point_faults(certificate: Mapping[str, Any]) -> Iterator[str]:
    model = certificate["model"]
    columns, point = model["columns"], certificate["point"]
    if len(point) != len(columns):
        yield "the point has not one value per column"
        return
    for column, value in zip(columns, point, strict=True):
        if not 0 <= value <= column["upper"]:
            yield f"{column['key']}: {value} is not within 0 and {column['upper']}"
        if column["whole"] and value != int(value):
            yield f"{column['key']}: {value} is not a whole number"
    for cap in model.get("caps", ()):  # proofs of before have none
        if sum((Fraction(point[number]) for number in cap["columns"]), Fraction(0)) > Fraction(cap["most"]):
            yield f"the point buys more than {cap['most']:,.3f} at a time of what is limited to it"
    limit = model["upfront_limit_usd"]
    spent = sum(
        (Fraction(c["upfront_usd"]) * Fraction(v) for c, v in zip(columns, point, strict=True)), Fraction(0)
    )
    if limit is not None and spent > Fraction(limit):
        yield f"the point pays {float(spent):,.2f} upfront, above the limit of {limit:,.2f}"


def _weight_faults(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The weights of scenarios and cuts must be such that their sum is at most the objective."""
    model, unit = certificate["model"], 2 ** int(certificate["bits"])
    chance = [Fraction(value) for value in model["probability"]]
    share, level = Fraction(model["risk_weight"]), Fraction(model["risk_level"])
    risk = [Fraction(int(value), unit) for value in certificate["risk"]]
    if not 0 <= share <= 1 or not 0 <= level < 1 or len(risk) != len(chance) or min(chance) < 0:
        yield "probabilities and risk do not fit together"
        return
    if share and (
        sum(risk) > 1 or any(not 0 <= q <= p / (1 - level) for q, p in zip(risk, chance, strict=True))
    ):
        yield "the weights of the scenarios in CVaR are not within p / (1 - level), summing to at most 1"
    used = [Fraction(0)] * len(chance)
    for cut in certificate["cuts"]:
        if int(cut["multiplier"]) < 0:
            yield "a cut has a negative weight"
        used[cut["scenario"]] += Fraction(int(cut["multiplier"]), unit)
    for number, total in enumerate(used):
        if total > (1 - share) * chance[number] + (share * risk[number] if share else 0):
            yield f"the cuts of scenario {number} weigh more than the objective gives it"
    if min(int(certificate["upfront_multiplier"]), *map(int, certificate.get("cap_multipliers", ())), 0) < 0:
        yield "the weight of the upfront limit or of a cap is negative"


def exact_bound(certificate: Mapping[str, Any]) -> Fraction:
    """Return what the cuts prove: no choice of columns costs less."""
    model, unit = certificate["model"], 2 ** int(certificate["bits"])
    columns = model["columns"]
    constant = Fraction(0)
    slope = [Fraction(column["cost_usd"]) for column in columns]
    for cut in certificate["cuts"]:
        weight = Fraction(int(cut["multiplier"]), unit)
        blocks = [block for block in model["hours"] if block["scenario"] == cut["scenario"]]
        for block, prices in zip(blocks, cut["prices"], strict=True):
            reserved = _reserved(columns, cut["point"], block["period"], len(model["on_demand_micro_usd"]))
            fixed, by_pool, by_plan = _cut(
                model, block, prices, reserved, 2 ** int(certificate["price_bits"])
            )
            constant += weight * fixed
            for number, column in enumerate(columns):
                if column["periods"] and block["period"] not in column["periods"]:
                    continue
                if column["pool"] is not None:
                    slope[number] -= weight * by_pool[column["pool"]]
                else:
                    slope[number] -= weight * by_plan[column["plan"]] * Fraction(column["capacity"])
    limit, price = model["upfront_limit_usd"], Fraction(int(certificate["upfront_multiplier"]), unit)
    if limit is not None:
        constant -= price * Fraction(limit)
        slope = [value + price * Fraction(c["upfront_usd"]) for value, c in zip(slope, columns, strict=True)]
    for cap, multiplier in zip(model.get("caps", ()), certificate.get("cap_multipliers", ()), strict=True):
        constant -= Fraction(int(multiplier), unit) * Fraction(cap["most"])
        for number in cap["columns"]:
            slope[number] += Fraction(int(multiplier), unit)
    least = (min(Fraction(0), value) * Fraction(c["upper"]) for value, c in zip(slope, columns, strict=True))
    return constant + sum(least, Fraction(0))


def _reserved(
    columns: Sequence[Mapping[str, Any]], point: Sequence[float], period: int, pools: int
) -> list[float]:
    """Reserved units per pool, in thousandths; only guides which dual is taken, so floats do."""
    out = [0.0] * pools
    for column, value in zip(columns, point, strict=True):
        if column["pool"] is not None and (not column["periods"] or period in column["periods"]):
            out[column["pool"]] += value * MILLI
    return out


def _cut(
    model: Mapping[str, Any],
    block: Mapping[str, Any],
    prices: Matrix,
    reserved: Sequence[float],
    price_unit: int,
) -> tuple[Fraction, list[Fraction], list[Fraction]]:
    """Return constant and slopes of one block's cut, in USD, USD per unit and USD per plan dollar."""
    on_demand = [value * price_unit for value in model["on_demand_micro_usd"]]
    rates = model["plan_rate_micro_usd"]
    pools, plans = range(len(on_demand)), range(len(rates))
    fixed, by_pool, by_plan = _Sums(block), [_Sums(block) for _ in pools], [_Sums(block) for _ in plans]
    for row, demand in enumerate(block["demand_milli"]):
        price = prices[row] if rates else []
        if len(price) != len(rates) or not _whole(price):
            raise ValueError("the plans' prices of an hour are not one whole number of at least 0 per plan")
        cap, spot = _spot(block, row, price_unit)
        total = 0
        for pool in pools:
            most = on_demand[pool]
            for plan in plans:
                if rates[plan][pool] is not None:
                    most = min(most, price[plan] * rates[plan][pool])
            left = demand[pool] - reserved[pool]
            if left <= 0:
                continue
            pi = min(most, spot[pool]) if cap and left <= cap[pool] else most
            total += pi * demand[pool] - (max(0, pi - spot[pool]) * cap[pool] if cap else 0)
            by_pool[pool].add(row, pi)
        owned = block["owned_plan_micro_usd"]
        if owned is not None:
            # micro-dollars per hour x price: the same unit as micro-dollars x thousandths, by MILLI
            total -= MILLI * sum(price[plan] * owned[row][plan] for plan in plans)
        fixed.add(row, total)
        for plan in plans:
            by_plan[plan].add(row, price[plan])
    unit = MICRO * price_unit
    return (
        fixed.total() / (unit * MILLI),
        [part.total() / unit for part in by_pool],
        [part.total() / price_unit for part in by_plan],
    )


def _spot(block: Mapping[str, Any], row: int, price_unit: int) -> tuple[list[int], list[int]]:
    if block["spot_cap_milli"] is None:
        return [], []
    prices = block["spot_micro_usd"]
    return block["spot_cap_milli"][row], [
        value * price_unit for value in prices[row if len(prices) > 1 else 0]
    ]


class _Sums:
    """Sums whole numbers by the weight of their row in hours, so that fractions are needed once per weight."""

    def __init__(self, block: Mapping[str, Any]) -> None:
        weight = block["weight"]
        self._weights = weight if isinstance(weight, list) else None
        self._sums: dict[float, int] = {}
        self._only = weight

    def add(self, row: int, value: int) -> None:
        """Add the value of a row."""
        weight = self._weights[row] if self._weights is not None else self._only
        self._sums[weight] = self._sums.get(weight, 0) + value

    def total(self) -> Fraction:
        """The weighted sum."""
        return sum((Fraction(weight) * value for weight, value in self._sums.items()), Fraction(0))


def exact_objective(certificate: Mapping[str, Any]) -> Fraction:
    """Return what the point costs, by a use of the commitments that can be done."""
    model, point = certificate["model"], certificate["point"]
    columns = model["columns"]
    total = sum(
        (Fraction(c["cost_usd"]) * Fraction(v) for c, v in zip(columns, point, strict=True)), Fraction(0)
    )
    chance = [Fraction(value) for value in model["probability"]]
    costs = [Fraction(0)] * len(chance)
    hints = certificate["point_prices"] or [[]] * len(model["hours"])
    for block, hint in zip(model["hours"], hints, strict=True):
        costs[block["scenario"]] += _use_cost(model, block, point, hint)
    share, level = Fraction(model["risk_weight"]), Fraction(model["risk_level"])
    total += (1 - share) * sum((p * cost for p, cost in zip(chance, costs, strict=True)), Fraction(0))
    return total + share * _cvar(costs, chance, level) if share else total


def _cvar(costs: Sequence[Fraction], chance: Sequence[Fraction], level: Fraction) -> Fraction:
    """Mean of the worst `1 - level` outcomes."""
    left, total = Fraction(1), Fraction(0)
    for cost, probability in sorted(zip(costs, chance, strict=True), reverse=True):
        part = min(left, probability / (1 - level))
        total += part * cost
        left -= part
    return total


def _use_cost(
    model: Mapping[str, Any], block: Mapping[str, Any], point: Sequence[float], hint: Matrix
) -> Fraction:
    """What spot and on-demand cost in a block; what is covered is rounded down to 1 / FINE of a thousandth."""
    columns, rates = model["columns"], model["plan_rate_micro_usd"]
    active = [not c["periods"] or block["period"] in c["periods"] for c in columns]
    reserved = [Fraction(0)] * len(model["on_demand_micro_usd"])
    capacity = [Fraction(0)] * len(rates)
    for column, value, on in zip(columns, point, active, strict=True):
        if on and column["pool"] is not None:
            reserved[column["pool"]] += Fraction(value) * MILLI * FINE
        elif on:
            capacity[column["plan"]] += Fraction(value) * Fraction(column["capacity"]) * MICRO
    have, new = [int(value) for value in reserved], [int(value * MILLI * FINE) for value in capacity]
    sums = _Sums(block)
    for row, demand in enumerate(block["demand_milli"]):
        left = [max(0, units_needed * FINE - units) for units_needed, units in zip(demand, have, strict=True)]
        owned = block["owned_plan_micro_usd"]
        more = owned[row] if owned else [0] * len(new)
        room = [value + extra * MILLI * FINE for value, extra in zip(new, more, strict=True)]
        sums.add(row, _row_cost(model, block, row, left, room, hint[row] if hint else []))
    return sums.total() / (MICRO * MILLI * FINE)


def _row_cost(
    model: Mapping[str, Any],
    block: Mapping[str, Any],
    row: int,
    left: list[int],
    room: list[int],
    hint: Sequence[int],
) -> int:
    """Cost of one hour in micro-dollars x thousandths / FINE: plans filled where they save most."""
    on_demand, rates = model["on_demand_micro_usd"], model["plan_rate_micro_usd"]
    cap, spot = _spot(block, row, 1)
    uses: list[Use] = []
    for pool, amount in enumerate(left):
        by_spot = min(cap[pool] * FINE, amount) if cap and spot[pool] < on_demand[pool] else 0
        uses += [(on_demand[pool], pool, amount - by_spot)] if amount > by_spot else []
        uses += [(spot[pool], pool, by_spot)] if by_spot else []
    if not rates:
        return sum(value * amount for value, _, amount in uses)
    return min(_filled(uses, rates, room, order) for order in _orders(uses, rates, hint))


def _orders(uses: list[Use], rates: Rates, hint: Sequence[int]) -> Iterator[list[Pair]]:
    """Yield orders in which (use, plan) pairs may be filled; any order can be done, good ones cost least.

    One plan: by what a use saves per plan dollar. Two plans: by the hint, the plans' prices in the hour: first what is
    worth more than its cheapest plan asks, then what is worth just that; where both ask the same, either one first.
    """
    pairs = [
        (number, plan)
        for number, use in enumerate(uses)
        for plan, rate in enumerate(rates)
        if rate[use[1]] is not None
    ]
    worth = {pair: -uses[pair[0]][0] / (rates[pair[1]][uses[pair[0]][1]] or 1) for pair in pairs}
    yield sorted(pairs, key=worth.__getitem__)
    if len(rates) != 2 or len(hint) != 2:
        return
    relative_price = {pair: hint[pair[1]] * (rates[pair[1]][uses[pair[0]][1]] or 0) / HINT for pair in pairs}
    least: dict[int, float] = {}
    for (number, _), price in relative_price.items():
        least[number] = min(price, least.get(number, math.inf))
    stage = {}
    for number, plan in pairs:
        value, low = uses[number][0], least[number] * (1 + CLOSE)
        tied = relative_price.get((number, 1 - plan), math.inf) <= low
        step = (0 if value > low else 2 if value >= least[number] * (1 - CLOSE) else 4) + tied
        stage[number, plan] = step if relative_price[number, plan] <= low else 6
    for first in (0, 1):
        rank = {
            pair: (stage[pair], pair[1] != first, _relative(rates, uses[pair[0]][1], pair[1]))
            for pair in pairs
        }
        yield sorted(pairs, key=rank.__getitem__)


def _relative(rates: Rates, pool: int, plan: int) -> float:
    """A plan's rate for a pool over the other plan's; 0 where only this one covers it."""
    rate, other_rate = rates[plan][pool], rates[1 - plan][pool]
    return (rate or 0) / other_rate if other_rate else 0.0


def _filled(uses: list[Use], rates: Rates, room: list[int], order: list[Pair]) -> int:
    """Cost of what the plans leave when filled in `order`, rounded up."""
    uncovered = [use[2] for use in uses]
    free = list(room)
    for number, plan in order:
        rate = rates[plan][uses[number][1]]
        if not rate or not uncovered[number] or not free[plan]:
            continue
        covered = min(uncovered[number], free[plan] // rate)  # rounded down
        uncovered[number] -= covered
        free[plan] -= covered * rate
    return sum(use[0] * amount for use, amount in zip(uses, uncovered, strict=True))


def set_of(certificate: Mapping[str, Any]) -> str:
    """Name the choices that the bound is of, and what of the plan is not bought now."""
    text = "of commitments in the hours and at the prices that it lists"
    pairs = zip(certificate["model"]["columns"], certificate["point"], strict=True)
    later = sum(float(column["cost_usd"]) * value for column, value in pairs if not _is_now(column))
    return f"{text} (of this one {later:,.2f} is planned for later)" if later else text
