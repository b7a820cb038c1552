"""`planner pools`: reinforcement learning on a trainer pool and a rollout pool."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import (
    as_of_option,
    details_option,
    examples,
    offer_options,
    output_options,
    set_option,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner pools examples/grpo-8b.yaml", "planner pools examples/grpo-8b.yaml -o csv --out pools.csv"
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@output_options(ANSWER_FORMATS)
@as_of_option
@offer_options
@details_option("pools", "step", "colocated", "proof")
def pools(
    workload: Path,
    values: tuple[str, ...],
    output: str,
    as_of: datetime | None,
    allow_flagged: bool,
    allow_derived: bool,
    out: Path | None,
    details: tuple[str, ...],
) -> None:
    """Choose training and generation pools for WORKLOAD (training.rollouts), and compare with one cluster.

    Exit code 0: a pair of pools meets the limits; 3: none does; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.job.overrides import override
    from planner.pipelines.pools import plan_pools
    from planner.pipelines.pools_report import pools_report

    loaded = with_settings(load_workload(workload), values)
    loaded = override(loaded, allow_flagged=allow_flagged, allow_derived=allow_derived)
    pools = plan_pools(loaded, options_at(as_of))
    show_answer(pools_report(pools, details=details), output, out)
    if pools.reason:
        click.get_current_context().exit(3)
