"""`planner calibrate`: your own measurements tighten the predictions."""

from __future__ import annotations

from pathlib import Path

import click

from planner.commands.completing import instance_types, provider_option
from planner.commands.options import FileBeside, examples, log_format_option
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner calibrate workload.yaml train.log --instance-type p4d.24xlarge --nodes 4",
        "planner calibrate workload.yaml --measured '12500 tokens/s' --instance-type p4d.24xlarge --dry-run",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@click.argument("log", type=click.Path(path_type=Path), required=False)
@click.option("--measured", default=None, metavar="LINE",
              help="Instead of a log: '12500 tokens/s', also samples/s, steps/s.")  # fmt: skip
@click.option(
    "--instance-type",
    "machine",
    shell_complete=instance_types,
    default=None,
    metavar="TYPE",
    help="Instance type on which it ran.",
)
@click.option(
    "--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Instances it ran on."
)
@provider_option
@click.option("--layout", default=None, metavar="PARTS",
              help="The layout it ran with, like tp=8,pp=2,micro_batch=1 (default: the planner's choice).")  # fmt: skip
@log_format_option
@click.option("--skip", type=click.IntRange(min=0), default=None, metavar="N",
              help="Leading steps to ignore (default: detected from their times).")  # fmt: skip
@click.option(
    "--step-name", default=None, metavar="REGEX", help="Names of the profiler ranges that are steps (nsys)."
)
@click.option("--out", type=FileBeside(), default=None,
              help="Write the calibration to this file (default: a folder that is used automatically).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Compare only; write nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(ANSWER_FORMATS),
    default="table",
    show_default=True,
    help="Output format.",
)
def calibrate(
    workload: Path, log: Path | None, measured: str | None, machine: str | None, nodes: int, provider: str | None,
    layout: str | None, kind: str, skip: int | None, step_name: str | None, out: Path | None, dry_run: bool,
    output: str,
) -> None:  # fmt: skip
    """Compare a run of WORKLOAD, recorded in LOG, with its prediction, and use the measurement in future predictions.

    LOG is a CSV of steps, the progress that `planner track` reads, a Megatron-LM log, an HF Trainer state or output, a
    TensorBoard event file, a summary of Weights & Biases, a torch profiler trace or an Nsight Systems export. Without
    LOG, --measured or the workload's line `measured:` is used.
    """
    from planner.estimation.calibrate import Run, run_calibration
    from planner.inputs.load import load_workload

    run = Run(log, measured, machine, nodes, provider, layout, kind, skip, step_name, out, dry_run)
    show_answer(run_calibration(load_workload(workload), run).report(), output, None)
