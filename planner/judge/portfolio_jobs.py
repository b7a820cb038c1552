"""A job of a portfolio recomputed: a workload as a plan of its own, a sized candidate from the file; and its draws."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, Any

from catalogs.offers.static import load_static
from planner.inputs.checks import end_moment, start_moment
from planner.judge import frame
from planner.judge.bench import Bench, Candidate, NotRecomputedError
from planner.judge.findings import Findings, Near, NotRecomputed, Printed, Timestamp
from planner.judge.limits import check_offer, line_of
from planner.judge.memory import Memory
from planner.judge.money import tiers
from planner.judge.pipeline import part_of
from planner.judge.portfolio_parts import (
    MICRO_USD,
    SIZED_UNIT,
    UNITS,
    Draw,
    Run,
    Windows,
    late_hours,
    quota_names,
)
from planner.judge.portfolio_sized import Sized, named_candidate, read_candidates, sized_in_file
from planner.judge.purchases import Buy
from planner.judge.single import obligations
from planner.judge.work import GB, work_of

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import PortfolioJob
    from planner.inputs.schema import Workload
    from planner.judge.document import Node
    from planner.judge.goods import Goods, Offer

_TIE = 1e-7


class PortfolioMemory:
    """A portfolio with what was recomputed of it, so that many answers are judged at the cost of few."""

    def __init__(self, loaded: LoadedPortfolio, catalog: Catalog | None) -> None:
        """Take the question and the catalog; None where the answer names none."""
        self.loaded, self.catalog = loaded, catalog
        self._workloads: dict[tuple[int, datetime], tuple[Workload, Bench]] = {}
        self._benches: dict[tuple[int, datetime, float], Bench] = {}
        self._memories: dict[Any, Memory] = {}

    @cached_property
    def copies(self) -> list[tuple[str, int]]:
        """Name of each job with its entry in the file; equal jobs are numbered."""
        return [
            (job.name if job.count == 1 else f"{job.name}#{number + 1}", entry)
            for entry, job in enumerate(self.loaded.jobs)
            for number in range(job.count)
        ]

    @cached_property
    def own(self) -> list[tuple[tuple[str, ...], int]]:
        """Machines of the workloads' files and how many there are of each, in the order of their names."""
        names = ("provider", "region", "instance_type", "purchase_option")
        counts: dict[tuple[str, ...], int] = {}
        for path in {
            path.resolve()
            for item in self.loaded.workloads
            if item is not None
            for path in item.offer_paths()
        }:
            offers = load_static(path).offers
            of_file: dict[tuple[str, ...], int] = {}
            for row in range(offers.n_rows):
                key = tuple(str(offers[name][row]) for name in names)
                of_file[key] = of_file.get(key, 0) + int(offers.number("capacity")[row])
            for key, count in of_file.items():
                counts[key] = min(count, counts.get(key, count))
        return sorted(counts.items())

    def own_pool(self, place: dict[str, str], offer: Offer) -> int | None:
        """The pool of a machine of a workload's file, numbered after the portfolio's commitments."""
        if not offer.text("source").startswith("user file "):
            return None
        keys = [key for key, _ in self.own]
        return len(self.loaded.portfolio.commitments) + keys.index(tuple(place.values()))

    def origin(self, created: datetime) -> datetime:
        """The portfolio's start."""
        start = self.loaded.portfolio.start
        return created if start is None else start_moment(start)

    def hours(self, moment: datetime, created: datetime) -> float:
        """Hours of a moment after the portfolio's start."""
        return (moment - self.origin(created)).total_seconds() / 3600.0

    def first_hours(self, entry: int, created: datetime) -> float:
        """The earliest start of a job."""
        earliest = self.loaded.jobs[entry].earliest_start
        return 0.0 if earliest is None else max(self.hours(start_moment(earliest), created), 0.0)

    def deadline_hours(self, entry: int, created: datetime) -> float | None:
        """When a job must have ended: its own deadline, else its workload's; None without one."""
        job, loaded = self.loaded.jobs[entry], self.loaded.workloads[entry]
        deadline, begin = job.deadline, 0.0
        if deadline is None and loaded is not None:
            deadline, begin = loaded.workload.constraints.deadline, self.first_hours(entry, created)
        if deadline is None:
            return None
        if isinstance(deadline, timedelta):
            return begin + deadline / timedelta(hours=1)
        return self.hours(end_moment(deadline), created)

    def pool(self, offer: dict[str, str], part: Node) -> int | None:
        """The commitment that a part says it draws on, by its place in the file; one of those that its offer is of."""
        fits = {
            f"commitments[{at}]": at
            for at, owned in enumerate(self.loaded.portfolio.commitments)
            if all(getattr(owned, name) == value for name, value in offer.items())
        }
        label = part["commitment"]
        if not fits:
            return None
        if not isinstance(label.value, str) or label.value not in fits:
            label.fail(f"one of {', '.join(fits)}")
        return fits[label.value]

    @cached_property
    def sized(self) -> list[list[Sized]]:
        """Candidates sized in the file, by entry."""
        beside = self.loaded.portfolio.candidates_csv
        rows = {} if beside is None else read_candidates(self.loaded.beside(beside))
        return [sized_in_file(job) or rows.get(job.name, []) for job in self.loaded.jobs]

    def _own(self, entry: int, created: datetime) -> tuple[Workload, Bench]:
        """A job's workload with what the portfolio decides, and what its candidates are recomputed with."""
        key = (entry, created)
        if key not in self._workloads:
            job_workload = self.loaded.workloads[entry]
            assert job_workload is not None and self.catalog is not None
            update = {"earliest_start": None, "commitments": self.loaded.portfolio.commitments}
            workload = job_workload.workload.model_copy(update=update)
            folder = job_workload.path.parent
            memory = self._memories.setdefault(folder, Memory(self.catalog, folder))
            goods = memory.goods(workload, created.date())
            bench = Bench(workload, work_of(workload), goods, self.origin(created), None, planned=created)
            self._workloads[key] = workload, bench
        return self._workloads[key]

    def bench(self, entry: int, created: datetime, begin: float) -> Bench:
        """What a job's candidates are recomputed with when it begins so many hours after the portfolio."""
        key = (entry, created, begin)
        if key not in self._benches:
            workload, original = self._own(entry, created)
            limit, origin = self.deadline_hours(entry, created), self.origin(created)
            until = None if limit is None else origin + timedelta(hours=min(limit, 1e6))
            start = origin + timedelta(hours=min(begin, 1e6))
            job_workload = self.loaded.workloads[entry]
            assert job_workload is not None
            goods = self._memories[job_workload.path.parent].goods(workload, created.date(), start.date())
            bench = Bench(workload, original.work, goods, start, until, planned=created)
            bench.share(original)
            self._benches[key] = bench
        return self._benches[key]

    def job(
        self, findings: Findings, entry: int, node: Node, created: datetime, windows: Windows, *, follows: bool
    ) -> tuple[dict[str, Any], Run]:  # fmt: skip
        """What a job that is run must say, and what it draws when."""
        begin = node["start_hours"].number()
        first = self.first_hours(entry, created)
        later = follows or self.loaded.portfolio.starts == "windows"
        starts = [first, *(hours for hours in windows.starts if hours > first and later)]
        is_start = any(abs(begin - hours) <= _TIE for hours in starts)
        findings.require(
            is_start, node["start_hours"].path, "neither its earliest start nor that of a later window"
        )
        if not 0 <= begin <= 1e6:
            node["start_hours"].fail("hours from 0 to 1e6")
        if self.loaded.workloads[entry] is None:
            expected, run = self._sized_job(entry, node, begin, created)
        else:
            expected, run = self._workload_job(findings, entry, node, begin, created)
        job, origin = self.loaded.jobs[entry], self.origin(created)
        delay = Fraction(job.delay_usd_per_hour) * Fraction(run.end)
        counted = node["cost_usd"].money() + delay
        return {
            "job": node["job"].value, "start_hours": Near(begin),
            "start": Timestamp(origin + timedelta(hours=begin)),
            "end": Timestamp(origin + timedelta(hours=min(run.end, 1e6))),
            "counted_usd": Near(counted, slack=2 * MICRO_USD), **expected,
        }, run  # fmt: skip

    def _sized_job(
        self, entry: int, node: Node, begin: float, created: datetime
    ) -> tuple[dict[str, Any], Run]:
        job = self.loaded.jobs[entry]
        sized = named_candidate(self.sized[entry], node, job)
        usd = sized.usd + self._moved(job, sized)
        end = begin + sized.hours
        limit = self.deadline_hours(entry, created)
        late = 0.0 if limit is None else max(end - limit, 0.0)
        place = {
            "provider": sized.provider, "region": sized.region, "instance_type": sized.instance_type,
            "purchase_option": sized.purchase_option,
        }  # fmt: skip
        pool, amounts = self.pool(place, node["parts"][0]), self._amounts(sized)
        offer_id = "/".join(
            (sized.provider, sized.region, "-", sized.instance_type, sized.purchase_option, "-")
        )
        draws = {unit: Near(amount) for unit, amount in amounts.items()}
        part = {"offer_id": offer_id, "nodes": sized.nodes, "draws": draws, **_of_pool(pool)}
        drawn = Draw(
            sized.provider, sized.region, sized.instance_type, sized.purchase_option, nodes=sized.nodes,
            amounts=amounts, names={sized.family: SIZED_UNIT} if sized.family else {}, declared=sized.quota_units,
            pool=pool, paid=True,
        )  # fmt: skip
        return {
            **place, **_lateness(late), "zone": "", "option_variant": "", "nodes": sized.nodes, "offer_id": offer_id,
            "hours": Printed(sized.hours, 4),
            "end_hours": Near(end, slack=1e-11), "cost_usd": Near(usd, 1e-12, 2.1 * MICRO_USD),
            "owned": pool is not None, "in_turn": False, "parts": [part],
        }, Run(node.path, begin, node["end_hours"].number(), False, (drawn,), late)  # fmt: skip

    def _amounts(self, candidate: Sized) -> dict[str, float]:
        """What an instance of a sized candidate draws in each unit: as declared, else by its type's own numbers."""
        amounts = {SIZED_UNIT: 1.0, "instances": 1.0}
        if candidate.quota_units is not None:
            return amounts | dict.fromkeys(UNITS, 1.0)
        in_units = any(quota.unit in ("vCPU", "GPU") for quota in self.loaded.portfolio.quota)
        if not candidate.family or not in_units or self.catalog is None:
            return amounts
        types = self.catalog.instance_types
        hit = types.equals("provider", candidate.provider) & types.equals(
            "instance_type", candidate.instance_type
        )
        rows = hit.nonzero()[0]
        if not len(rows):
            return amounts
        kind = types.row(int(rows[0]))
        by_unit = {"vCPU": float(kind["vcpus"]), "GPU": float(kind["accelerator_count"])}
        return amounts | {unit: number for unit, number in by_unit.items() if number > 0}

    def _moved(self, job: PortfolioJob, one: Sized) -> Fraction:
        """USD for a job's data into the candidate's region."""
        if job.data is None:
            return Fraction(0)
        from catalogs.tariffs import load_tariffs

        tariffs, source = load_tariffs(), job.data.location.partition("/")
        curve = tariffs.transfer_curve(source[0], source[2], one.provider, one.region)
        curve = tariffs.dearest_internet_curve() if curve is None else curve
        parts = tiers(curve, float(Fraction(job.data.size) / GB), 0.0)
        return sum((quantity * price for quantity, price in parts), Fraction(0))

    def _workload_job(
        self, findings: Findings, entry: int, node: Node, begin: float, created: datetime
    ) -> tuple[dict[str, Any], Run]:
        bench = self.bench(entry, created, begin)
        buys = []
        for part in node["parts"]:
            count = frame.instances(part)
            buys.append(Buy(bench.goods.offer(part.path, part["offer_id"].text()), count))
        in_turn = node["in_turn"].flag()
        draws = tuple(
            self._draw(bench.goods, buy, part) for buy, part in zip(buys, node["parts"], strict=True)
        )
        buys = [
            replace(buy, commitment=draw.pool) if draw.paid else buy
            for buy, draw in zip(buys, draws, strict=True)
        ]
        if not buys:
            node["parts"].fail("one purchase at least")
        # a way in parts is named by its first offer
        first = buys[0].offer
        names = {name: first.text(name) for name in ("provider", "region", "zone", "instance_type")}
        expected: dict[str, Any] = {
            **names, "purchase_option": frame.bought_text(buys, in_turn=in_turn), "offer_id": first.offer_id,
            "option_variant": first.text("option_variant") if len(buys) == 1 else "", "in_turn": in_turn,
            "nodes": buys[0].nodes if in_turn else sum(buy.nodes for buy in buys),
            "owned": any(draw.pool is not None and draw.paid for draw in draws),
        }  # fmt: skip
        for text in (*_offer_faults(bench, buys, expected["nodes"]), *_quota_faults(bench, draws, in_turn)):
            findings.fault(node.path, text)
        try:
            candidate = bench.candidate(buys, in_turn=in_turn)
        except NotRecomputedError as error:
            why = NotRecomputed(str(error))
            left = dict.fromkeys(
                ("hours", "end_hours", "cost_usd", "status", "late_hours", "counted_usd"), why
            )
            parts = [
                {**_named(buy, draw), "hours": why, "lines": why}
                for buy, draw in zip(buys, draws, strict=True)
            ]
            end = node["end_hours"].number()
            return {**expected, **left, "parts": parts}, Run(node.path, begin, end, not in_turn, draws, None)
        ratio = frame.closeness(candidate)
        late, slack = late_hours(bench, candidate), candidate.hours * ratio
        for text in _budget_faults(bench, candidate):
            findings.fault(node["cost_usd"].path, text)
        parts = [
            part_of(part, candidate) | _drawn(draw) for part, draw in zip(candidate.parts, draws, strict=True)
        ]
        return {
            **expected,
            **_lateness(*late),
            "parts": parts,
            "hours": Printed(candidate.hours, 4, slack),
            "end_hours": Near(begin + candidate.hours, slack=slack),
            "cost_usd": Near(candidate.cost, ratio, 2 * MICRO_USD),
        }, Run(node.path, begin, node["end_hours"].number(), not in_turn, draws, late[0])

    def _draw(self, goods: Goods, buy: Buy, part: Node) -> Draw:
        offer = buy.offer
        place = {
            name: offer.text(name) for name in ("provider", "region", "instance_type", "purchase_option")
        }
        family, accelerator = str(offer.kind["family"]), str(offer.kind["accelerator"])
        names = quota_names(goods.tariffs, place["provider"], family, accelerator, place["purchase_option"])
        numbers = {"vCPU": float(offer.kind["vcpus"]), "GPU": offer.accelerators, "instances": 1.0}
        amounts = {unit: amount for unit, amount in numbers.items() if not isnan(amount)}
        pool = self.pool(place, part) if offer.owned else self.own_pool(place, offer)
        return Draw(
            place["provider"], place["region"], place["instance_type"], place["purchase_option"], nodes=buy.nodes,
            names=names, amounts=amounts, declared=None, pool=pool, paid=offer.owned,
        )  # fmt: skip


def _offer_faults(bench: Bench, buys: list[Buy], nodes: int) -> list[str]:
    """Limits of the workload on what may be bought."""
    limits = bench.workload.constraints
    faults = [text for buy in buys for text in check_offer(line_of(buy.offer), bench.workload)]
    if nodes > limits.max_nodes:
        faults.append(f"{nodes} nodes exceed max_nodes {limits.max_nodes}")
    return faults


def _quota_faults(bench: Bench, draws: tuple[Draw, ...], in_turn: bool) -> list[str]:
    """Quotas of the job's own file that it breaks by itself."""
    together, faults = max if in_turn else sum, []
    for quota in bench.workload.constraints.quota:
        for region in sorted({draw.region for draw in draws if draw.counts(quota)}):
            used = together(
                draw.units(quota) for draw in draws if draw.region == region and draw.counts(quota)
            )
            if used > quota.limit * (1 + 1e-9):
                faults.append(
                    f"quota {quota.quota} in {region}: needs {used:g}, its file declares {quota.limit:g}"
                )
    return faults


def _budget_faults(bench: Bench, candidate: Candidate) -> list[str]:
    budget = bench.workload.constraints.budget_usd
    owed = sum((usd for usd, _, _ in obligations(bench, candidate)), Fraction(0))
    if budget is None or owed <= Fraction(budget) * (1 + Fraction(1, 10**6)):
        return []
    return [f"cash obligations {float(owed):.2f} exceed the workload's budget {budget}"]


def _lateness(late: float, slack: float = 0.0) -> dict[str, Any]:
    return {
        "status": "late" if late > 0 else "planned",
        "late_hours": Printed(late, 2, slack + 1e-9) if late else 0.0,
    }


def _drawn(draw: Draw) -> dict[str, Any]:
    amounts = {unit: Near(amount) for unit, amount in draw.amounts.items()}
    if draw.pool is not None and not draw.paid:
        name = f"{draw.provider}/{draw.region} {draw.instance_type} ({draw.purchase_option})"
        return {"draws": amounts, "owned": False, "commitment": name}
    return {"draws": amounts, **_of_pool(draw.pool)}


def _of_pool(pool: int | None) -> dict[str, Any]:
    return {"owned": pool is not None, "commitment": None if pool is None else f"commitments[{pool}]"}


def _named(buy: Buy, draw: Draw) -> dict[str, Any]:
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    text = {name: buy.offer.text(name) for name in names}
    return {"offer_id": buy.offer.offer_id, "nodes": buy.nodes, **text, **_drawn(draw)}
