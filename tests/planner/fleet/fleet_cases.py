"""Small random fleet questions and their exact answers by enumeration (independent of the model builder)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.candidates.constraints.base import Use
from planner.fleet.question import FleetInput
from solvers.problem.options import SolveOptions


def random_fleet(seed: int, *, n_options: int = 5) -> FleetInput:
    """A question of `n_options` offers with a random choice of limits; about half are infeasible."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, n_options + 1))

    def maybe(value: float, chance: float = 0.4) -> float | None:
        return value if random.random() < chance else None

    throughput = random.integers(1, 12, n).astype(float)
    region = random.integers(0, 3, n)
    regions = maybe(float(random.integers(1, 3)))
    total = maybe(float(random.integers(2, 9)))
    return FleetInput(
        keys=tuple(f"offer-{number}" for number in range(n)),
        cost_usd=random.integers(1, 40, n) / 4,
        throughput=throughput,
        required_throughput=float(random.integers(3, 24)),
        max_units=random.integers(0, 4, n).astype(float),
        region=region,
        provider=region % 2,
        is_spot=random.random(n) < 0.4,
        memory_gib=random.choice([16.0, 40.0, 80.0], n),
        capacity_group=random.integers(-1, 2, n),
        capacity_limit=random.integers(2, 6, 2).astype(float),
        quota_group=random.integers(-1, 2, n),
        quota_units=random.choice([4.0, 8.0, 96.0], n),
        quota_limit=np.array([maybe(float(random.integers(8, 300)), 0.7) or np.nan for _ in range(2)]),
        region_cost_usd=random.choice([0.0, 0.5, 3.0], 3),
        max_spot_share=maybe(float(random.choice([0.0, 0.25, 0.5, 0.75]))),
        max_share_per_region=maybe(float(random.choice([0.5, 0.75])), 0.25),
        max_share_per_provider=maybe(0.75, 0.2),
        max_share_per_offer=maybe(float(random.choice([0.5, 0.75])), 0.25),
        max_regions=None if regions is None else int(regions),
        min_total_memory_gib=maybe(float(random.integers(20, 200)), 0.3),
        max_total_units=None if total is None else int(total),
        budget_usd=maybe(float(random.integers(5, 60)), 0.3),
    )


def part_time(fleet: FleetInput, seed: int) -> FleetInput:
    """The same question with workers that may stop early, some of them at no fixed cost."""
    random = np.random.default_rng([seed, 1])
    return replace(
        fleet, fixed_cost_usd=fleet.cost_usd * random.choice([0.0, 0.0625, 0.25, 0.5, 1.0], fleet.n_options)
    )


def with_uses(fleet: FleetInput, seed: int) -> FleetInput:
    """The same question under a quota of each worker and under a limit on what their work uses."""
    random, n = np.random.default_rng([seed, 3]), fleet.n_options
    quota = Use("quota", "P", random.choice([0.0, 8.0, 96.0], n), float(random.integers(40, 400)))
    idle, busy = random.integers(0, 3, n).astype(float), random.integers(0, 5, n).astype(float)
    return replace(fleet, uses=(quota, Use("carbon", "", idle, float(random.integers(5, 36)), busy)))


def small_fleet(seed: int) -> FleetInput:
    """What is asked of the models with a seed: `random_fleet`, of every fourth seed with uses."""
    fleet = random_fleet(seed)
    return with_uses(fleet, seed) if seed % 4 == 3 else fleet


def exactly(seed: int) -> SolveOptions:
    """To the optimum; of every fourth seed by way of a model of few offers, as large questions are.

    Of 32 seeds eight by scipy's backend, the others by the one that users get.
    """
    backend = "auto" if seed // 8 % 4 else "scipy"
    return SolveOptions(
        gap=0.0, time_limit_s=math.inf, backend=backend, **({"core_columns": 2} if seed % 4 == 2 else {})
    )


def brute_force_part_time(fleet: FleetInput) -> float | None:
    """The least cost over every number of workers, their work divided at best; None when no mix keeps all limits."""
    assert fleet.fixed_cost_usd is not None
    least = []  # what each mix costs at least: its work in order of price, without shares
    for units in itertools.product(*(range(int(limit) + 1) for limit in fleet.max_units)):
        fixed = _workers_cost(fleet, units)
        if fixed is not None:
            least.append((fixed + _in_order_of_price(fleet, units), fixed, units))
    best: float | None = None
    for bound, fixed, units in sorted(least):
        if best is not None and bound >= best:
            break
        work = _divide(fleet, units)
        if work is None:
            continue
        cost = fixed + work
        if fleet.budget_usd is not None and cost > fleet.budget_usd * (1 + 1e-9):
            continue
        best = cost if best is None else min(best, cost)
    return best


def _workers_cost(fleet: FleetInput, units: tuple[int, ...]) -> float | None:
    """Fixed cost of workers and regions; None where a limit on machines is broken or they are too few."""
    used = [number for number, count in enumerate(units) if count]
    if sum(units[n] * fleet.throughput[n] for n in used) < fleet.required_throughput * (1 - 1e-12):
        return None
    opened = {int(fleet.region[n]) for n in used}
    if fleet.max_regions is not None and len(opened) > fleet.max_regions:
        return None
    if fleet.max_spot_share == 0 and any(fleet.is_spot[n] for n in used):
        return None  # not even an idle one, for its memory
    if fleet.max_total_units is not None and sum(units) > fleet.max_total_units:
        return None
    if (
        fleet.min_total_memory_gib
        and sum(units[n] * fleet.memory_gib[n] for n in used) < fleet.min_total_memory_gib
    ):
        return None
    for code, limit in enumerate(fleet.quota_limit):
        if sum(units[n] * fleet.quota_units[n] for n in used if fleet.quota_group[n] == code) > limit:
            return None  # an unknown limit (NaN) is never exceeded
    for code, limit in enumerate(fleet.capacity_limit):
        if sum(units[n] for n in used if fleet.capacity_group[n] == code) > limit:
            return None
    for use in fleet.uses:
        if sum(units[n] * use.per_worker[n] for n in used) > use.limit:
            return None
    assert fleet.fixed_cost_usd is not None
    workers = sum(units[n] * fleet.fixed_cost_usd[n] for n in used)
    return float(workers + sum(fleet.region_cost_usd[code] for code in opened))


def _in_order_of_price(fleet: FleetInput, units: tuple[int, ...]) -> float:
    """The least cost of dividing the work where no group of workers is limited to a share of it."""
    used, price = _prices(fleet, units)
    left, cost = fleet.required_throughput, 0.0
    for usd, n in sorted(zip(price.tolist(), used, strict=True)):
        done = min(units[n] * fleet.throughput[n], left)
        cost, left = cost + usd * done, left - done
    return float(cost)


def _prices(fleet: FleetInput, units: tuple[int, ...]) -> tuple[list[int], Floats]:
    """The offers of a mix, and what a unit of work costs at each."""
    assert fleet.fixed_cost_usd is not None
    used = [n for n, count in enumerate(units) if count]
    price = [(fleet.cost_usd[n] - fleet.fixed_cost_usd[n]) / fleet.throughput[n] for n in used]
    return used, np.array(price)


def _divide(fleet: FleetInput, units: tuple[int, ...]) -> float | None:
    """The least cost of dividing the work among workers: in order of cost per work, or a small linear program."""
    used, price = _prices(fleet, units)
    most = np.array([units[n] * fleet.throughput[n] for n in used])
    groups = (
        (fleet.is_spot[used].astype(int) - 1, fleet.max_spot_share),
        (fleet.region[used], fleet.max_share_per_region),
        (fleet.provider[used], fleet.max_share_per_provider),
        (np.array(_pools(fleet))[used], fleet.max_share_per_offer),
    )
    for codes, share in groups:  # each group has room for its share, else there is no division
        if share is not None:
            rooms = (most[codes == code].sum() for code in set(codes.tolist()) if code >= 0)
            shared = sum(min(room, share * fleet.required_throughput) for room in rooms)
            if shared + most[codes < 0].sum() < fleet.required_throughput * (1 - 1e-9):
                return None
    rows = [  # sum of the group <= share x what all deliver
        (codes == code) - share
        for codes, share in groups
        if share is not None
        for code in set(codes.tolist())
        if code >= 0
    ]
    busy = [use for use in fleet.uses if use.per_busy is not None]
    if not rows and not busy:
        return _in_order_of_price(fleet, units)
    from scipy.optimize import linprog

    of_work = [use.per_busy[used] / fleet.throughput[used] for use in busy]  # type: ignore[index]
    left = [use.limit - float(use.per_worker @ np.asarray(units)) for use in busy]
    table = np.vstack([*rows, *of_work, -np.ones(len(used))])
    sides = np.r_[np.zeros(len(rows)), left, -fleet.required_throughput]
    found = linprog(price, A_ub=table, b_ub=sides, bounds=np.column_stack([np.zeros(len(used)), most]))
    return float(found.fun) if found.status == 0 else None


def brute_force_fleet(fleet: FleetInput) -> Fraction | None:
    """The least cost over every mix, in exact arithmetic; None when no mix keeps all limits."""
    units = np.array(list(itertools.product(*(range(int(limit) + 1) for limit in fleet.max_units))))
    opened = [(units[:, fleet.region == code] > 0).any(axis=1) for code in range(len(fleet.region_cost_usd))]
    about = units @ fleet.cost_usd + fleet.region_cost_usd @ np.array(opened)  # but for rounding
    enough = (units @ fleet.throughput >= fleet.required_throughput * (1 - 1e-9)) & _nearly_within(
        fleet, units
    )
    best: Fraction | None = None
    for at in np.argsort(about):
        if best is not None and about[at] > float(best) * (1 + 1e-9) + 1e-9:
            break
        if enough[at] and units[at].any():
            cost = _cost_if_feasible(fleet, tuple(units[at].tolist()))
            if cost is not None and (best is None or cost < best):
                best = cost
    return best


def _nearly_within(fleet: FleetInput, units: Ints) -> np.ndarray:
    """Mixes, one a row, that keep sums over machines but for rounding; of the others no exact sum need be made."""
    left = np.ones(len(units), dtype=np.bool_)

    def at_most(amount: Floats, limit: float) -> None:
        nonlocal left
        left &= units @ amount <= limit * (1 + 1e-9) + 1e-9

    for code, limit in enumerate(fleet.quota_limit.tolist()):
        if np.isfinite(limit):
            at_most(np.where(fleet.quota_group == code, fleet.quota_units, 0.0), limit)
    for code, limit in enumerate(fleet.capacity_limit.tolist()):
        at_most((fleet.capacity_group == code).astype(float), limit)
    if fleet.max_total_units is not None:
        at_most(np.ones(fleet.n_options), fleet.max_total_units)
    if fleet.min_total_memory_gib is not None:
        at_most(-fleet.memory_gib, -fleet.min_total_memory_gib * (1 - 1e-8))
    for use in fleet.uses:
        at_most(use.in_full, use.limit)
    return left


def _cost_if_feasible(fleet: FleetInput, units: tuple[int, ...]) -> Fraction | None:
    used = [number for number, count in enumerate(units) if count]
    work = {number: units[number] * Fraction(float(fleet.throughput[number])) for number in used}
    total = sum(work.values(), Fraction(0))
    if total < Fraction(fleet.required_throughput):
        return None
    opened = {int(fleet.region[number]) for number in used}
    cost = sum((units[number] * Fraction(float(fleet.cost_usd[number])) for number in used), Fraction(0))
    cost += sum((Fraction(float(fleet.region_cost_usd[code])) for code in opened), Fraction(0))

    def exceeds(group: list[int], amount: dict[int, Fraction], limits: dict[int, Fraction]) -> bool:
        sums: dict[int, Fraction] = {}
        for number in used:
            sums[group[number]] = sums.get(group[number], Fraction(0)) + amount[number]
        return any(value > limits[code] for code, value in sums.items() if code in limits)

    count = {number: Fraction(units[number]) for number in used}
    quota = {number: units[number] * Fraction(float(fleet.quota_units[number])) for number in used}
    known = {g: Fraction(float(v)) for g, v in enumerate(fleet.quota_limit) if np.isfinite(v)}
    capacity = {g: Fraction(float(v)) for g, v in enumerate(fleet.capacity_limit)}
    if exceeds(fleet.quota_group.tolist(), quota, known):
        return None
    if exceeds(fleet.capacity_group.tolist(), count, capacity):
        return None
    shares = (
        ([0 if spot else -1 for spot in fleet.is_spot], fleet.max_spot_share),
        (fleet.region.tolist(), fleet.max_share_per_region),
        (fleet.provider.tolist(), fleet.max_share_per_provider),
        (_pools(fleet), fleet.max_share_per_offer),
    )
    for group, share in shares:
        if share is not None:
            limit = Fraction(share) * total
            if exceeds(group, work, {code: limit for code in set(group) if code >= 0}):
                return None
    memory = sum((units[number] * Fraction(float(fleet.memory_gib[number])) for number in used), Fraction(0))
    if fleet.min_total_memory_gib is not None and memory < Fraction(fleet.min_total_memory_gib):
        return None
    if fleet.max_regions is not None and len(opened) > fleet.max_regions:
        return None
    if fleet.max_total_units is not None and sum(units) > fleet.max_total_units:
        return None
    if fleet.budget_usd is not None and cost > Fraction(fleet.budget_usd):
        return None
    for use in fleet.uses:
        if sum(units[number] * Fraction(float(use.in_full[number])) for number in used) > Fraction(use.limit):
            return None
    return cost


def _pools(fleet: FleetInput) -> list[int]:
    return [int(g) if g >= 0 else 1_000 + number for number, g in enumerate(fleet.capacity_group)]


def scaled(fleet: FleetInput, factor: float) -> FleetInput:
    """The question with all prices and the budget times `factor`."""
    budget = None if fleet.budget_usd is None else fleet.budget_usd * factor
    return replace(
        fleet,
        cost_usd=fleet.cost_usd * factor,
        fixed_cost_usd=None if fleet.fixed_cost_usd is None else fleet.fixed_cost_usd * factor,
        region_cost_usd=fleet.region_cost_usd * factor,
        budget_usd=budget,
    )


def permuted(fleet: FleetInput, order: Ints) -> FleetInput:
    """The question with its offers in another order."""
    names = ["cost_usd", "throughput", "max_units", "region", "provider", "is_spot", "memory_gib"]
    names += ["capacity_group", "quota_group", "quota_units"]
    names += ["fixed_cost_usd"] if fleet.part_time else []
    arrays = {name: getattr(fleet, name)[order] for name in names}
    uses = tuple(use.only(order) for use in fleet.uses)
    return replace(fleet, keys=tuple(fleet.keys[number] for number in order), uses=uses, **arrays)
