"""`planner optimize`: the cheapest feasible plan for a workload, with proof."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import (
    DAYS,
    RATIO,
    SECONDS,
    USD,
    FileBeside,
    as_of_option,
    details_option,
    evidence_option,
    examples,
    offer_options,
    output_options,
    ratio_type,
    set_option,
    verbose_option,
)
from planner.commands.output import is_complete, show_answer
from planner.commands.reuse import asked_before, reuse_option
from planner.plan.details import ALL_DETAILS, DETAILS
from planner.render.formats import PLAN_FORMATS

if TYPE_CHECKING:
    from planner.plan.model import Plan
    from planner.render.model import Answer as Shown
    from planner.workloads.answer import Answer


@click.command(
    epilog=examples(
        "planner optimize workload.yaml --set constraints.deadline=10d",
        "planner optimize examples/bert-large.yaml --solver both -o json --out plan.json",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@output_options(PLAN_FORMATS)
@as_of_option
@click.option("--max-results", type=click.IntRange(min=1), default=None, help="Alternatives to show.")
@click.option(
    "--objective",
    type=click.Choice(["cost", "time", "carbon"]),
    default=None,
    help="What to optimise (default: the file's objective).",
)
@click.option("--best-within", type=USD, default=None, metavar="USD",
              help="Best result for a budget: all of the work soonest, otherwise as much as possible.")  # fmt: skip
@click.option("--solver", type=click.Choice(["enumerate", "milp", "both"]), default="enumerate", show_default=True,
              help="Exact enumeration, a MILP of the same problem, or both, which must agree.")  # fmt: skip
@click.option("--backend", default="auto", show_default=True, help="MILP backend: auto, highspy or scipy.")
@click.option("--time-limit", type=SECONDS, default="30s", show_default=True, help="Time limit of a MILP.")
@click.option("--gap", type=RATIO, default="0.1%", show_default=True, help="Gap at which a MILP may stop.")
@offer_options
@click.option(
    "--quota",
    type=click.Choice(["declared", "live"]),
    default="declared",
    show_default=True,
    help="Apply the workload's quotas, or also those of your account (queries the clouds).",
)
@click.option(
    "--prices",
    type=click.Choice(["stored", "live"]),
    default="stored",
    show_default=True,
    help="Use stored prices, or first query the clouds that the workload allows (like catalog refresh).",
)
@click.option(
    "--calibration/--no-calibration", "calibrated", default=True,
    help="Correct predictions with your measured runs (planner calibrate).",
)  # fmt: skip
@evidence_option
@click.option(
    "--replays", type=click.IntRange(min=0, max=100_000), default=0, metavar="N",
    help="Also replay a plan on spot in N random futures.",
)  # fmt: skip
@click.option(
    "--quote", type=ratio_type("95% or 0.95"), default=None, metavar="LEVEL",
    help="Also state the highest cost and latest end with this probability (50% to 99.9%).",
)  # fmt: skip
@click.option(
    "--why-not", multiple=True, metavar="TYPE", help="Also explain why this instance type was not chosen."
)
@click.option(
    "--max-age",
    type=DAYS,
    default=None,
    metavar="DAYS",
    help="Refuse a plan that depends on prices older than this, such as 30d.",
)
@click.option(
    "--certificate", type=FileBeside(), default=None, help="Also write the proof, for `planner verify`."
)
@reuse_option
@details_option(*DETAILS)
@verbose_option("Show all sections (or those of --details) with every assumption, cost line and filter.")
def optimize(
    workload: Path, values: tuple[str, ...], best_within: Decimal | None,
    output: str, as_of: datetime | None, max_results: int | None, objective: str | None, solver: str,
    backend: str, time_limit: float, gap: float, allow_flagged: bool, allow_derived: bool, quota: str,
    prices: str, calibrated: bool, spot_evidence: tuple[Path, ...], replays: int, quote: float | None,
    why_not: tuple[str, ...], max_age: int | None, out: Path | None, certificate: Path | None,
    reuse_answers: float, details: tuple[str, ...], verbose: bool,
) -> int:  # fmt: skip
    """Find the cheapest feasible plan for WORKLOAD (a YAML file, see `planner schema`).

    Exit code 0: a plan; 3: nothing fits (the answer says what to relax, in every format); 2: invalid input; 4: a plan,
    but not all of what --prices live or --quota live asked for was answered: stderr and the plan name it.
    """
    from planner.asked.options import Options, utc_now

    now = as_of or utc_now()
    before = asked_before(now, within_s=reuse_answers, unless=("best_within", "prices", "quota"))
    if before is not None and before.plan is not None:
        if certificate is None and not (why_not or (output == "html" and not details)):
            return _show(before.plan, None, "", output, out, details, verbose=verbose)
        now = before.asked_at  # what needs the run itself is of the same minute
    from planner.commands.live import ask_prices, quotas_were_read
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.job.overrides import override
    from planner.workloads.answer import optimize as find_plan

    if before is not None:
        before.watch()

    loaded = override(
        with_settings(load_workload(workload), values), max_results=max_results, objective=objective,
        allow_flagged=allow_flagged, allow_derived=allow_derived, spot_evidence=spot_evidence,
    )  # fmt: skip
    live = ask_prices(loaded, as_of) if prices == "live" else None
    options = Options(
        now, as_of=as_of and as_of.date(), live_quota=quota == "live", live_prices=live.warnings if live else (),
        solver=solver, backend=backend, gap=gap, time_limit_s=time_limit, max_age_days=max_age,
        calibrated=calibrated, replays=replays, quote=quote,
    )  # fmt: skip
    summary = ""
    if best_within is None:
        answer = find_plan(loaded, options)
    else:
        from planner.workloads.best_within import best_within as find_best

        answer, summary = find_best(loaded, best_within, options)
    if before is not None:
        before.keep(answer.plan, options)
    code = _show(answer.plan, answer, summary, output, out, details, verbose=verbose)
    _show_beside(answer, certificate, why_not, output)
    is_answered = (quota != "live" or quotas_were_read(answer)) and (live is None or live.is_whole)
    return code if code or is_answered else 4


def _show(
    plan: Plan, answer: Answer | None, summary: str, output: str, out: Path | None, details: tuple[str, ...],
    *, verbose: bool,
) -> int:  # fmt: skip
    """Show the plan; returns 0, or 3 if it is infeasible."""
    from planner.plan.report import plan_answer

    sections = details or ((ALL_DETAILS,) if verbose else ())
    to_show = _to_follow(plan) if output == "json" and out is not None else plan
    shown = plan_answer(to_show, verbose=verbose or is_complete(output), details=sections)
    if summary:
        shown = replace(shown, summary=(summary, *shown.summary))
    show_answer(_for_format(shown, plan, answer, output, whole=not details), output, out)
    return 3 if plan.status == "infeasible" else 0


def _to_follow(plan: Plan) -> Plan:
    """The plan with the hazards that `planner advise` would otherwise compute first; plans without spot unchanged."""
    if plan.launch is None:
        return plan
    from planner.advice.carried import with_hazards

    return with_hazards(plan)


def _for_format(shown: Shown, plan: Plan, answer: Answer | None, output: str, *, whole: bool) -> Shown:
    """The answer with additions of one format: rows of FOCUS, or the sliders of a page."""
    if output == "html" and whole and answer is not None:
        from planner.workloads.page import with_other_limits

        return with_other_limits(shown, answer)
    if output == "focus":
        from planner.finops.focus_out import with_focus

        return with_focus(shown, plan)
    return shown


def _show_beside(answer: Answer, certificate: Path | None, why_not: tuple[str, ...], output: str) -> None:
    """Write the certificate and explain why types were not chosen, if requested."""
    if certificate is not None:
        from planner.plan.certificates import write_certificate
        from planner.workloads.certificate import certify

        write_certificate(certificate, certify(answer))
    for name in why_not:
        from textwrap import fill

        from planner.job.explain import why_not as explain
        from planner.render.terminal import terminal_width

        stream = sys.stdout if output == "table" else sys.stderr
        lines = explain(answer.context.asked, answer.context.market, answer.found, name, answer.plan)
        width = terminal_width(stream)
        wrapped = (fill(line, width, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
        click.echo("\n" + "\n".join(wrapped), file=stream)
