"""Judge a saved answer: read it, gather the catalog and the workload it names, compare everything that can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.judge import fleet, frame, single
from planner.judge.bench import Bench, ImpossibleError, NotRecomputedError
from planner.judge.document import Node
from planner.judge.findings import Findings
from planner.judge.goods import Goods, UnknownOfferError
from planner.judge.shape import check_shape
from planner.judge.stated import PLAN
from planner.judge.work import work_of
from planner.records import record

if TYPE_CHECKING:
    from catalogs.model import Catalog
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.inputs.tasks import TaskVariant


def judge_plan(
    answer: dict[str, Any],
    workload: Workload,
    sha256: str,
    catalog: Catalog,
    folder: Path,
    memory: Memory | None = None,
) -> Findings:
    """Judge the plan of `planner optimize`.

    Args:
        answer: its JSON.
        workload: the workload it is said to be of.
        sha256: hash of the workload file.
        catalog: the snapshots it names.
        folder: where the workload's file names start from.
        memory: what was recomputed for other answers of the same workload and catalog.
    """
    findings = Findings(Node(answer), PLAN)
    plan = findings.answer
    try:
        _judge(findings, plan, workload, sha256, memory or Memory(catalog, folder))
    except (UnknownOfferError, ImpossibleError) as error:
        findings.faults.append(str(error))
    except (ArithmeticError, ValueError) as error:
        findings.faults.append(f"its figures cannot be recomputed: {error}")
    return findings


def _judge(findings: Findings, plan: Node, workload: Workload, sha256: str, memory: Memory) -> None:
    created = plan["created_at"].moment()
    variants = memory.variants(workload)
    chosen = next((variant for variant in variants if variant.chosen), None)
    bench = memory.bench(workload if chosen is None else chosen.workload, created)
    first = () if chosen is None else tuple(
        {"key": a.key, "value": a.value, "unit": a.unit, "origin": a.origin, "note": a.note}
        for a in chosen.assumptions
    )  # fmt: skip
    if workload.kind == "fleet":
        fleet.check(findings, bench, sha256)
        return
    single.check(findings, bench, sha256)
    findings.expect(plan["assumptions"], frame.assumptions(bench, first))
    findings.expect(plan["confidence"], "low" if variants else "normal")
    findings.require(
        len(plan["sensitivity"]) == len(variants),
        "sensitivity",
        f"{len(variants)} rungs of the task expected",
    )
    if not variants:
        findings.saw(plan["sensitivity"])
    for node, variant in zip(plan["sensitivity"], variants, strict=False):
        findings.expect(node["name"], variant.name)
        findings.expect(node["note"], variant.note)
        if node["best"].is_null:
            findings.skip(node["best"], "that nothing fits is the search's to show")
        else:
            frame.brief(findings, memory.bench(variant.workload, created), node["best"], None)


class Memory:
    """What was recomputed, by workload and moment, so that many answers are judged at the cost of few."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        """Take the catalog, and the folder that file names of workloads start from."""
        self.catalog, self.folder = catalog, folder
        # by identity: a value is kept with the object that its key names
        self._benches: dict[tuple[int, datetime], tuple[Workload, Bench]] = {}
        self._goods: dict[tuple[int, date], tuple[Workload | None, Goods]] = {}
        self._variants: dict[int, tuple[Workload, tuple[TaskVariant, ...]]] = {}

    def variants(self, workload: Workload) -> tuple[TaskVariant, ...]:
        """The rungs of a workload's task."""
        from planner.inputs.tasks import expand_task

        if id(workload) not in self._variants:
            self._variants[id(workload)] = workload, expand_task(workload)
        return self._variants[id(workload)][1]

    def goods(self, workload: Workload | None, on: date) -> Goods:
        """What can be bought for a workload at the exchange rates of a day."""
        from catalogs.tariffs import load_tariffs

        key = (id(workload), on)
        if key not in self._goods:
            self._goods[key] = workload, Goods(self.catalog, workload, load_tariffs(), self.folder, on)
        return self._goods[key][1]

    def bench(self, workload: Workload, created: datetime) -> Bench:
        """What candidates of a workload are recomputed with."""
        from planner.inputs.resolve import resolve_times

        key = (id(workload), created)
        if key not in self._benches:
            times, goods = resolve_times(workload, created), self.goods(workload, created.date())
            made = Bench(workload, work_of(workload), goods, times.start, times.deadline)
            self._benches[key] = workload, made
        return self._benches[key][1]


@record(frozen=True)
class Verdict:
    """What a check found: `faults`, what was `checked`, what is `left_out` with the reason; `nothing` to check."""

    faults: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    summary: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    nothing: str = ""


def judge_saved(
    answer: dict[str, Any],
    loaded: LoadedWorkload | None,
    *,
    prices: bool = True,
    older: bool = False,
    memory: Memory | None = None,
) -> Verdict:
    """Judge a saved plan as far as what is given allows.

    Args:
        answer: its JSON.
        loaded: the workload file; None: sums, dates and prices only.
        prices: compare with the catalog.
        older: saved in an older format, which lacks what a full check needs.
        memory: what was recomputed before, with its catalog; None: the catalog that the answer names.

    Raises:
        MalformedError: the file is no plan; names the JSON path.
        CatalogError: the snapshots it names are no longer stored.
    """
    from planner.judge.lines import verify_plan
    from planner.plan.model import Plan

    node = Node(answer)
    check_shape(node, Plan)
    if answer["status"] == "infeasible" and not answer["lines"]:
        return Verdict(nothing="an infeasible answer: there is no plan to check")
    faults = []
    if loaded is not None and loaded.sha256 != answer["workload_sha256"]:
        faults.append(f"workload_sha256: {loaded.path} is not the file this plan was made from")
    folder = Path() if loaded is None else loaded.path.parent
    if memory is None and prices:
        memory = Memory(_catalog(node), folder)
    given = None if loaded is None else loaded.workload
    offers = memory.goods(given, node["created_at"].moment().date()).offers if memory and prices else None
    faults += verify_plan(answer, given, offers)
    left_out: dict[str, str] = {}
    checked = ["sums", "timeline", *(["prices"] if prices else []), *(["limits", "work"] if loaded else [])]
    if older:
        left_out["speed, hours, chances and costs"] = "saved in an older format: save the plan anew"
    elif loaded is not None and memory is not None and given is not None and prices:
        findings = judge_plan(answer, given, loaded.sha256, memory.catalog, folder, memory)
        faults += findings.finish()
        left_out = findings.left_out()
        checked += ["speed", "memory", "hours", "chances", "costs"]
    total = f"total {answer['currency']} {float(answer['total_usd']):,.2f}"
    return Verdict(tuple(dict.fromkeys(faults)), tuple(checked), total, left_out)


def _catalog(plan: Node) -> Catalog:
    """The snapshots that the plan was made from."""
    from catalogs.store.history import catalog_by_hash
    from catalogs.store.load import load_catalog
    from catalogs.store.read import is_named

    if is_named(None):
        return load_catalog()
    return catalog_by_hash({item["provider"].text(): item["sha256"].text() for item in plan["catalog"]})


__all__ = ["NotRecomputedError", "Verdict", "judge_plan", "judge_saved"]
