"""Real answers of every kind, from the examples and the bundled catalog, each with the judge's check of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from planner.inputs.load import LoadedWorkload, load_workload
from planner.inputs.portfolio_load import LoadedPortfolio
from planner.judge.judge import judge_saved
from planner.judge.memory import Memory
from planner.judge.stated import (
    COMMIT,
    FRONTIER,
    PIPELINE,
    PLAN,
    PORTFOLIO,
    PORTFOLIO_FRONTIER,
    SCHEDULE,
    SERVING,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass(frozen=True)
class Saved:
    """An answer, what it states without proof, and the judge: every fault of an answer of its question."""

    name: str
    kind: str
    answer: dict[str, Any]
    stated: set[str]
    judge: Callable[[dict[str, Any]], list[str]]


# Variants of the examples that reach the other ways to buy: changes of sections, by name.
_OWNED = {
    "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 2,
    "purchase_option": "reserved_1y",
}  # fmt: skip
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "one zone of spot": ("bert-large", {}),
    "three zones of spot": ("bert-large", {"constraints": {"deadline": "17h"}}),
    "spot, else on-demand": ("bert-large", {"constraints": {"deadline": "60h", "providers": ["azure"]}}),
    "billed in CNY": ("bert-large", {"constraints": {"deadline": "200h", "providers": ["alibaba"]}}),
    "on-demand": ("bert-large", {"constraints": {"deadline": "60h", "purchase_options": ["on_demand"]}}),
    "a capacity block": ("bert-large", {"constraints": {"purchase_options": ["capacity_block"], "deadline": "100h"}}),
    "no deadline": ("llama-3-8b", {"constraints": {"deadline": None}}),
    "a present cluster": (
        "bert-large",
        {
            "baseline": {
                "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 4,
                "price_per_hour_usd": 20.5,
            }
        },
    ),
    "data and model moved": (
        "bert-large",
        {"data": {"access": "stage"}, "checkpoint": {"export": True, "keep": 3, "interval": "20min"}},
    ),
    "owned and more": ("owned-top-up", {}),
    "owned alone": (
        "bert-large",
        {
            "commitments": [_OWNED],
            "constraints": {
                "deadline": "80h", "instance_types": {"allow": ["p4d*"]},
                "purchase_options": ["on_demand", "reserved_1y"],
            },
        },
    ),
    "own prices": ("bert-large", {"prices": {"overlays": [{"change": "-8%"}]}}),
    "by time": ("bert-large", {"preferences": {"objective": "time"}}),
    "a task": ("images-100gb", {}),
    "pictures": ("resnet50-imagenet", {}),
    "a fleet": ("hpo-fleet", {}),
    "a fleet that falls back": (
        "hpo-fleet",
        {
            "spot": {"fallback": "on_demand"},
            "fleet": {"max_spot_share": None, "max_share_per_region": None},
            "constraints": {"max_nodes": 7},
        },
    ),
    "a fleet in two parts": (
        "hpo-fleet",
        {
            "spot": {"fallback": "on_demand"},
            "fleet": {"max_spot_share": 0.5, "max_share_per_region": None},
            "constraints": {"max_nodes": 12},
        },
    ),
    "a fleet with shares": ("embed-images-fleet", {}),
}  # fmt: skip


def changed(name: str, changes: dict[str, Any], folder: Path) -> Path:
    """An example with some keys of its sections replaced, as a file; None removes a key."""
    if not changes:
        return EXAMPLES / f"{name}.yaml"
    content = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    for section, value in changes.items():
        own = content.get(section)
        content[section] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
        if isinstance(content[section], dict):
            content[section] = {key: item for key, item in content[section].items() if item is not None}
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def plans(names: tuple[str, ...] = tuple(PLANS)) -> Iterator[Saved]:
    """Plans of `planner optimize`."""
    from planner.asked.options import Options
    from planner.workloads.answer import optimize

    folder, catalog = Path(tempfile.mkdtemp()), load_catalog()
    for name in names:
        loaded = load_workload(changed(*PLANS[name], folder))
        answer = optimize(loaded, Options(now=NOW)).plan.to_dict()
        assert answer["status"] == "planned", f"{name}: {answer['status']}"
        kind = "fleet" if answer["kind"] == "fleet" else "optimize"
        yield Saved(name, kind, json.loads(json.dumps(answer)), set(PLAN), _judge_plan(loaded, catalog))


def _judge_plan(loaded: LoadedWorkload, catalog: Catalog) -> Callable[[dict[str, Any]], list[str]]:
    memory = Memory(catalog, loaded.path.parent)

    def judge(answer: dict[str, Any]) -> list[str]:
        verdict = judge_saved(answer, loaded, memory=memory)
        return [*verdict.faults, *([verdict.nothing] if verdict.nothing else [])]

    return judge


def frontiers(names: tuple[str, ...] = ("bert-large", "owned-top-up")) -> Iterator[Saved]:
    """Answers of `planner frontier`."""
    from planner.asked.options import Options
    from planner.job.frontier import frontier, thin
    from planner.job.frontier_report import frontier_report
    from planner.render import render_answer

    for name in names:
        loaded = load_workload(EXAMPLES / f"{name}.yaml")
        found = frontier(loaded, Options(now=NOW))
        made = json.loads(render_answer(frontier_report(found, thin(found.points, 12)), "json"))
        judge = _judge_plan(loaded, load_catalog())
        yield Saved(f"frontier of {name}", "frontier", made, set(FRONTIER), judge)


def fleets_that_serve(names: tuple[str, ...] = ("serving", "serving-llama-8b")) -> Iterator[Saved]:
    """Answers of `planner serving`."""
    from planner.inputs.serving_load import LoadedServing, load_serving
    from planner.judge.judge import judge_serving
    from planner.judge.serving_speeds import with_speeds
    from planner.render import render_answer
    from planner.serving.answer import plan_serving
    from planner.serving.report import serving_report
    from solvers.problem.options import SolveOptions

    catalog = load_catalog()

    def judged(loaded: LoadedServing, speeds: Callable[[], Any], answer: Any) -> list[str]:
        with mock.patch("planner.judge.serving.with_speeds", lambda *_: speeds()):  # no answer changes them
            return list(judge_serving(answer, loaded, catalog).faults)

    for name in names:
        loaded = load_serving(EXAMPLES / f"{name}.yaml")
        answer = plan_serving(loaded, SolveOptions(gap=1e-3), on=NOW.date())
        made = json.loads(render_answer(serving_report(answer), "json"))
        speeds = cache(partial(with_speeds, loaded, catalog))
        yield Saved("serving", name, made, set(SERVING), partial(judged, loaded, speeds))


def schedules() -> Iterator[Saved]:
    """Answers of `planner schedule`."""
    from planner.inputs.schedule_load import load_schedule
    from planner.judge.judge import judge_schedule
    from planner.render import render_answer
    from planner.schedules.answer import plan_schedule
    from planner.schedules.report import schedule_report
    from solvers.problem.options import SolveOptions

    loaded = load_schedule(EXAMPLES / "schedule.yaml")
    answer = plan_schedule(loaded, SolveOptions(gap=1e-3))
    made = json.loads(render_answer(schedule_report(answer), "json"))
    yield Saved(
        "schedule", "schedule", made, set(SCHEDULE), lambda one: list(judge_schedule(one, loaded).faults)
    )


def pipelines(
    levels: tuple[float | None, ...] = (None, 0.95), path: Path = EXAMPLES / "pipeline.yaml"
) -> Iterator[Saved]:
    """Answers of `planner pipeline`, by expected cost and with risk."""
    from planner.asked.options import Options
    from planner.inputs.pipeline_load import load_pipeline
    from planner.judge.judge import judge_pipeline
    from planner.pipelines.answer import plan_pipeline
    from planner.pipelines.report import pipeline_report
    from planner.render import render_answer

    loaded, memory = load_pipeline(path), Memory(load_catalog(), path.parent)

    def judge(one: dict[str, Any]) -> list[str]:
        return list(judge_pipeline(one, loaded, memory).faults)

    for level in levels:
        name = "pipeline" if level is None else "pipeline with risk"
        answer = plan_pipeline(loaded, Options(now=NOW), robust_level=level)
        made = json.loads(render_answer(pipeline_report(answer), "json"))
        yield Saved(name, "pipeline", made, set(PIPELINE), judge)


# Four jobs, one of them a workload, that take turns on owned nodes and share a quota; then one where three limits are
# too tight: a quota, a deadline and the budget.
_SMALL: dict[str, Any] = {
    "version": 1, "kind": "portfolio", "name": "small", "start": "2026-12-01", "budget_usd": 5000,
    "quota": [{"provider": "aws", "region": "us-*", "quota": "p4d", "unit": "GPU", "limit": 64}],
    "commitments": [
        {
            "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 4, "busy_nodes": 2,
            "purchase_option": "reserved_1y", "busy_until": "2026-12-03",
        }
    ],
    "jobs": [
        {"name": "encoder", "workload": str(EXAMPLES / "bert-large.yaml"), "deadline": "120h", "delay_usd_per_hour": 1},
        {
            "name": "sized", "count": 2, "deadline": "100h", "data": {"location": "aws/eu-west-1", "size": "100GB"},
            "candidates": [
                {
                    "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 2, "hours": 9,
                    "purchase_option": "reserved_1y", "cost_usd": 1,
                },
                {
                    "provider": "aws", "region": "us-west-2", "instance_type": "p4d.24xlarge", "nodes": 2, "hours": 9.5,
                    "usd_per_hour": 21.5, "family": "p4d", "quota_units": 16,
                },
            ],
        },
        {
            "name": "dear", "value_usd": 10, "candidates": [
                {
                    "provider": "gcp", "region": "us-east1", "instance_type": "a2-highgpu-8g", "nodes": 1, "hours": 5,
                    "usd_per_hour": 29,
                }
            ],
        },
    ],
}  # fmt: skip
_TIGHT = {
    "commitments": [], "budget_usd": 700,
    "quota": [{"provider": "aws", "region": "us-west-2", "quota": "p4d", "unit": "GPU", "limit": 12}],
    "jobs": [
        {
            "name": "late", "deadline": "3h", "candidates": [
                {
                    "provider": "gcp", "region": "us-east1", "instance_type": "a2-highgpu-8g", "nodes": 1, "hours": 5,
                    "usd_per_hour": 29,
                }
            ],
        },
        {
            "name": "large", "count": 2, "candidates": [
                {
                    "provider": "aws", "region": "us-west-2", "instance_type": "p4d.24xlarge", "nodes": 2, "hours": 9.5,
                    "usd_per_hour": 21.5, "family": "p4d", "quota_units": 16,
                }
            ],
        },
    ],
}  # fmt: skip
PORTFOLIOS: dict[str, dict[str, Any] | None] = {
    "a portfolio": None, "a small portfolio": _SMALL, "a portfolio that does not fit": {**_SMALL, **_TIGHT},
    "a portfolio with risk": {**_SMALL, "risk": {"level": 0.9, "weight": 0.8, "scenarios": 40}},
}  # fmt: skip


def portfolios(names: tuple[str, ...] = tuple(PORTFOLIOS)) -> Iterator[Saved]:
    """Answers of `planner portfolio`: of the example, of a small one, and of one where limits must give way."""
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import load_portfolio
    from planner.portfolios.answer import plan_portfolio
    from planner.portfolios.report import portfolio_report
    from planner.portfolios.solve import PortfolioOptions
    from planner.render import render_answer

    folder = Path(tempfile.mkdtemp())
    for number, name in enumerate(names):
        content, path = PORTFOLIOS[name], EXAMPLES / "portfolio.yaml"
        if content is not None:
            path = folder / f"{number}.yaml"
            path.write_text(yaml.safe_dump(content), encoding="utf-8")
        loaded = load_portfolio(path)
        answer = plan_portfolio(loaded, Options(now=NOW), PortfolioOptions(gap=1e-3), catalog=load_catalog)
        made = json.loads(render_answer(portfolio_report(answer), "json"))
        yield Saved(name, "portfolio", made, set(PORTFOLIO), _judge_portfolio(loaded, made))


def portfolio_frontiers() -> Iterator[Saved]:
    """Answers of `planner portfolio --frontier`: of the small portfolio."""
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import load_portfolio
    from planner.judge.judge import judge_portfolio_frontier
    from planner.judge.portfolio_jobs import PortfolioMemory
    from planner.portfolios.frontier_report import frontier_report, plan_frontier
    from planner.portfolios.solve import PortfolioOptions
    from planner.render import render_answer

    path = Path(tempfile.mkdtemp()) / "small.yaml"
    path.write_text(yaml.safe_dump(_SMALL), encoding="utf-8")
    loaded = load_portfolio(path)
    found = plan_frontier(loaded, Options(now=NOW), PortfolioOptions(), 4, catalog=load_catalog)
    made = json.loads(render_answer(frontier_report(found), "json"))
    memory = PortfolioMemory(loaded, load_catalog())
    yield Saved(
        "frontier of a portfolio", "portfolio frontier", made, set(PORTFOLIO_FRONTIER),
        lambda one: list(judge_portfolio_frontier(one, memory).faults),
    )  # fmt: skip


def _judge_portfolio(loaded: LoadedPortfolio, made: dict[str, Any]) -> Callable[[dict[str, Any]], list[str]]:
    from planner.judge.judge import judge_portfolio
    from planner.judge.portfolio_jobs import PortfolioMemory

    memory = PortfolioMemory(loaded, load_catalog() if made["catalog"] else None)
    return lambda one: list(judge_portfolio(one, memory).faults)


# Small futures of the example's history; then cud, reservations with upfront, given futures and given prices.
_FEW: dict[str, Any] = {"scenarios": {"count": 5, "hours_per_year": 150}}
_GIVEN: dict[str, Any] = {
    "version": 1, "name": "given", "start": "2027-01-01", "horizon_years": 1, "tail_value": 0.4,
    "pools": [
        {
            "name": "a", "provider": "aws", "region": "us-east-1", "spot_share": 0.3,
            "prices": {"on_demand": 10, "spot": 4, "reserved_1y": 5.5, "savings_plan_3y": 6.2},
            "upfront_usd": {"reserved_1y": 3000},
        },
        {
            "name": "c", "provider": "aws", "region": "eu-west-1",
            "prices": {"on_demand": 8, "savings_plan_1y": 6.5, "savings_plan_3y": 4.1},
        },
        {
            "name": "b", "provider": "gcp", "region": "us-east1", "unit": "vCPU",
            "prices": {"on_demand": 0.05, "cud_1y": 0.037, "cud_3y": 0.03},
        },
    ],
    "scenarios": {"file": "futures.csv"},
    "commitments": [{"purchase_option": "cud_1y", "pool": "b", "instances": 40, "expires": "2027-06-30"}],
    "options": {"upfront_limit_usd": 20000, "max_instances": {"a": 5}},
    "risk": {"weight": 0.5, "level": 0.8},
}  # fmt: skip
COMMITS: dict[str, dict[str, Any] | None] = {"commitments": None, "commitments of given futures": _GIVEN}


def commits(names: tuple[str, ...] = tuple(COMMITS)) -> Iterator[Saved]:
    """Answers of `planner commit`: the example with fewer futures, and a file that gives futures and prices."""
    from planner.commitments.advise import advise, needs_catalog
    from planner.commitments.report import commit_report
    from planner.inputs.commit_load import load_commit
    from planner.judge.commits.figures import CommitMemory
    from planner.judge.judge import judge_commit
    from planner.render import render_answer

    folder = Path(tempfile.mkdtemp())
    for name in names:
        content = COMMITS[name]
        if content is None:
            (folder / "commit-usage.csv").write_bytes((EXAMPLES / "commit-usage.csv").read_bytes())
            path = changed("commit", _FEW, folder)
        else:
            path = folder / "given.yaml"
            path.write_text(yaml.safe_dump(content), encoding="utf-8")
            (folder / "futures.csv").write_text(_futures_csv(), encoding="utf-8")
        loaded = load_commit(path)
        catalog = load_catalog() if needs_catalog(loaded) else None
        work = advise(loaded, catalog, time_limit_s=30)
        made = json.loads(render_answer(commit_report(work.answer), "json"))
        memory = CommitMemory(loaded, catalog)

        def judge(one: dict[str, Any], memory: CommitMemory = memory) -> list[str]:
            return list(judge_commit(one, memory).faults)

        yield Saved(name, "commit", made, set(COMMIT), judge)


def _futures_csv() -> str:
    """Three futures of two pools over a week of hours, of different chances."""
    rows = ["scenario,hour,pool,instances,probability"]
    for at, (future, chance) in enumerate((("low", 0.3), ("likely", 0.5), ("high", 0.2))):
        for hour in range(168):
            busy = 1.0 if hour % 24 in range(8, 20) else 0.4
            rows.append(f"{future},{hour},a,{round((2 + 2.5 * at) * busy, 3)},{chance}")
            rows.append(f"{future},{hour},b,{round((60 + 45 * at) * busy, 3)},{chance}")
            rows.append(f"{future},{hour},c,{1 + at},{chance}")
    return "\n".join(rows) + "\n"


@cache
def saved_answers() -> list[Saved]:
    """Answers of every kind."""
    return [
        *plans(), *frontiers(), *fleets_that_serve(), *schedules(), *pipelines(), *portfolios(),
        *portfolio_frontiers(), *commits(),
    ]  # fmt: skip
