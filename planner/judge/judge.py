"""Judge a saved answer: read it, gather the catalog and the workload it names, compare everything that can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.judge import (
    fleet_parts,
    frame,
    frontier,
    frontier_carbon,
    pipeline,
    pools,
    portfolio,
    portfolio_frontier,
    portfolio_rolling,
    schedule,
    serving,
    single,
)
from planner.judge.bench import CORRECTED, ImpossibleError, NotRecomputedError
from planner.judge.document import Node
from planner.judge.findings import Findings, Verdict
from planner.judge.goods import UnknownOfferError
from planner.judge.memory import Memory
from planner.judge.shape import check_shape
from planner.judge.stated import (
    COMMIT,
    FRONTIER,
    PIPELINE,
    PLAN,
    POOLS,
    PORTFOLIO,
    PORTFOLIO_FRONTIER,
    PORTFOLIO_ROLLING,
    SCHEDULE,
    SERVING,
    TCO,
)

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.schedule_load import LoadedSchedule
    from planner.inputs.schema import Workload
    from planner.inputs.serving_load import LoadedServing
    from planner.inputs.tco_load import LoadedTco
    from planner.judge.commits.figures import CommitMemory
    from planner.judge.portfolio_jobs import PortfolioMemory


_FIGURES = "speed, hours, chances and costs"
_CORRECTED = "calibration."  # how the keys of assumptions begin that name measurements


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
    with _faults_of(findings):
        _judge(findings, plan, workload, sha256, memory or Memory(catalog, folder))
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
    frame.settle(bench, plan)
    if workload.kind == "fleet":
        fleet_parts.check_any(findings, bench, sha256)
        return
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
            findings.skip(node["best"], "infeasibility is shown by the search")
        else:
            frame.brief(findings, memory.bench(variant.workload, created), node["best"], None)
    # last: it ends where a plan depends on records that are not read again
    single.check(findings, bench, sha256)


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
        MalformedError: the file is not a plan; names the JSON path.
        CatalogError: the snapshots it names are no longer stored.
    """
    from planner.judge.lines import verify_plan
    from planner.plan.model import Plan

    node = Node(answer)
    if kind_of(answer) in ("frontier", "pools"):
        return _saved_answer(kind_of(answer), node, loaded, prices=prices, memory=memory)
    check_shape(node, Plan)
    if answer["status"] == "infeasible" and not answer["lines"]:
        return Verdict(nothing="an infeasible answer: there is no plan to check")
    faults = []
    if loaded is not None and loaded.sha256 != answer["workload_sha256"]:
        faults.append(f"workload_sha256: {loaded.path} is not the workload file of this plan")
    folder = Path() if loaded is None else loaded.path.parent
    if memory is None and prices:
        memory = Memory(catalog_of(node), folder)
    workload = None if loaded is None else loaded.workload
    if memory and prices:
        goods = memory.goods(workload, node["created_at"].moment().date())
        faults += verify_plan(answer, workload, goods.offers, price_of=goods.price_of)
    else:
        faults += verify_plan(answer, workload)
    left_out: dict[str, str] = {}
    checked = ["sums", "timeline", *(["prices"] if prices else []), *(["limits", "work"] if loaded else [])]
    if older:
        left_out[_FIGURES] = "saved in an older format: save the plan again"
    elif loaded is not None and any(item["key"].startswith(_CORRECTED) for item in answer["assumptions"]):
        left_out[_FIGURES] = CORRECTED
    elif loaded is not None and (missing := frame.not_counted(answer, loaded.workload.kind)):
        faults.append(missing)
        left_out[_FIGURES] = "its assumptions are not those of this version: save the plan again"
    elif loaded is not None and memory is not None and workload is not None and prices:
        findings = judge_plan(answer, workload, loaded.sha256, memory.catalog, folder, memory)
        faults += findings.finish()
        left_out = findings.left_out()
        checked += ["speed", "memory"]
        if "hours" not in findings.not_checked:
            checked += ["hours", "chances", "costs"]
    total = f"total {answer['currency']} {float(answer['total_usd']):,.2f}"
    return Verdict(tuple(dict.fromkeys(faults)), tuple(checked), total, left_out)


def kind_of(answer: Any) -> str:
    """Which question an answer is of, by the field that only such an answer has; `plan` for all that has none."""
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("kind") in ("portfolio", "portfolio_frontier", "portfolio_rolling", "tco"):
        return str(fields["kind"])
    return next((kind for field, kind in _MARKS.items() if field in fields), "plan")


def judge_schedule(answer: Any, loaded: LoadedSchedule) -> Verdict:
    """Judge the answer of `planner schedule`.

    Args:
        answer: its JSON.
        loaded: the question it is said to be of, as on the day it was planned.
    """
    node = Node(answer)
    if not len(node["intervals"]):
        return Verdict(nothing="no schedule: there is nothing to check")
    findings = _compared(node, SCHEDULE, schedule.check, loaded)
    total = f"total USD {float(node['total_usd'].money()):,.2f}, bound by the solver"
    checked = ("forecast", "work", "limits", "copies", "sums")
    return Verdict(tuple(findings.finish()), checked, total, findings.left_out())


def judge_pipeline(answer: Any, loaded: LoadedPipeline, memory: Memory) -> Verdict:
    """Judge the answer of `planner pipeline`.

    Args:
        answer: its JSON.
        loaded: the question it is said to be of.
        memory: the catalog, and what was recomputed before.
    """
    node = Node(answer)
    if not len(node["tasks"]):
        return Verdict(nothing="no plan: there is nothing to check")
    findings = _compared(node, PIPELINE, pipeline.check, loaded, memory)
    total = f"total USD {float(node['total_usd'].money()):,.2f}, bound by the solver"
    checked = ("tasks", "speed", "hours", "chances", "costs", "transfers", "course")
    return _verdict(findings, checked, total)


def judge_portfolio(answer: Any, memory: PortfolioMemory) -> Verdict:
    """Judge the answer of `planner portfolio`.

    Args:
        answer: its JSON.
        memory: the question it is said to be of and the catalog, with what was recomputed before.
    """
    node = Node(answer)
    if not len(node["jobs"]):
        return Verdict(nothing="no plan: there is nothing to check")
    findings = _compared(node, PORTFOLIO, portfolio.check, memory)
    total = f"total USD {float(node['totals']['cost_usd'].money()):,.2f}; bounds need its certificate"
    return _verdict(findings, ("jobs", "speed", "hours", "chances", "costs", "limits", "sums"), total)


def judge_portfolio_frontier(answer: Any, memory: PortfolioMemory) -> Verdict:
    """Judge the answer of `planner portfolio --frontier`.

    Args:
        answer: its JSON.
        memory: the question it is said to be of and the catalog, with what was recomputed before.
    """
    node = Node(answer)
    if not len(node["points"]):
        return Verdict(nothing="no plan: there is nothing to check")
    findings = _compared(node, PORTFOLIO_FRONTIER, portfolio_frontier.check, memory)
    checked = ("points", "jobs", "speed", "hours", "chances", "costs", "limits", "sums")
    return _verdict(findings, checked, f"{len(node['points'])} points, each bound by the solver")


def judge_portfolio_rolling(answer: Any, memory: PortfolioMemory) -> Verdict:
    """Judge the answer of `planner portfolio --rolling`.

    Args:
        answer: its JSON.
        memory: the question it is said to be of.
    """
    findings = _compared(Node(answer), PORTFOLIO_ROLLING, portfolio_rolling.check, memory)
    checked = ("arrivals", "runs", "costs", "limits", "sums")
    usd = float(findings.answer["totals"]["cost_usd"].money())
    total = f"total USD {usd:,.2f}; optimality is not claimed"
    return Verdict(tuple(findings.finish()), checked, total, findings.left_out())


def judge_commit(answer: Any, memory: CommitMemory) -> Verdict:
    """Judge the answer of `planner commit`.

    Args:
        answer: its JSON.
        memory: the question it is said to be of and the catalog, with what was recomputed before.
    """
    from planner.judge.commits import check

    findings = _compared(Node(answer), COMMIT, check.check, memory)
    total = f"objective USD {float(findings.answer['objective_usd'].money()):,.2f}; the bound needs its certificate"
    checked = ("prices", "demand", "use", "costs", "risk", "limits", "break-evens")
    return Verdict(tuple(findings.finish()), checked, total, findings.left_out())


def judge_serving(answer: Any, loaded: LoadedServing, catalog: Catalog) -> Verdict:
    """Judge the answer of `planner serving`.

    Args:
        answer: its JSON.
        loaded: the question it is said to be of.
        catalog: the snapshots it names.
    """
    node = Node(answer)
    if not len(node["machines"]):
        if node["proof"]["status"].text() in ("optimal", "feasible"):
            return Verdict(("machines: none, though a fleet is said to be found",))
        return Verdict(nothing="no fleet: there is nothing to check")
    findings = _compared(node, SERVING, serving.check, loaded, catalog)
    total = f"total USD {float(node['total_usd_per_hour'].money()):,.2f} per hour"
    faults = tuple(findings.finish())
    bound = node["proof"]["proven"]["bound_usd_per_hour"]
    proven = "" if faults else f", proven: no fleet costs less than USD {float(bound.money()):,.2f} per hour"
    return Verdict(
        faults, ("prices", "speeds", "loads", "sums", "bound"), total + proven, findings.left_out()
    )


def judge_tco(answer: Any, loaded: LoadedTco, catalog: Catalog) -> Verdict:
    """Judge the answer of `planner tco`.

    Args:
        answer: its JSON.
        loaded: the question it is said to be of.
        catalog: the snapshots it names.
    """
    from planner.judge import tco

    findings = _compared(Node(answer), TCO, tco.check, loaded, catalog)
    best = findings.answer["best"].text().replace("_", " ")
    checked = ("inputs", "prices", "cash", "NPV", "break-evens", "tornado", "intervals")
    return Verdict(tuple(findings.finish()), checked, f"{best} costs least", findings.left_out())


def _saved_answer(
    kind: str, node: Node, loaded: LoadedWorkload | None, *, prices: bool, memory: Memory | None
) -> Verdict:
    """Judge the answer of `planner frontier` or `planner pools`, which are recomputed from the workload."""
    if loaded is None or not prices:
        raise InputError(f"a {kind} answer is recomputed from its workload and the catalog: give --workload")
    if kind == "pools" and not len(node["pools"]):
        return Verdict(nothing="no pair of pools: there is nothing to check")
    faults = []
    if loaded.sha256 != node["workload_sha256"].text():
        faults.append(f"workload_sha256: {loaded.path} is not the workload file of this plan")
    memory = memory or Memory(catalog_of(node), loaded.path.parent)
    findings = Findings(node, FRONTIER if kind == "frontier" else POOLS)
    with _faults_of(findings):
        of_points = frontier_carbon.check if "against" in node.keys() else frontier.check  # noqa: SIM118
        check = of_points if kind == "frontier" else pools.check
        check(findings, loaded.workload, loaded.sha256, memory)
    checked = (kind if kind == "pools" else "points", "prices", "speed", "hours", "chances", "costs")
    return _verdict(findings, checked, f"{len(node[checked[0]])} {checked[0]}", faults)


def _verdict(
    findings: Findings, checked: tuple[str, ...], summary: str, before: Sequence[str] = ()
) -> Verdict:
    """The faults found, and what was checked: where measurements correct speeds, nothing that follows from them."""
    faults, left_out = (*before, *findings.finish()), findings.left_out()
    if CORRECTED in left_out.values():
        checked = tuple(name for name in checked if name not in ("speed", "hours", "chances", "costs"))
    return Verdict(faults, checked, summary, left_out)


_MARKS = {
    "points": "frontier",
    "same_ways": "pools",
    "serving": "serving",
    "pipeline": "pipeline",
    "schedule": "schedule",
    "break_evens": "commit",
}


def _compared(node: Node, stated: Mapping[str, str], check: Callable[..., None], *given: Any) -> Findings:
    """What the check of a kind of answer finds; `given`: what the check takes beside the findings."""
    findings = Findings(node, stated)
    with _faults_of(findings):
        check(findings, *given)
    return findings


@contextmanager
def _faults_of(findings: Findings) -> Iterator[None]:
    """What cannot be bought, run or computed is a fault of the answer; what rests on unread records is left out."""
    try:
        yield
    except NotRecomputedError as error:
        findings.skip_unseen(findings.answer, str(error))
    except (UnknownOfferError, ImpossibleError) as error:
        findings.stop(str(error))
    except (ArithmeticError, ValueError) as error:
        findings.stop(f"its figures cannot be recomputed: {error}")


def catalog_of(plan: Node) -> Catalog:
    """The snapshots that the plan was made from."""
    from catalogs.store.history import catalog_by_hash
    from catalogs.store.load import load_catalog
    from catalogs.store.read import is_named

    if is_named(None):
        return load_catalog()
    return catalog_by_hash({item["provider"].text(): item["sha256"].text() for item in plan["catalog"]})
