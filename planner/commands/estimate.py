"""`planner estimate`: predicted speed, memory, limits and cost of one cluster, or of several side by side."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from planner.commands.completing import instance_types, provider_option
from planner.commands.options import as_of_option, details_option, examples, output_options, set_option
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner estimate workload.yaml --instance-type p4d.24xlarge --nodes 4 --nodes 8",
        "planner estimate examples/bert-large.yaml --instance-type p4d.24xlarge --layout micro_batch=8",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@click.option(
    "--instance-type", "machines", shell_complete=instance_types, multiple=True, metavar="TYPE,...",
    help="Instance types; several are compared (default: those of the plan).",
)  # fmt: skip
@click.option(
    "--nodes", multiple=True, type=click.IntRange(min=1), metavar="N",
    help="Instances (default 1, or as planned); several are compared.",
)  # fmt: skip
@click.option(
    "--layout", default=None, metavar="PARTS",
    help="Parts of the layout to fix, like tp=8,pp=2,zero=1,micro_batch=1,recompute=full.",
)  # fmt: skip
@provider_option
@click.option("--calibration/--no-calibration", "calibrated", default=True,
              help="Correct with your runs (planner calibrate).")  # fmt: skip
@as_of_option
@details_option(
    "warnings", "speed", "run", "step", "memory", "offload", "other_layouts", "loading", "host", "nearest_fit",
    "clusters", "prices", "layouts", "basis",
)  # fmt: skip
@output_options(ANSWER_FORMATS)
def estimate(
    workload: Path, values: tuple[str, ...],
    machines: tuple[str, ...], nodes: tuple[int, ...], layout: str | None, provider: str | None,
    calibrated: bool, as_of: datetime | None, details: tuple[str, ...], output: str, out: Path | None,
) -> None:  # fmt: skip
    """Predict how WORKLOAD runs on a cluster: throughput with its 80 % interval, memory, what limits it, what it costs.

    Without --instance-type, it is the cluster of the plan. Prices are quotes for the machines only, where they are
    cheapest among the workload's places and options; the cost of the whole run is about, with the interval of its
    hours. `planner optimize` counts storage, transfer and spot's interruptions. Exit code 0: it runs; 3: it does not
    fit (the answer says what would); 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.errors import InputError
    from planner.estimation.answer import estimate_workload
    from planner.estimation.layout import parse_layout
    from planner.estimation.report import estimates_report
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings

    names = [name.strip() for text in machines for name in text.split(",") if name.strip()]
    pin = None if layout is None else parse_layout(layout)
    loaded = with_settings(load_workload(workload), values)
    options = replace(options_at(as_of), calibrated=calibrated)
    if names:
        estimates = estimate_workload(
            loaded, names, nodes or (1,), pin, provider, calibrated=calibrated, options=options
        )
    elif provider is not None:
        raise InputError("--provider: needs --instance-type")
    else:
        from planner.workloads.planned_cluster import estimate_planned

        estimates = estimate_planned(loaded, nodes, pin, options=options)
    report = estimates_report(estimates, details=details)
    show_answer(report, output, out)
    if all(item.reason for item in estimates.estimates):
        click.get_current_context().exit(3)
