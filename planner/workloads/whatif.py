"""What if a value of the workload were another one: the plan of each scenario beside that of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.settings import with_settings
from planner.plan.outcome import Outcome, outcome_of
from planner.records import record
from planner.render.presentable import Presentable
from planner.workloads.answer import optimize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload

AS_IT_IS = "as the file says"


@record(frozen=True)
class WhatIf(Presentable):
    """The plan of the file, and that of each scenario; `old_choice` and so on are `before`'s."""

    REPORT = "planner.workloads.whatif_report:whatif_report"
    __repr__ = Presentable.__repr__

    workload: str
    before: Outcome
    scenarios: tuple[Outcome, ...]
    workload_sha256: str = ""
    created_at: str = ""


def ask_whatif(
    loaded: LoadedWorkload, scenarios: Sequence[Sequence[str]], options: Options, *, catalog_dir: Path | None = None
) -> WhatIf:  # fmt: skip
    """Plan the file as it is, and under each scenario.

    Args:
        loaded: the workload file.
        scenarios: `KEY=VALUE` texts of each; a scenario has one or several.
        options: flags, the same for all.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: a value is wrong, or what it makes of the workload is not valid.
        CatalogError: the catalog cannot be used.
    """
    changed = [
        (", ".join(texts), with_settings(loaded, texts)) for texts in scenarios
    ]  # all faults before any search
    before = optimize(loaded, options, catalog_dir=catalog_dir).plan
    found = [
        outcome_of(optimize(other, options, catalog_dir=catalog_dir).plan, name) for name, other in changed
    ]
    return WhatIf(
        before.workload, outcome_of(before, AS_IT_IS), tuple(found), before.workload_sha256, before.created_at
    )
