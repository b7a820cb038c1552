"""What a fleet question is: arrays of offers and the limits on their mix.

A fleet does divisible work: any mix of workers will do as long as together they do it in time. All shares are
shares of the work *the fleet itself* delivers, so asking for less never makes a plan impossible.

Workers are whole; what they do need not be. With `fixed_cost_usd` a worker may stop early: it is paid for its
fixed hours and for the part of the time that it works (`busy`, in workers used in full). Without, every worker
is used and paid in full, and `busy` equals the workers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.candidates.constraints.base import Use
from solvers.problem.errors import ModelError

TOLERANCE = 1e-9  # relative; what a check in floating point may be off by
WORK_TOLERANCE = 1e-6  # of all work; what a solver's division of work may be off by
SHARES = ("max_spot_share", "max_share_per_region", "max_share_per_provider", "max_share_per_offer")


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class FleetInput:
    """A fleet question. Arrays left out take the default named; NaN in a limit means unknown: not enforced.

    Attributes:
        keys: offer ids, length `n_options`, unique.
        cost_usd: billed cost of one worker used in full, shape `(n_options,)`.
        throughput: work that one worker delivers when used in full (cautious), shape `(n_options,)`.
        required_throughput: work the fleet must deliver, in the same unit (per hour, or in all).
        fixed_cost_usd: part of `cost_usd` that a worker costs however short its use, shape `(n_options,)`; left
            out: workers are used in full.
        max_units: most workers of the offer, shape `(n_options,)`; default unlimited.
        region: region code (0 ..), shape `(n_options,)`; default one region.
        provider: provider code (0 ..), shape `(n_options,)`; default one provider.
        is_spot: interruptible capacity, shape `(n_options,)`; default False.
        memory_gib: accelerator memory of one worker, shape `(n_options,)`; default 0.
        capacity_group: offers with one code (0 ..) share one capacity, -1 none, shape `(n_options,)`.
        capacity_limit: workers per capacity group, shape `(n_capacity_groups,)`.
        offer_group: offers with one code (0 ..) count as one offer, -1 as `capacity_group` says, shape `(n_options,)`.
        quota_group: quota the offer draws on (0 ..), -1 none, shape `(n_options,)`.
        quota_units: quota units of one worker, shape `(n_options,)`; default 1.
        quota_limit: units per quota group, shape `(n_quota_groups,)`.
        region_cost_usd: cost of opening a region (staging the data), shape `(n_regions,)`; default 0.
        max_spot_share: largest spot share of the work, 0..1; 0: no spot worker at all.
        max_share_per_region: largest share of one region, 0..1.
        max_share_per_provider: largest share of one provider, 0..1.
        max_share_per_offer: largest share of one offer (those of one `pool` count as one), 0..1.
        max_regions: most regions used.
        min_total_memory_gib: least accelerator memory of all workers together.
        max_total_units: most workers in all.
        budget_usd: most that workers and opened regions may cost.
        region_names: names for messages, by region code.
        provider_names: names for messages, by provider code.
        quota_names: names for messages, by quota group.
        uses: limits on what workers use, of the constraints that have rows in this model.
    """

    keys: tuple[Hashable, ...]
    cost_usd: Floats
    throughput: Floats
    required_throughput: float
    fixed_cost_usd: Floats | None = None
    max_units: Floats = field(default_factory=_none)
    region: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    provider: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    is_spot: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    memory_gib: Floats = field(default_factory=_none)
    capacity_group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    capacity_limit: Floats = field(default_factory=_none)
    offer_group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    quota_group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    quota_units: Floats = field(default_factory=_none)
    quota_limit: Floats = field(default_factory=_none)
    region_cost_usd: Floats = field(default_factory=_none)
    max_spot_share: float | None = None
    max_share_per_region: float | None = None
    max_share_per_provider: float | None = None
    max_share_per_offer: float | None = None
    max_regions: int | None = None
    min_total_memory_gib: float | None = None
    max_total_units: int | None = None
    budget_usd: float | None = None
    region_names: tuple[str, ...] = ()
    provider_names: tuple[str, ...] = ()
    quota_names: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()

    def __post_init__(self) -> None:
        """Fill the defaults and refuse shapes or numbers that mean nothing.

        Raises:
            ModelError: names the field at fault.
        """
        for name, default in _DEFAULTS.items():
            self._fill(name, default)
        if self.fixed_cost_usd is not None:
            self._fill("fixed_cost_usd", 0.0)
        codes = {
            "region": "region_cost_usd",
            "capacity_group": "capacity_limit",
            "quota_group": "quota_limit",
        }
        for name, table in codes.items():
            code = getattr(self, name)
            size = int(code.max(initial=-1)) + 1
            values = np.asarray(getattr(self, table), dtype=np.float64)
            if not len(values):
                values = np.full(size, 0.0 if name == "region" else math.inf)
            if len(values) < size:
                raise ModelError(f"fleet: {table} has {len(values)} entries, {name} names {size}")
            object.__setattr__(self, table, values)
        self._check()

    def _fill(self, name: str, default: float | int | bool) -> None:
        values = np.asarray(getattr(self, name))
        kind = np.asarray(default).dtype
        if not len(values):
            values = np.full(len(self.keys), default)
        if values.shape != (len(self.keys),):
            raise ModelError(f"fleet: {name} has shape {values.shape}, expected ({len(self.keys)},)")
        object.__setattr__(self, name, values.astype(kind))

    def _check(self) -> None:
        if not (math.isfinite(self.required_throughput) and self.required_throughput > 0):
            raise ModelError(f"fleet: required_throughput must be above 0, not {self.required_throughput}")
        for name in ("cost_usd", "throughput", "memory_gib", "quota_units", "region_cost_usd"):
            values = getattr(self, name)
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise ModelError(f"fleet: {name} must be finite and not negative; leave unknown offers out")
        if (
            self.fixed_cost_usd is not None
            and not ((self.fixed_cost_usd >= 0) & (self.fixed_cost_usd <= self.cost_usd)).all()
        ):
            raise ModelError("fleet: fixed_cost_usd must be in 0..cost_usd")
        for name in (
            "max_spot_share",
            "max_share_per_region",
            "max_share_per_provider",
            "max_share_per_offer",
        ):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ModelError(f"fleet: {name} must be in 0..1, not {value}")
        for use in self.uses:
            amounts = use.in_full
            if amounts.shape != (len(self.keys),) or not (np.isfinite(amounts) & (amounts >= 0)).all():
                raise ModelError(f"fleet: the use of {use.limit_name} {use.member} is not a number per offer")
        if len(set(self.keys)) != len(self.keys):
            raise ModelError("fleet: keys repeat; each offer may appear once")

    @property
    def part_time(self) -> bool:
        """Whether a worker may stop early and is paid accordingly."""
        return self.fixed_cost_usd is not None

    @property
    def worker_usd(self) -> Floats:
        """Cost of one worker however short its use, shape `(n_options,)`."""
        return self.cost_usd if self.fixed_cost_usd is None else self.fixed_cost_usd

    @property
    def busy_usd(self) -> Floats:
        """Cost of the work of one worker used in full, beside `worker_usd`, shape `(n_options,)`."""
        return np.asarray(self.cost_usd - self.worker_usd, dtype=np.float64)

    @property
    def n_options(self) -> int:
        """Number of offers."""
        return len(self.keys)

    @property
    def n_regions(self) -> int:
        """Number of region codes."""
        return len(self.region_cost_usd)

    @property
    def limits_shares(self) -> bool:
        """Whether any share of the throughput is limited."""
        shares = (self.max_spot_share, self.max_share_per_region)
        return any(
            share is not None for share in (*shares, self.max_share_per_provider, self.max_share_per_offer)
        )

    def pool(self) -> Ints:
        """Return each offer's pool, shape `(n_options,)`: its offer group, its capacity group, or one of its own."""
        alone = len(self.capacity_limit) + np.arange(self.n_options)
        pool = np.where(self.capacity_group >= 0, self.capacity_group, alone)
        return np.where(
            self.offer_group >= 0, len(self.capacity_limit) + self.n_options + self.offer_group, pool
        )

    def cost_of(self, units: Floats, busy: Floats | None = None) -> float:
        """Return the cost of `units` workers per offer, opened regions included, in USD.

        Args:
            units: workers, shape `(n_options,)`.
            busy: their work, in workers used in full, shape `(n_options,)`; all in full by default.
        """
        used = np.flatnonzero(units)
        done = (units if busy is None else busy)[used]
        opened = distinct_values(self.region[used])
        workers = self.worker_usd[used] * units[used]
        return math.fsum([*workers, *(self.busy_usd[used] * done), *self.region_cost_usd[opened]])

    def only(self, numbers: Ints) -> FleetInput:
        """Return the question over the offers `numbers` alone (groups and limits keep their codes)."""
        arrays = {name: getattr(self, name)[numbers] for name in _DEFAULTS}
        if self.fixed_cost_usd is not None:
            arrays["fixed_cost_usd"] = self.fixed_cost_usd[numbers]
        keys = tuple(self.keys[number] for number in numbers.tolist())
        return replace(self, keys=keys, uses=tuple(use.only(numbers) for use in self.uses), **arrays)

    @cached_property
    def _position(self) -> dict[Hashable, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def units(self, counts: Mapping[Hashable, float]) -> Floats:
        """Return `counts` (workers, or their work) by key as a vector, shape `(n_options,)`."""
        units = np.zeros(self.n_options)
        for key, count in counts.items():
            units[self._position[key]] = count
        return units


_DEFAULTS: dict[str, float | int | bool] = {
    "cost_usd": 0.0,
    "throughput": 0.0,
    "max_units": math.inf,
    "region": 0,
    "provider": 0,
    "is_spot": False,
    "memory_gib": 0.0,
    "capacity_group": -1,
    "offer_group": -1,
    "quota_group": -1,
    "quota_units": 1.0,
}
assert set(_DEFAULTS) <= {item.name for item in fields(FleetInput)}


@dataclass(frozen=True)
class Excess:
    """A limit that a fleet breaks: `used` against `limit` (same unit)."""

    limit_name: str
    member: str
    used: float
    limit: float


def violations(fleet: FleetInput, units: Floats, busy: Floats | None = None) -> list[Excess]:
    """Return every limit that `units` and `busy` (see `FleetInput.cost_of`) break.

    Whole numbers are held to 1e-9 relative; shares of work that a solver divided to its own tolerance, 1e-6.
    Written from the definitions and sharing no code with the model builder, so that it can judge it.
    """
    excesses: list[Excess] = []

    done = units if busy is None else busy
    work = fleet.throughput * done
    soft = TOLERANCE if busy is None else WORK_TOLERANCE

    def at_most(name: str, member: str, used: float, limit: float | None) -> None:
        known = limit is not None and not math.isnan(limit)
        slack = TOLERANCE * max(abs(limit or 0.0), abs(used), 1e-300)
        if name in SHARES:
            slack = max(slack, soft * float(work.sum()))
        if known and limit is not None and used > limit + slack:
            excesses.append(Excess(name, member, used, limit))

    total = float(work.sum())
    if total < fleet.required_throughput * (1 - TOLERANCE):
        excesses.append(Excess("required_throughput", "", total, fleet.required_throughput))
    memory = float(fleet.memory_gib @ units)
    if fleet.min_total_memory_gib is not None and memory < fleet.min_total_memory_gib * (1 - TOLERANCE):
        excesses.append(Excess("min_total_memory_gib", "", memory, fleet.min_total_memory_gib))
    for number in np.flatnonzero(units):
        at_most("max_units", str(fleet.keys[number]), float(units[number]), float(fleet.max_units[number]))
    for number in np.flatnonzero(done > units):
        at_most("hours", str(fleet.keys[number]), float(done[number]), float(units[number]))
    _grouped(fleet.capacity_group, units, fleet.capacity_limit, "capacity_limit", (), at_most)
    quota = units * fleet.quota_units
    _grouped(fleet.quota_group, quota, fleet.quota_limit, "quota_limit", fleet.quota_names, at_most)
    for use in fleet.uses:
        at_most(use.limit_name, use.member, use.of(units, done), use.limit)
    at_most("max_spot_share", "", float(work[fleet.is_spot].sum()), _times(fleet.max_spot_share, total))
    if fleet.max_spot_share == 0 and not work[fleet.is_spot].any():  # not even an idle one, for its memory
        at_most("spot_workers", "", float(units[fleet.is_spot].sum()), 0.0)
    shares = (
        ("max_share_per_region", fleet.region, fleet.max_share_per_region, fleet.region_names),
        ("max_share_per_provider", fleet.provider, fleet.max_share_per_provider, fleet.provider_names),
        ("max_share_per_offer", fleet.pool(), fleet.max_share_per_offer, ()),
    )
    for name, codes, share, names in shares:
        if share is not None:
            limits = np.full(int(codes.max(initial=-1)) + 1, share * total)
            _grouped(codes, work, limits, name, names, at_most)
    at_most("max_regions", "", float(len(distinct_values(fleet.region[units > 0]))), fleet.max_regions)
    at_most("max_total_units", "", float(units.sum()), fleet.max_total_units)
    at_most("budget_usd", "", fleet.cost_of(units, busy), fleet.budget_usd)
    return excesses


def _times(share: float | None, total: float) -> float | None:
    return None if share is None else share * total


def _grouped(
    codes: Ints, amounts: Floats, limits: Floats, name: str, names: tuple[str, ...], at_most: object
) -> None:
    assert callable(at_most)
    inside = codes >= 0
    used = np.bincount(codes[inside], weights=amounts[inside], minlength=len(limits))
    for group in np.flatnonzero(used > 0):
        label = names[group] if group < len(names) else str(group)
        at_most(name, label, float(used[group]), float(limits[group]))
