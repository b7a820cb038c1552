"""What each question answers for one workload and deadline, for the law that they agree and for its benchmark."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from catalogs.tables.model import Catalog
from planner.asked.options import Options
from planner.candidates.choose import choose
from planner.candidates.context import Context
from planner.candidates.engine import CandidateSearch, Engine
from planner.candidates.plan_parts.summary import lines_of
from planner.candidates.prepare import prepare, unlimited
from planner.inputs.faults import Source
from planner.inputs.load import LoadedWorkload
from planner.inputs.pipeline_load import LoadedPipeline
from planner.inputs.pipeline_schema import Pipeline
from planner.inputs.portfolio_load import LoadedPortfolio
from planner.inputs.portfolio_schema import Portfolio
from planner.inputs.schema import Workload
from planner.job.frontier import find_frontier
from planner.market.pricing import total_usd
from planner.pipelines.answer import plan_pipeline
from planner.portfolios.answer import plan_portfolio
from planner.portfolios.report import portfolio_report
from planner.portfolios.solve import PortfolioOptions

Cost = Decimal | None  # None: infeasible
CENT = Decimal("0.01")
VALUE_USD = 100_000_000  # of a job, above any plan: a portfolio leaves out what costs more


def cents(cost: Cost) -> Cost:
    """To the cent."""
    return None if cost is None else cost.quantize(CENT)


@dataclass(frozen=True)
class Asked:
    """A workload on a catalog, asked at some deadlines.

    Attributes:
        loaded: the workload; its own deadline is not used.
        hours: deadlines after the start.
        steps: of the frontier, as of `find_frontier`; by default those that it finds.
    """

    loaded: LoadedWorkload
    catalog: Catalog
    options: Options
    hours: tuple[float, ...]
    steps: int = 0

    @property
    def start(self) -> datetime:
        """Start of the job."""
        return self.options.now

    def lengths(self) -> list[timedelta]:
        """The deadlines, whole microseconds."""
        return [timedelta(hours=hours) for hours in self.hours]

    @functools.cached_property
    def _unlimited(self) -> Workload:
        own = unlimited(self.loaded.workload)
        return own.model_copy(update={"start": self.start, "earliest_start": None})

    @functools.cached_property
    def _context(self) -> Context:
        return prepare(self.loaded, self._unlimited, self.catalog, self.options)

    def by_optimize(self) -> list[Cost]:
        """The engine as `optimize` asks it, choosing as `optimize` chooses."""
        engine = Engine(self._context)
        return [_cheapest(engine.at(self.start + length)) for length in self.lengths()]

    def by_frontier(self) -> list[Cost]:
        """Points of the frontier at the deadlines."""
        found = find_frontier(Engine(self._context), self._unlimited, self.hours, steps=self.steps)
        known = {point.deadline_hours: point.best.cost_usd for point in found.points}
        return [known.get(hours) for hours in self.hours]

    def by_portfolio(self) -> list[Cost]:
        """One portfolio that shares nothing: a job per deadline, left out where nothing runs it.

        What a workload has already is the portfolio's to share: then there is a portfolio per deadline.
        """
        if not self.loaded.workload.commitments:
            return self._portfolio(self.lengths())
        with _one_engine("planner.portfolios.candidates.Engine"):
            return [cost for length in self.lengths() for cost in self._portfolio([length])]

    def _portfolio(self, lengths: list[timedelta]) -> list[Cost]:
        jobs = [
            {"name": f"job{at}", "workload": "w.yaml", "deadline": _text(length), "value_usd": VALUE_USD}
            for at, length in enumerate(lengths)
        ]
        sections = {
            "version": 1,
            "kind": "portfolio",
            "name": "law",
            "start": self.start.isoformat(),
            "jobs": jobs,
        }
        owned = [item.model_dump() for item in self.loaded.workload.commitments]
        portfolio = Portfolio.model_validate(sections | {"commitments": owned})
        limits = self.loaded.workload.constraints.model_copy(update={"budget_usd": None})
        workload = replace(
            self.loaded, workload=self.loaded.workload.model_copy(update={"constraints": limits})
        )
        loaded = LoadedPortfolio(
            portfolio,
            portfolio.jobs,
            (workload,) * len(jobs),
            _digest(jobs),
            Path("law.yaml"),
            Source("law.yaml", ""),
        )
        answer = plan_portfolio(loaded, self.options, PortfolioOptions(), catalog=lambda: self.catalog)
        assert answer.whole, "the claim names a smaller set"
        return [
            sum((line["amount_usd"] for part in job["parts"] for line in part["lines"]), Decimal(0))
            if job["status"] == "planned"
            else None
            for job in portfolio_report(answer).values["jobs"]
        ]

    def by_pipeline(self) -> list[Cost]:
        """A pipeline of one task per deadline."""
        with _one_engine("planner.pipelines.tasks.Engine"):
            return [self._pipeline(length) for length in self.lengths()]

    def _pipeline(self, length: timedelta) -> Cost:
        sections = {
            "version": 1, "kind": "pipeline", "name": "law", "start": self.start.isoformat(),
            "deadline": _text(length), "tasks": [{"name": "task", "workload": "w.yaml"}],
        }  # fmt: skip
        pipeline = Pipeline.model_validate(sections)
        loaded = LoadedPipeline(
            pipeline, (self.loaded,), _digest(sections), Path("law.yaml"),
            Source("law.yaml", ""),
        )  # fmt: skip
        answer = plan_pipeline(loaded, self.options, catalog=self.catalog)
        return answer.total_usd

    def disagreements(self) -> list[str]:
        """Deadlines at which the four do not agree to the cent."""
        every: dict[str, Callable[[], list[Cost]]] = {
            "optimize": self.by_optimize, "frontier": self.by_frontier, "portfolio": self.by_portfolio,
            "pipeline": self.by_pipeline,
        }  # fmt: skip
        with _no_interval():
            answers = {name: [cents(cost) for cost in ask()] for name, ask in every.items()}
        known = [cost for costs in answers.values() for cost in costs if cost is not None]
        assert max(known, default=Decimal(0)) < VALUE_USD, "left out of a portfolio, run by the others"
        return [
            f"{hours} h: " + ", ".join(f"{name} {costs[at]}" for name, costs in answers.items())
            for at, hours in enumerate(self.hours)
            if len({costs[at] for costs in answers.values()}) > 1
        ]


@contextlib.contextmanager
def _one_engine(name: str) -> Iterator[None]:
    """All deadlines on one engine, which does not depend on them."""
    engines: list[Engine] = []

    def shared(context: Context, **given: Any) -> Engine:
        if not engines:
            engines.append(Engine(context, **given))
        return engines[0]

    with mock.patch(name, shared):
        yield


@contextlib.contextmanager
def _no_interval() -> Iterator[None]:
    """Leave out between what costs lie, which nobody here looks at."""
    with (
        mock.patch("planner.pipelines.answer._between", return_value=None),
        mock.patch("planner.portfolios.report_values.between_usd", return_value=None),
    ):
        yield


def _text(length: timedelta) -> str:
    return f"{length / timedelta(microseconds=1) / 1e6:.6f}s"


def _digest(sections: object) -> str:
    return hashlib.sha256(repr(sections).encode()).hexdigest()


def _cheapest(found: CandidateSearch) -> Cost:
    choice = choose(found.candidates, "cost")
    if choice is None:
        return None
    return total_usd(lines_of(found.candidates, choice.winner))
