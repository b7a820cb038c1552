"""Jobs that no way to run them ends in time, whatever the other jobs do."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from catalogs.tables.table import distinct_values
from planner.candidates.plan_parts.frame import moment_text
from planner.portfolios.moments import limit_of, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.portfolios.gather import Gathered


def late_alone(loaded: LoadedPortfolio, gathered: Gathered) -> Iterator[str]:
    """A sentence for each entry of the file with late candidates alone, and who says what in its own file would help.

    Args:
        loaded: the file.
        gathered: all candidates, late ones included.
    """
    table = gathered.question.table
    able = set(distinct_values(table.job[table.late_hours <= 0]).tolist())
    some = set(distinct_values(table.job).tolist())
    entries = sorted({gathered.kinds[job] for job in some - able})
    for entry in entries:
        job, workload = loaded.jobs[entry], loaded.workloads[entry]
        text = f"{job.name} cannot be in time whatever the other jobs do"
        limit = limit_of(job, workload, gathered.start)
        if job.workload is not None and limit is not None:
            start = next(starts_of("earliest", job, gathered.start, gathered.windows))
            sets = f"--set start={moment_text(start)} --set constraints.deadline={moment_text(limit)}"
            text += f": `planner optimize {shlex.quote(job.workload)} {sets}` says what else in its file would help"
        yield text
