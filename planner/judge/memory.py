"""What was recomputed for one catalog, kept so that many answers are judged at the cost of few."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.inputs.checks import end_moment, start_moment
from planner.inputs.resolve import resolve_times
from planner.judge.bench import Bench
from planner.judge.goods import Goods
from planner.judge.work import work_of

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.schema import Workload
    from planner.inputs.tasks import TaskVariant


class Memory:
    """What was recomputed, by workload and moment, so that many answers are judged at the cost of few."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        """Take the catalog, and the folder that file names of workloads start from."""
        self.catalog, self.folder = catalog, folder
        # by identity: a value is kept with the object that its key names
        self._benches: dict[tuple[int, datetime], tuple[Workload, Bench]] = {}
        self._goods: dict[tuple[int, date, date], tuple[Workload | None, Goods]] = {}
        self._tasks: dict[tuple[int, int, float], tuple[LoadedPipeline, Bench]] = {}
        self._variants: dict[int, tuple[Workload, tuple[TaskVariant, ...]]] = {}

    def variants(self, workload: Workload) -> tuple[TaskVariant, ...]:
        """The rungs of a workload's task."""
        from planner.inputs.tasks import expand_task

        if id(workload) not in self._variants:
            self._variants[id(workload)] = workload, expand_task(workload)
        return self._variants[id(workload)][1]

    def goods(self, workload: Workload | None, on: date, start: date | None = None) -> Goods:
        """What can be bought for a workload planned on a day, and started on that day or another."""
        from catalogs.tariffs import load_tariffs

        start = on if start is None else start
        key = (id(workload), on, start)
        if key not in self._goods:
            self._goods[key] = workload, Goods(self.catalog, workload, load_tariffs(), self.folder, on, start)
        return self._goods[key][1]

    def bench(self, workload: Workload, created: datetime) -> Bench:
        """What candidates of a workload are recomputed with."""
        key = (id(workload), created)
        if key not in self._benches:
            times = resolve_times(workload, created)
            goods = self.goods(workload, created.date(), times.start.date())
            bench = Bench(workload, work_of(workload), goods, times.start, times.deadline, planned=created)
            self._benches[key] = workload, bench
        return self._benches[key][1]

    def task(
        self, loaded: LoadedPipeline, at: int, created: datetime, length: timedelta, own_from: float = 0.0
    ) -> Bench:
        """What a task of a pipeline is recomputed with: its workload from the pipeline's start, for a length of time.

        A task that reads from others has its data there: what its workload says of them is set aside.
        `own_from`: hours from the pipeline's start from which commitments last until their end.
        """
        key = (id(loaded), at, own_from)
        if key not in self._tasks:
            task_workload, task = loaded.workloads[at], loaded.pipeline.tasks[at]
            assert task_workload is not None
            start = start_moment(loaded.pipeline.start or created)
            limits = task_workload.workload.constraints.model_copy(
                update={"deadline": None, "budget_usd": None}
            )
            held = tuple(
                one
                if one.expires is None
                else one.model_copy(update={"expires": end_moment(one.expires) - timedelta(hours=own_from)})
                for one in task_workload.workload.commitments
            )
            section_view = task_workload.workload.model_copy(
                update={
                    "constraints": limits, "start": start, "earliest_start": None, "commitments": held,
                }
            )  # fmt: skip
            bench = self.bench(section_view, created)
            if task.reads:
                bench.work = replace(bench.work, data_gb=0.0, read_gb=0.0)
            self._tasks[key] = loaded, bench
        return self._tasks[key][1].by_deadline(length)

    def by_deadline(self, workload: Workload, created: datetime, length: timedelta) -> Bench:
        """The same with another deadline, a length of time from the start; shapes are shared."""
        return self.bench(workload, created).by_deadline(length)
