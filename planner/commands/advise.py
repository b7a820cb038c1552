"""`planner advise`: what a job on spot should do now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import SECONDS, FileBeside, evidence_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.advice.question import Question
    from planner.advice.recording import Row
    from planner.inputs.state_load import LoadedState
    from planner.spot.hazards import HazardModel

POLICY_NAMES = ("survival", "uniform_progress", "greedy", "margin", "on_demand", "spot_only")


@click.command(
    epilog=examples(
        "planner advise plan.json --state examples/spot-state.json",
        "planner advise plan.json --state state.yaml --policy uniform_progress --table decisions.csv",
    )
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path),
    required=True,
    help="Current state of the job: YAML or JSON, `planner schema state`.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICY_NAMES),
    default="survival",
    show_default=True,
    help="Policy that decides.",
)
@click.option(
    "--every",
    type=SECONDS,
    default=None,
    help="Time between two questions of the launcher (default: 6m, longer for jobs of more than a week). A state "
    "older than twice this time is refused.",
)
@click.option(
    "--margin",
    type=SECONDS,
    default=None,
    help="Finish this long before the deadline, e.g. 30m, because unsaved work may be lost.",
)
@click.option(
    "--workload",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Workload of the plan: use the current records that its spot.evidence names.",
)
@click.option(
    "--futures",
    type=click.IntRange(0, 10_000),
    default=400,
    show_default=True,
    help="Futures drawn for costs and probabilities; 0: only the action, which does not depend on them (faster).",
)
@evidence_option
@click.option(
    "--table",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Also write the policy's decisions for all states: FILE.json or FILE.csv.",
)
@click.option(
    "--record",
    type=FileBeside(),
    default=None,
    metavar="FILE",
    help="Also append the state of each zone to this CSV, in the format that --spot-evidence reads.",
)
@output_options(ANSWER_FORMATS)
def advise(
    plan: Path,
    state_file: Path,
    policy: str,
    output: str,
    every: float | None,
    futures: int,
    margin: float | None,
    workload: Path | None,
    spot_evidence: tuple[Path, ...],
    table: Path | None,
    record: Path | None,
    out: Path | None,
) -> None:
    """Recommend the next action for the job of PLAN (JSON of `planner optimize -o json`, on spot).

    The action is to wait, start spot in a zone, stay, migrate or switch to on-demand. The answer also gives its cost,
    the other options, and the time until on-demand must start. As long as on-demand is available, no policy puts the
    deadline at risk.

    Exit code 0: an action (or the work is done); 3: the deadline has passed or can no longer be met for certain; 2:
    invalid input.
    """
    from planner.advice.answer import advise as answer
    from planner.advice.hazards import kept_as_planned, workload_evidence
    from planner.advice.kept import kept_arrays
    from planner.advice.question import build_question, usual_tick_hours
    from planner.advice.report import advice_report
    from planner.advice.saved_plan import load_spot_plan
    from planner.inputs.state_load import load_state

    spot_plan, loaded = load_spot_plan(plan).due_earlier((margin or 0.0) / 3600.0), load_state(state_file)
    tick_hours = usual_tick_hours(spot_plan) if every is None else every / 3600.0
    question = build_question(
        spot_plan,
        loaded,
        tick_hours=tick_hours,
        clock=datetime.now(UTC),
        loop_hours=None if every is None else tick_hours,
    )
    observed = () if record is None else _to_record(question, loaded)
    workload_traces, notes = ((), ()) if workload is None else workload_evidence(workload, spot_plan)
    evidence = _readable((*workload_traces, *spot_evidence), record)
    question = replace(question, notes=(*question.notes, *notes))
    question, model = kept_as_planned(question, evidence, lambda: load_model(evidence))
    recommendation = answer(question, model, policy, futures=futures, memory=kept_arrays)
    if table is not None:
        _write_table(table, question, model, policy)
    show_answer(advice_report(recommendation), output, out)
    if record is not None:  # after the answer: a full disk must not stop the job
        from planner.advice.recording import append_rows

        append_rows(record, observed)
    if recommendation.status in ("late", "missed"):
        click.get_current_context().exit(3)


def _to_record(question: Question, loaded: LoadedState) -> tuple[Row, ...]:
    """What `--record` adds; its module is read for it alone."""
    from planner.advice.recording import recorded_rows

    return recorded_rows(question, loaded)


def _readable(evidence: Sequence[Path], record: Path | None) -> tuple[Path, ...]:
    """The evidence without the record that this very call begins."""
    begun = None if record is None or record.exists() else record.resolve()
    return tuple(path for path in evidence if path.resolve() != begun)


def load_model(evidence: Sequence[Path]) -> HazardModel:
    """The bundled hazards, updated with the user's files."""
    if evidence:
        from planner.spot.hazards_evidence import model_from_files

        return model_from_files(evidence)
    from planner.spot.hazards import load_hazards

    return load_hazards()


def _write_table(path: Path, question: Question, model: HazardModel, policy: str) -> None:
    """Write the decision table; the format follows from the file's name."""
    from planner.advice.table import build_table, table_text
    from planner.files import write_atomically

    table = build_table(question.job, model, policy)
    write_atomically(path, table_text(table, path))
    click.echo(f"wrote {path}: {table.meaning}", file=sys.stderr)
