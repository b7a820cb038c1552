"""The laws of DESIGN.md section 6 on whole answers of drawn workloads over the bundled catalog.

A law asks `planner optimize` again after one change and compares on proven bounds. Each returns what it finds
wrong, in words. `benchmarks.laws` runs all of them on thousands of workloads, the suite some on each of thirty.

What no law reads is not worked out: where nothing fits, what would fit is asked for the plan itself and for mixed rows
alone; every second workload asks for costs alone (`Options.brief`), so that the two searches answer to each other.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.instances.drawn_workloads import Sections, draw_workload
from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from catalogs.tables.table import Table
from planner.asked.options import Options
from planner.candidates.context import Context
from planner.candidates.engine import CandidateSearch, Engine
from planner.candidates.plan_parts.infeasible import infeasible_plan
from planner.candidates.prepare import prepare
from planner.candidates.wanted import Wanted
from planner.errors import PlannerError
from planner.judge.judge import judge_saved
from planner.judge.memory import Memory
from planner.market.storage.stores import ALIKE_USD
from planner.plan.model import Plan
from planner.workloads.answer import optimize
from tests.planner.candidate_laws import memory_headroom, roofline, shapes_of, transfer_prices
from tests.planner.job.one_engine_answers import Asked
from tests.planner.spine_catalogs import ScaledTariffs, loaded

DAY = datetime(2026, 11, 20, tzinfo=UTC)
OPTIONS = Options(DAY, as_of=DAY.date())
BRIEF = replace(OPTIONS, brief=True)
FACTORS = (Decimal("0.25"), Decimal(3), Decimal(1000))
WHOLE_FRONTIERS = 5  # in one workload of so many all deadlines of the frontier are asked for, else its ends
ONE_OFFER = Wanted(one_offer=True)
CLOSE = 1 + Decimal("1e-9")
_REGION_KEYS = ("provider", "region")


@functools.cache
def bundled() -> Catalog:
    """The bundled catalog, read once."""
    return load_catalog(None, as_of=DAY.date())


def with_offers(offers: Table) -> Catalog:
    """The bundled catalog with other offers."""
    whole = bundled()
    return Catalog(whole.instance_types, offers, whole.accelerators, whole.manifests)


def ask(sections: Sections, catalog: Catalog | None = None, options: Options = OPTIONS) -> Plan:
    """The plan of `planner optimize`."""
    return optimize(loaded(sections), options, catalog=catalog or bundled()).plan


@contextmanager
def unexplained() -> Iterator[None]:
    """Where nothing fits, an answer says so and not what would: that takes longer than to find out."""

    def empty(found: CandidateSearch, _begin: float) -> tuple[Plan, CandidateSearch]:
        return infeasible_plan(found, (), 0.0), found

    with mock.patch("planner.job.answer._explain_empty", empty):
        yield


def compared(sections: Sections, catalog: Catalog | None = None, options: Options = OPTIONS) -> Plan:
    """The plan of `planner optimize` for laws that compare what is bought and its cost, no explanation."""
    with unexplained():
        return ask(sections, catalog, options)


def cost(plan: Plan) -> Decimal | None:
    """What it costs; None: nothing fits."""
    return plan.total_usd if plan.status == "planned" else None


def bound(plan: Plan) -> Decimal | None:
    """What nothing can be cheaper than; None: nothing fits."""
    assert plan.proof is not None
    return plan.proof.bound_usd if plan.status == "planned" else None


def not_dearer(new: Plan, old: Plan, spare: Decimal = Decimal("1e-6")) -> bool:
    """Whether the optimum did not rise by more than `spare`, as far as bounds prove."""
    before, after = cost(old), bound(new)
    return before is None or (after is not None and after <= before * CLOSE + spare)


def quoted(sections: Sections) -> Sections:
    """At quoted prices: the price to expect of a type follows from all its offers, so one more offer moves others."""
    return {**sections, "preferences": {"prices": "quoted"}}


def limited(sections: Sections, **changes: Any) -> Sections:
    """With other limits; None removes one."""
    limits = {**sections["constraints"], **changes}
    return {**sections, "constraints": {key: value for key, value in limits.items() if value is not None}}


@dataclass
class Drawn:
    """A workload, its plan, and the dice of what is changed in it."""

    seed: int
    sections: Sections
    dice: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Take the dice."""
        self.dice = np.random.default_rng(self.seed)

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan."""
        return ask(self.sections)

    @functools.cached_property
    def context(self) -> Context:
        """The job and what it can run on, before candidates are built."""
        given = loaded(self.sections)
        return prepare(given, given.workload, bundled(), OPTIONS)

    @functools.cached_property
    def shapes(self) -> Table:
        """The layouts that candidates begin with."""
        return shapes_of(self.context)

    @property
    def options(self) -> Options:
        """Flags where costs alone are compared: every second workload has the search that prices nothing beside."""
        return BRIEF if self.seed % 2 else OPTIONS

    @functools.cached_property
    def plan_at_quotes(self) -> Plan:
        """The plan at quoted prices."""
        return compared(quoted(self.sections))


def more_offers(drawn: Drawn) -> list[str]:
    """Adding offers never raises the optimum."""
    offers = bundled().offers
    fewer = with_offers(offers.take(drawn.dice.random(offers.n_rows) < 0.7))
    try:
        part = compared(quoted(drawn.sections), fewer, drawn.options)
    except PlannerError:  # the offers left out held a name that the workload asks for
        return []
    if not_dearer(drawn.plan_at_quotes, part):
        return []
    return [f"all offers {cost(drawn.plan_at_quotes)}, 70 % of them {cost(part)}"]


RELAXED: dict[str, Callable[[Sections], Sections]] = {
    "deadline": lambda s: limited(s, deadline=_hours(s, 1.6)),
    "no deadline": lambda s: limited(s, deadline=None),
    "confidence": lambda s: limited(s, deadline_confidence=0.5) if "deadline" in s["constraints"] else s,
    "budget": lambda s: limited(s, budget_usd=_times(s, "budget_usd", 3)),
    "max_nodes": lambda s: limited(s, max_nodes=2 * s["constraints"]["max_nodes"]),
    "quota": lambda s: limited(
        s, quota=[{**one, "limit": 2 * one["limit"]} for one in s["constraints"].get("quota", [])]
    ),
    "regions": lambda s: limited(s, regions=None),
    "options": lambda s: limited(s, purchase_options=None) if _falls_back(s) else s,
}  # fmt: skip


def _falls_back(sections: Sections) -> bool:
    """Naming spot alone admits it without a record, which all ways to buy do not: no relaxation."""
    return "on_demand" in (sections["constraints"].get("purchase_options") or ("on_demand",))


def _hours(sections: Sections, times: float) -> str | None:
    given = sections["constraints"].get("deadline")
    return None if given is None else f"{float(given.removesuffix('h')) * times:.2f}h"


def _times(sections: Sections, key: str, times: float) -> Any:
    given = sections["constraints"].get(key)
    return None if given is None else given * times


def relaxed(drawn: Drawn) -> list[str]:
    """Relaxing a limit never raises the optimum."""
    name = str(drawn.dice.choice(list(RELAXED)))
    loose = RELAXED[name](drawn.sections)
    if cost(drawn.plan) is None or loose["constraints"] == drawn.sections["constraints"]:
        return []  # nothing that could rise
    after = compared(loose, options=drawn.options)
    return [] if not_dearer(after, drawn.plan) else [f"{name}: {cost(drawn.plan)}, relaxed {cost(after)}"]


def scaled(drawn: Drawn) -> list[str]:
    """Prices, tariffs and the budget times k: the cost times k."""
    times = FACTORS[int(drawn.dice.integers(len(FACTORS)))]
    # not scaled: what a machine-hour of packing is assumed to cost, and the cent up to which local disks are preferred
    job = {**quoted(drawn.sections), "storage": {"data": "object"}}
    after_job = limited(job, budget_usd=_exact_times(job, times))
    before = compared(job, options=drawn.options)
    tariffs = ScaledTariffs(times)
    with mock.patch("planner.candidates.prepare.load_tariffs", lambda: tariffs):
        after = _unverified(after_job, _dear(times), drawn.options)
    if before.status != after.status:
        return [f"x {times}: {before.status}, then {after.status}"]
    off = abs(float(after.total_usd) - float(before.total_usd * times))
    return [] if off <= 1e-9 * abs(float(after.total_usd)) + 1e-6 else [
        f"x {times}: {before.total_usd}, then {after.total_usd}"
    ]  # fmt: skip


_PRICES = ("price_per_hour", "upfront_per_instance")


@functools.cache
def _dear(times: Decimal) -> Catalog:
    offers = bundled().offers
    return with_offers(
        offers.with_columns(
            **{name: [_product(text, times) for text in offers[name].tolist()] for name in _PRICES}
        )
    )


def _product(text: str, times: Decimal) -> str:
    return f"{Decimal(text) * times:f}" if text else text


def _exact_times(sections: Sections, times: Decimal) -> str | None:
    given = sections["constraints"].get("budget_usd")
    return None if given is None else f"{given * times:f}"


def _unverified(sections: Sections, catalog: Catalog, options: Options = OPTIONS) -> Plan:
    """Without the check that reads the bundled tariffs, which have other prices."""
    with mock.patch("planner.workloads.answer.verify_plan", lambda *_args, **_flags: []):
        return compared(sections, catalog, options)


def row_order(drawn: Drawn) -> list[str]:
    """Rows in another order: the same plan."""
    offers, types = bundled().offers, bundled().instance_types
    mixed = Catalog(
        types.take(drawn.dice.permutation(types.n_rows)), offers.take(drawn.dice.permutation(offers.n_rows)),
        bundled().accelerators, bundled().manifests,
    )  # fmt: skip
    after = ask(drawn.sections, mixed)
    if drawn.sections["kind"] == "fleet":  # of plans within the gap any may be found
        bounds = not_dearer(after, drawn.plan) and not_dearer(drawn.plan, after)
        return [] if bounds else [f"{cost(drawn.plan)}, rows mixed {cost(after)}"]
    same = (after.lines, after.total_usd, after.hours, after.alternatives, after.relaxations) == (
        drawn.plan.lines, drawn.plan.total_usd, drawn.plan.hours, drawn.plan.alternatives, drawn.plan.relaxations,
    )  # fmt: skip
    return [] if same else [f"{drawn.plan.total_usd}, rows mixed {after.total_usd}"]


def duplicates(drawn: Drawn) -> list[str]:
    """Twins of offers share one capacity: the same plan."""
    offers = bundled().offers
    twins = _some_rows(drawn, 40)
    after = compared(quoted(drawn.sections), with_offers(Table.concat([offers, offers.take(twins)])))
    before = drawn.plan_at_quotes
    # the range of a price to come follows from all offers of its type, twins included
    bought = [[(line.offer_id, line.nodes, line.cost_usd) for line in plan.lines] for plan in (before, after)]
    same = bought[0] == bought[1] and before.n_results == after.n_results
    if drawn.sections["kind"] == "fleet":
        same = not_dearer(after, before) and not_dearer(before, after)
    return [] if same else [f"{before.total_usd}, with twins {after.total_usd}"]


def _some_rows(drawn: Drawn, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of offers, those that the plan buys among them."""
    offers = bundled().offers
    drawn_rows = drawn.dice.choice(offers.n_rows, size=count, replace=False)
    return np.unique(np.r_[drawn_rows, _bought(drawn.plan_at_quotes)]).astype(np.int64)


def _bought(plan: Plan) -> list[int]:
    ids = {line.offer_id for line in plan.lines}
    return [row for row, name in enumerate(_offer_ids()) if name in ids]


@functools.cache
def _offer_ids() -> list[str]:
    keys = bundled().offers.keys_of(
        "provider", "region", "zone", "instance_type", "purchase_option", "option_variant"
    )
    return ["/".join(part or "-" for part in key) for key in keys]


def dominated(drawn: Drawn) -> list[str]:
    """What is dearer and else the same is never taken but to top up the better one."""
    offers = bundled().offers
    rows = _some_rows(drawn, 40)
    rows = rows[offers.equals("purchase_option", "on_demand")[rows]]
    worse = offers.take(rows)
    worse = worse.with_columns(
        zone=["dear"] * worse.n_rows,
        price_per_hour=[_product(text, Decimal("1.01")) for text in worse["price_per_hour"].tolist()],
    )
    after = compared(quoted(drawn.sections), with_offers(Table.concat([offers, worse])), drawn.options)
    taken = [line.offer_id for line in after.lines if line.zone == "dear"]
    fleet = drawn.sections["kind"] == "fleet"
    if not_dearer(after, drawn.plan_at_quotes) and (fleet or not taken):
        return []
    return [f"{cost(drawn.plan_at_quotes)}, with dearer twins {cost(after)}, taken {taken}"]


def renamed(drawn: Drawn) -> list[str]:
    """Other names of regions, in another order: the same cost and machines."""
    offers = bundled().offers
    sections = {key: value for key, value in drawn.sections.items() if key != "commitments"}
    sections = limited(sections, regions=None, quota=None)
    sections["data"] = {"size": drawn.sections["data"]["size"]}
    kept = offers.take(offers.is_in("provider", drawn.dice.choice(["aws", "gcp", "azure"], 2)))
    places = sorted(set(kept.keys_of(*_REGION_KEYS)))
    plans = []
    for order in (range(len(places)), drawn.dice.permutation(len(places)).tolist()):
        names = {place: f"place-{number:03d}" for place, number in zip(places, order, strict=True)}
        regions = [names[place] for place in kept.keys_of(*_REGION_KEYS)]
        named = kept.with_columns(region=regions, zone=[""] * kept.n_rows)
        plans.append(_unverified(sections, with_offers(_first_of_each(named))))
    first, second = plans
    if sections["kind"] == "fleet":
        same = not_dearer(first, second) and not_dearer(second, first)
        return [] if same else [f"{cost(first)}, renamed {cost(second)}"]
    same = (cost(first), first.hours) == (cost(second), second.hours)
    machines = [[line.instance_type for line in plan.lines] for plan in plans]
    if same and machines[0] == machines[1]:
        return []
    return [f"{cost(first)} {machines[0]}, renamed {cost(second)} {machines[1]}"]


def _first_of_each(offers: Table) -> Table:
    keys = offers.keys_of("provider", "region", "instance_type", "purchase_option", "option_variant")
    return offers.take(sorted({key: row for row, key in reversed(list(enumerate(keys)))}.values()))


def sums(drawn: Drawn) -> list[str]:
    """Lines sum to the total exactly, alternatives to their differences, cash to what is paid."""
    plan = drawn.plan
    if plan.status != "planned":
        return []
    parts = sum((item.amount_usd for line in plan.lines for item in line.costs), Decimal(0))
    wrong = [] if parts == plan.total_usd else [f"lines {parts}, total {plan.total_usd}"]
    return wrong + [
        f"alternative {other.cost_usd} is not {plan.total_usd} + {other.delta_cost_usd}"
        for other in plan.alternatives
        if other.cost_usd != plan.total_usd + other.delta_cost_usd
    ]


def judged(drawn: Drawn) -> list[str]:
    """The answer holds before the judge."""
    given = loaded(drawn.sections)
    answer = json.loads(json.dumps(drawn.plan.to_dict()))
    return list(judge_saved(answer, given, memory=Memory(bundled(), Path())).faults)


def chance_of_the_deadline(drawn: Drawn) -> list[str]:
    """P(deadline met) of every candidate never falls when the deadline moves later."""
    if drawn.sections["kind"] == "fleet" or "deadline" not in drawn.sections["constraints"]:
        return []
    last: dict[tuple[Any, ...], float] = {}
    wrong: list[str] = []
    given = loaded(limited(drawn.sections, deadline_confidence=1e-6))
    context = prepare(given, given.workload, bundled(), OPTIONS)
    assert context.dates.deadline is not None
    engine, length = Engine(context), context.dates.deadline - context.dates.start
    for times in (1.0, 1.3, 2.5):
        found = engine.at(context.dates.start + times * length, ONE_OFFER)
        made = found.candidates
        at = np.flatnonzero((made.kind == 0) & ~np.isnan(made.p_meet))
        columns = (made.offer, made.nodes, made.shape, made.p_meet)
        for offer, nodes, shape, chance in zip(*(column[at].tolist() for column in columns), strict=True):
            key = (offer, nodes, shape)
            if chance < last.get(key, 0.0) - 1e-9:
                wrong.append(f"{key}: {last[key]}, at {times} x the deadline {chance}")
            last[key] = chance
    return wrong[:3]


def more_data(drawn: Drawn) -> list[str]:
    """More data to move and keep never makes the cheapest plan cheaper, by more than what local disks may cost."""
    size = float(drawn.sections["data"]["size"].removesuffix("GB"))
    more = {**drawn.sections, "data": {**drawn.sections["data"], "size": f"{size * 2:.0f}GB"}}
    after = compared(more, options=drawn.options)
    # up to a cent more they are preferred, where the data fit on them
    fits = not_dearer(drawn.plan, after, Decimal(repr(ALIKE_USD)))
    return [] if fits else [f"{size:g} GB {cost(drawn.plan)}, twice {cost(after)}"]


def one_engine(drawn: Drawn) -> list[str]:
    """A portfolio of one job = a pipeline of one task = `optimize` = that point of the frontier, to the cent."""
    if drawn.sections["kind"] == "fleet":
        return []
    given = loaded(limited(drawn.sections, budget_usd=None))
    hours = _hours(drawn.sections, 1.0)
    lengths = (12.0, 100.0) if hours is None else (float(hours.removesuffix("h")),)
    steps = 0 if drawn.seed % WHOLE_FRONTIERS == 1 else 2
    return Asked(given, bundled(), OPTIONS, lengths, steps).disagreements()


def chosen_alone(drawn: Drawn) -> list[str]:
    """Where nothing is allowed but what a plan buys, the plan is the same."""
    if cost(drawn.plan) is None or drawn.sections["kind"] == "fleet":
        return []
    lines = drawn.plan.lines
    alone = {
        "instance_types": {"allow": sorted({line.instance_type for line in lines})},
        "accelerators": {"allow": sorted({line.accelerator for line in lines})},
        "providers": sorted({line.provider for line in lines}),
        "regions": sorted({f"{line.provider}/{line.region}" for line in lines}),
    }
    found = {
        key: cost(compared(limited(drawn.sections, **{key: only}), options=drawn.options))
        for key, only in alone.items()
    }
    want = cost(drawn.plan)
    return [f"{key} of the plan alone: {own}, it costs {want}" for key, own in found.items() if own != want]


def spelt_otherwise(drawn: Drawn) -> list[str]:
    """Sizes, durations and money in other units and keys in another order ask the same."""
    limits, size = drawn.sections["constraints"], float(drawn.sections["data"]["size"].removesuffix("GB"))
    hours, budget = _hours(drawn.sections, 1.0), limits.get("budget_usd")
    other = limited(
        drawn.sections,
        deadline=None if hours is None else f"{round(float(hours.removesuffix('h')) * 60)}m",
        budget_usd=None if budget is None else f"${budget:,}.00",
    )
    other["data"] = {**other["data"], "size": f"{size / 1000} TB"}
    after = compared(_reversed(other), options=drawn.options)
    return [] if cost(after) == cost(drawn.plan) else [f"{cost(drawn.plan)}, spelt otherwise {cost(after)}"]


def _reversed(value: Any) -> Any:
    """Mappings with their keys in reverse order, all the way down."""
    if not isinstance(value, dict):
        return value
    return {key: _reversed(item) for key, item in reversed(value.items())}


def firm_alone(drawn: Drawn) -> list[str]:
    """Firm prices ask what leaving spot out asks, and never cost less than the plan."""
    firm = compared({**drawn.sections, "preferences": {"prices": "firm"}}, options=drawn.options)
    other = compared(limited(drawn.sections, exclude_purchase_options=["spot"]), options=drawn.options)
    wrong = [] if cost(firm) == cost(other) else [f"firm {cost(firm)}, without spot {cost(other)}"]
    fits = drawn.sections["kind"] == "fleet" or not_dearer(drawn.plan, firm)
    return wrong if fits else [*wrong, f"firm {cost(firm)}, with spot {cost(drawn.plan)}"]


LAWS: dict[str, Callable[[Drawn], list[str]]] = {
    "more offers": more_offers, "a limit relaxed": relaxed, "prices scaled": scaled, "row order": row_order,
    "duplicates": duplicates, "dominated offers": dominated, "regions renamed": renamed, "sums": sums,
    "the judge": judged, "chance of the deadline": chance_of_the_deadline, "more data": more_data,
    "one engine": one_engine, "what was chosen alone": chosen_alone, "spelt otherwise": spelt_otherwise,
    "firm prices": firm_alone,
    "memory headroom": lambda drawn: memory_headroom(drawn.context, drawn.shapes),
    "roofline": lambda drawn: roofline(drawn.context, drawn.shapes),
    "transfer prices": lambda drawn: transfer_prices(drawn.context, drawn.dice),
}  # fmt: skip
ALWAYS = ("sums", "the judge", "memory headroom", "roofline", "transfer prices")


def broken_laws(seed: int, names: tuple[str, ...] = tuple(LAWS), *, kind: str = "training") -> list[str]:
    """What a drawn workload breaks, in words, with its seed."""
    told = f"seed {seed} ({kind})"
    drawn, wrong = Drawn(seed, draw_workload(seed, kind=kind)), list[str]()
    for name in names:
        try:
            wrong += [f"{told}, {name}: {text}" for text in LAWS[name](drawn)]
        except AssertionError as error:
            wrong.append(f"{told}, {name}, no answer: {error}")
    return wrong


def laws_of(dice: np.random.Generator, count: int) -> tuple[str, ...]:
    """So many laws, drawn, beside those that are always held."""
    others = [name for name in LAWS if name not in ALWAYS]
    drawn = dice.choice(others, size=min(count, len(others)), replace=False).tolist()
    return (*ALWAYS, *sorted(drawn))
