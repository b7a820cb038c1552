"""One job on machines, places or ways to buy, side by side.

Each row is the plan that `optimize` gives for the same file limited to that row. Where none meets the deadline or the
budget, the row is the cheapest that misses them, and says which.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

from catalogs.offers.naming import fits_name
from catalogs.store.load import load_catalog
from catalogs.tables.model import places_of
from planner.candidates.choose import best_missing, best_where
from planner.candidates.constraints.deadline import needs_record
from planner.candidates.constraints.registry import BIT
from planner.candidates.engine import Engine
from planner.candidates.filters import count_filters
from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.plan_parts.launch import launch_of
from planner.candidates.plan_parts.storage import data_kind
from planner.candidates.plan_parts.summary import lines_of, summarize
from planner.candidates.plan_parts.timeline import performance_of, risk_of
from planner.candidates.prepare import check_ages, prepare
from planner.candidates.sizes import hardware_of_offer
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.errors import InputError
from planner.inputs.faults import near
from planner.inputs.tasks import expand_task
from planner.job.compare_prices import PlaceClaim, PriceGap, SpotSaving, gaps_to, saving_of, tested_claims
from planner.market.machines import machine_hint
from planner.market.pricing import total_usd
from planner.plan.brief import Summary
from planner.plan.front_scale import half_ratios
from planner.plan.ids import STORAGE
from planner.plan.model import CatalogSource, Performance, sources_of
from planner.records import record
from planner.render.presentable import Presentable
from planner.render.words import assumed_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

    from catalogs.tables.table import Bools, Ints
    from planner.asked.model import Dates
    from planner.asked.options import Options
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload


Over = Literal["region", "type", "option", "provider"]
OVERS: tuple[Over, ...] = ("region", "type", "option", "provider")
_BEST = Wanted(Scope.BEST)
# Limits that a row may miss and still be compared: what it would cost is known.
_MISSABLE = ("deadline", "unrecorded", "confidence", "budget", "throughput", "no_discount")
_MISSABLE_BITS = sum(BIT[name] for name in _MISSABLE)
WITH_FALLBACK = "spot, else on_demand"


@record(frozen=True)
class Row:
    """One thing compared.

    Attributes:
        name: instance type, `provider/region`, purchase option or provider.
        best: its plan in brief, differences to the base's; None: nothing of it can run the job.
        performance: predicted speed and memory of that plan.
        finish: when it is expected to be done, ISO; p_meet_deadline: probability that it is in time.
        misses: limits of the workload that it does not keep.
        reason: why there is nothing to compare.
        cost_ratio, hours_ratio, speed_ratio: to the base; None without one.
        storage_usd: part of the cost that is storage; data_in: kind of storage that the nodes read the data from.
        list_gap: on-demand list prices of the region against the base's, over the types sold in both.
        spot: what spot saves here.
    """

    name: str
    best: Summary | None
    performance: Performance | None
    finish: str | None
    p_meet_deadline: float | None
    misses: tuple[str, ...]
    reason: str
    cost_ratio: float | None = None
    hours_ratio: float | None = None
    speed_ratio: float | None = None
    storage_usd: Decimal | None = None
    data_in: str | None = None
    list_gap: PriceGap | None = None
    spot: SpotSaving | None = None


@record(frozen=True)
class Comparison(Presentable):
    """All rows: the base first, then those that meet every limit, then those that do not, each by cost.

    `usd_ratio`, `hours_ratio`: half of the interval of the best row's cost and hours over the figures; 0: not known.
    `beside_steps_ratio`: of hours beside the steps by default; `assumed`: sizes of samples that nobody stated.
    """

    REPORT = "planner.job.compare_report:comparison_report"
    __repr__ = Presentable.__repr__

    workload: str
    over: str
    base: str
    objective: str
    rows: tuple[Row, ...]
    excluded: int
    claims: tuple[PlaceClaim, ...] = ()
    usd_ratio: float = 0.0
    hours_ratio: float = 0.0
    workload_sha256: str = ""
    created_at: str = ""
    sources: tuple[CatalogSource, ...] = ()
    beside_steps_ratio: float = 0.0
    assumed: tuple[str, ...] = ()


def compare(
    loaded: LoadedWorkload, options: Options, *, pick: Sequence[str] = (), over: Over | None = None,
    base: str | None = None, catalog_dir: Path | None = None,
) -> Comparison:  # fmt: skip
    """Compare instance types, or all regions, types, options or providers, for one job.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        pick: instance types, in the provider's spelling.
        over: instead, what to compare all of.
        base: the row that the others are compared with; by default the first picked, or the best.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: a name is unknown, both or neither of `pick` and `over` are given, or the file is a fleet.
        CatalogError: the catalog cannot be used.
    """
    if bool(pick) == (over is not None):
        raise InputError("compare: give either --pick TYPE,TYPE or --over region, type, option or provider")
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    own = next((v.workload for v in expand_task(loaded.workload) if v.chosen), loaded.workload)
    if own.kind == "fleet":
        raise InputError("compare: is for one job; a fleet is chosen as a whole, by `planner optimize`")
    run = prepare(loaded, own, catalog, options)
    question = _Question(Engine(run), run.dates, over or "type")
    names = question.picked(pick) if pick else question.names()
    chosen = None if base is None else question.base_name(base, names if pick else None)
    if chosen is not None and chosen not in names:
        names = (chosen, *names)
    question.expect(names)
    rows = [question.row(name) for name in names]
    excluded = 0 if pick else sum(row.best is None for row in rows)
    kept = [row for row in rows if pick or row.best is not None or row.name == chosen]
    found = _against(question, kept, chosen or (names[0] if pick else None))
    best = [row.best for row in found.rows if row.best is not None]
    check_ages(((one.instance_type, one.price_as_of) for one in best), options)
    return replace(found, excluded=excluded)


class _Question:
    """The job, asked again under one more limit a row."""

    def __init__(self, engine: Engine, dates: Dates, over: Over) -> None:
        self.engine, self.over, self.context = engine, over, engine.context
        self.deadline = dates.deadline
        self.asked, self.market = self.context.asked, self.context.market
        self.offers, self.types = self.market.offer_set.offers, self.market.offer_set.types
        self.objective = self.asked.workload.preferences.objective
        self._names: dict[str, npt.NDArray[Any]] = {
            "region": places_of(self.offers).decode(), "type": self.offers["instance_type"],
            "option": self.offers["purchase_option"], "provider": self.offers["provider"],
        }  # fmt: skip

    def names(self) -> tuple[str, ...]:
        """What the workload's own limits on offers leave, by name."""
        mine = self._names[self.over][self.engine.offer_bits == 0]
        found = sorted({str(name) for name in mine})
        if self.over == "option" and {"spot", "on_demand"} <= set(found):
            found.append(WITH_FALLBACK)
        return tuple(found)

    def picked(self, pick: Sequence[str]) -> tuple[str, ...]:
        """The instance types named, each once.

        Raises:
            InputError: the catalog has no type of a name.
        """
        known = sorted({str(name) for name in self.types["instance_type"]})

        def hint(name: str) -> str:
            over = next((over for over in ("provider", "option", "region") if name in self._names[over]), "")
            return f"; compare {over}s with --over {over}" if over else machine_hint(self.types, name)

        return tuple(dict.fromkeys(_known(name, known, "--pick", "instance type", hint) for name in pick))

    def base_name(self, name: str, among: Sequence[str] | None) -> str:
        """The row that `--base` names."""
        known = sorted({str(one) for one in self._names[self.over]}) if among is None else among
        extra = (WITH_FALLBACK,) if self.over == "option" else ()
        return _known(name, (*known, *extra), "--base", "such row" if among else self.over)

    def _best(self, name: str) -> tuple[Candidates, Bools, int | None]:
        """The candidates, which of them are within `name`, and the best, or the best of those that miss fewest."""
        # what removes an offer cannot be missed: such offers only say why there is nothing
        candidates, mine, at = self._best_of(name, admitted_only=True)
        return (candidates, mine, at) if at is not None else self._best_of(name, admitted_only=False)

    def _best_of(self, name: str, *, admitted_only: bool) -> tuple[Candidates, Bools, int | None]:
        engine = self._engine(self._limited(name), name, admitted_only=admitted_only)
        candidates = engine.at(self.deadline, _BEST).candidates
        mine = self._members(name, candidates)
        at = best_where(candidates, mine & (candidates.bits == 0), self.objective)
        if at is None:
            at = best_missing(candidates, mine, _MISSABLE_BITS, self.objective)
        return candidates, mine, at

    def _engine(self, limited: Workload, name: str, *, admitted_only: bool) -> Engine:
        """Candidates of the offers within `name`, or of those that keep the limits of the workload."""
        context = self.context.with_asked(replace(self.asked, workload=limited))
        # an option may be bought beside another
        among = None if admitted_only or self.over == "option" else self._mask(name)
        return Engine(
            context,
            shapes=self.engine.shapes,
            admitted_only=admitted_only,
            among=among,
            finer=self.engine.finer,
        )

    def expect(self, names: Sequence[str]) -> None:
        """Have the machines of types that are asked for one by one estimated together."""
        if self.over == "type":
            mine = np.isin(np.asarray(self._names["type"]), names) & (self.engine.offer_bits == 0)
            rows, shapes = hardware_of_offer(self.market)[mine], self.engine.shapes
            runs = shapes["hardware_row"][np.asarray(shapes["fits"], dtype=np.bool_)]
            self.engine.finer.expect(np.intersect1d(rows, runs))

    def half_ratios(self, name: str) -> tuple[float, float]:
        """Half of the intervals of a row's cost and hours over the figures, as of a plan."""
        candidates, _, at = self._best(name)
        if at is None:
            return 0.0, 0.0
        total = total_usd(lines_of(candidates, at))
        launch = launch_of(candidates, at, total)
        return half_ratios(total, float(candidates.hours[at]), launch, risk_of(candidates, at, total, launch))

    def row(self, name: str) -> Row:
        """The best plan within `name`, or the best of those that miss the fewest limits, or why there is none."""
        candidates, mine, at = self._best(name)
        if at is None:
            return Row(name, None, None, None, None, (), self._why_none(name, candidates.bits[mine]))
        end = candidates.context.dates.start + timedelta(hours=float(candidates.hours[at]))
        return Row(
            name, summarize(candidates, at, None), performance_of(candidates, at), moment_text(end),
            stated_chance(candidates, at),
            self._misses(candidates, at), "",
            storage_usd=sum((cost.amount_usd for cost in lines_of(candidates, at) if cost.id in STORAGE), Decimal(0)),
            data_in=data_kind(candidates, at),
            spot=self._saving(name) if self.over == "provider" else None,
        )  # fmt: skip

    def _misses(self, candidates: Candidates, at: int) -> tuple[str, ...]:
        """Limits that candidate `at` does not keep, those of the file without the row's own included."""
        found = [key for key in _MISSABLE if candidates.bits[at] & BIT[key]]
        rows = [part.row for part in candidates.parts(at)]
        if (
            self.deadline is not None
            and needs_record(self.asked.workload)
            and self.market.is_spot[rows].all()
        ):
            one = np.asarray([at])
            if not candidates.context.gang_risk(candidates.offer[one], candidates.nodes[one]).recorded[0]:
                found.append("unrecorded")
        return tuple(dict.fromkeys(found))

    def _members(self, name: str, candidates: Candidates) -> Bools:
        """Mask of the candidates within `name`, shape `(n_candidates,)`."""
        mine = self._mask(name)[candidates.offer]
        if name == WITH_FALLBACK:
            late = np.flatnonzero(candidates.kind == IN_TURN)
            backed = np.zeros(len(mine), dtype=np.bool_)
            if candidates.turns is not None:
                backed[late] = candidates.turns.has_fallback[candidates.detail[late]]
            mine = mine & backed
        return mine

    def _mask(self, name: str) -> Bools:
        """Mask of the offers within `name`, shape `(n_offers,)`."""
        option = "spot" if name == WITH_FALLBACK else name
        return np.asarray(self._names[self.over] == option, dtype=np.bool_)

    def _limited(self, name: str, **also: object) -> Workload:
        """The workload with one more limit."""
        workload = self.asked.workload
        limits = workload.constraints
        all_changes: dict[str, Mapping[str, object]] = {
            "region": {"regions": (name,)},
            "provider": {"providers": (name,)},
            "type": {"instance_types": limits.instance_types.model_copy(update={"allow": (name,)})},
            "option": {"purchase_options": ("spot", "on_demand") if name == WITH_FALLBACK else (name,)},
        }
        limits = limits.model_copy(update={**all_changes[self.over], **also})
        return workload.model_copy(update={"constraints": limits})

    def _why_none(self, name: str, bits: Ints) -> str:
        """Why nothing within `name` can run the job."""
        mask = self._mask(name)
        if not mask.any():
            return "no price is known"
        removed = bits if len(bits) else self.engine.offer_bits[mask]
        counts = sorted(count_filters(removed).counts, key=lambda one: -one.removed)
        return counts[0].description if counts else "does not run there at any size allowed"

    def _saving(self, name: str) -> SpotSaving | None:
        """What spot saves within a provider: in its list, and for this job."""
        costs: dict[str, tuple[float, float | None]] = {}
        for key, bought in (("spot", ("spot", "on_demand")), ("on_demand", ("on_demand",))):
            engine = self._engine(self._limited(name, purchase_options=bought), name, admitted_only=True)
            candidates = engine.at(self.deadline, _BEST).candidates
            with_spot = self.market.is_spot[candidates.offer] == (key == "spot")
            at = best_where(
                candidates, (candidates.bits == 0) & with_spot & self._mask(name)[candidates.offer], "cost"
            )
            if at is not None:
                costs[key] = float(candidates.cost_usd[at]), stated_chance(candidates, at)
        return saving_of(self.market, name, costs.get("spot"), costs.get("on_demand"))


def _known(
    name: str, known: Sequence[str], flag: str, what: str, hint_of: Callable[[str], str] | None = None
) -> str:
    """The one known name that `name` is or is short for.

    Raises:
        InputError: none is.
    """
    if name in known:
        return name
    same = [one for one in known if one.lower() == name.lower()] or [
        one for one in known if fits_name(name, one)
    ]
    if len(same) == 1:
        return same[0]
    if same:
        raise InputError(f"{flag} {name}: matches several: {', '.join(same[:8])}: name one")
    close = near(name, known)
    hint = hint_of(name) if hint_of is not None else f" (did you mean {close!r}?)" if close else ""
    raise InputError(f"{flag} {name}: the catalog has no {what} of that name{hint}")


def _against(question: _Question, rows: Sequence[Row], base: str | None) -> Comparison:
    """Sort the rows and compare each with the base."""
    first = {"cost": "cost_usd", "time": "hours", "carbon": "operational_kgco2e"}[question.objective]

    def order(row: Row) -> tuple[bool, bool, bool, float]:
        figure = None if row.best is None else getattr(row.best, first)
        value = np.inf if figure is None else float(figure)
        return row.name != base, row.best is None, bool(row.misses), value

    ranked = sorted(rows, key=order)
    name, of_regions = ranked[0].name if ranked else "", question.over == "region"
    gaps = gaps_to(question.market, name) if of_regions else {}
    kept = min((row for row in ranked if row.best is not None), key=lambda row: order(row)[2:], default=None)
    ratios = (0.0, 0.0) if kept is None else question.half_ratios(kept.name)
    asked, now = question.asked, question.context.dates.now
    return Comparison(
        asked.workload.name, question.over, name, question.objective,
        tuple(replace(_relative(row, ranked[0]), list_gap=gaps.get(row.name)) for row in ranked), 0,
        tested_claims(question.market, name, [row.name for row in ranked]) if of_regions else (),
        *ratios, asked.sha256, moment_text(now), sources_of(question.market.catalog),
        asked.assumptions.beside_by_default, tuple(assumed_sizes(asked.job.assumptions)),
    )  # fmt: skip


def _relative(row: Row, base: Row) -> Row:
    """The row with its ratios to the base."""
    if row.best is None or base.best is None:
        return row
    assert row.performance is not None and base.performance is not None
    change = row.best.cost_usd - base.best.cost_usd
    best = replace(row.best, delta_cost_usd=change, delta_hours=row.best.hours - base.best.hours)
    return replace(
        row, best=best, hours_ratio=row.best.hours / base.best.hours,
        cost_ratio=float(row.best.cost_usd / base.best.cost_usd) if base.best.cost_usd else None,
        speed_ratio=row.performance.throughput_per_s / base.performance.throughput_per_s,
    )  # fmt: skip
