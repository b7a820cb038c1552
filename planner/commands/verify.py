"""`planner verify`: recompute a saved answer or certificate, without the code that made it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import DAY, details_option, examples, output_options, set_option
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload
    from planner.judge.findings import Verdict

_WORDS = {
    "commit": "commitment plan",
    "portfolio_frontier": "frontier of a portfolio",
    "portfolio_rolling": "rolling plan",
    "serving": "serving fleet",
    "tco": "comparison of buying and renting",
}
_OF_WORKLOADS = ("plan", "frontier", "pools")  # answers whose question is a workload file

_BILLS = frozenset({".csv", ".gz", ".parquet", ".zip", ".tsv"})
_OF_BILL = "an answer from a bill is recomputed with --bill BILL"


@click.command(
    epilog=examples(
        "planner verify plan.json --workload workload.yaml", "planner verify certificate.json -o json"
    )
)
@click.argument("answer", type=click.Path(path_type=Path))
@click.option(
    "--workload", type=click.Path(path_type=Path), default=None,
    help="The input file of the answer: speed, hours, chances and limits are recomputed too.",
)  # fmt: skip
@click.option(
    "--bill", "bills", multiple=True, metavar="PATH",
    help="The bill of an answer of commit --from-focus; may be repeated.",
)  # fmt: skip
@set_option
@click.option(
    "--prices/--no-prices", default=True, show_default=True, help="Compare prices with the catalog."
)
@click.option(
    "--objective", type=click.Choice(["cost", "time", "carbon"]), default=None, help="As given to optimize."
)
@click.option("--allow-flagged", is_flag=True, help="As given to optimize.")
@click.option("--allow-derived", is_flag=True, help="As given to optimize.")
@click.option("--as-of", type=DAY, default=None, metavar="DATE", help="As given to schedule.")
@click.option(
    "--spot-evidence",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="As given to optimize.",
)
@details_option("faults", "stated")
@output_options(ANSWER_FORMATS)
def verify(
    answer: Path, workload: Path | None, bills: tuple[str, ...], values: tuple[str, ...], prices: bool,
    objective: str | None, allow_flagged: bool, allow_derived: bool, as_of: datetime | None,
    spot_evidence: tuple[Path, ...], details: tuple[str, ...], output: str, out: Path | None,
) -> None:  # fmt: skip
    """Recompute ANSWER (saved with `-o json`) from the catalog and its workload, with independent code.

    Given --bill, recompute an answer of commit --from-focus from the rows and scenarios that it was made of.
    Without --workload, it checks sums, dates and prices of a plan; with it, also speed and memory, hours,
    probabilities, every cost line, quotas and limits; what is stated and not recomputed is listed. An answer made with
    --set needs the same --set. Given a certificate (`--certificate FILE`), re-check the point, its cost, and the bound
    that no point is below, in whole numbers and without any solver.

    Exit code 0: it holds; 5: it does not; 3: it is infeasible, so there is nothing to check; 2: it is not an answer of
    this program.
    """
    from planner.judge.document import MalformedError, read_answer
    from planner.plan.certificates import is_certificate

    saved = read_answer(answer)
    if is_certificate(saved):
        _check_values(values, workload, "certificate")
        _show(answer, "certificate", _certificate(saved), details, output, out)
        return
    from planner.judge.judge import kind_of

    kind = kind_of(saved)
    _check_values(values, workload, kind)
    _check_bills(bills, workload, saved, kind)
    try:
        if kind in _OF_WORKLOADS:
            loaded = _load(workload, values, objective, allow_flagged, allow_derived, spot_evidence)
            verdict = _plan(answer, saved, loaded, prices)
        else:
            verdict = _bill(saved, bills) if bills else _question(kind, saved, workload, as_of)
    except MalformedError as error:
        raise MalformedError(f"{answer}: {error}") from error
    _show(answer, "pair of pools" if kind == "pools" else kind, verdict, details, output, out)


def _check_values(values: tuple[str, ...], workload: Path | None, kind: str) -> None:
    """Refuse `--set` without a workload file to put the values over.

    Raises:
        InputError: none is given, or the answer is of another kind of file.
    """
    from planner.errors import InputError

    if values and kind not in _OF_WORKLOADS:
        word = _WORDS.get(kind, kind)
        raise InputError(f"--set overrides values of a workload file, but a {word} is not made from one")
    if values and workload is None:
        raise InputError("--set overrides values of a workload file: give it with --workload")


def _check_bills(bills: tuple[str, ...], workload: Path | None, saved: Any, kind: str) -> None:
    """Refuse a bill of an answer that is from none.

    Raises:
        InputError: the answer is no commitment plan or that of a question, or a workload is given too.
    """
    from planner.errors import InputError

    if bills and kind == "commit" and saved.get("bill", ...) is None:  # earlier answers do not say it
        raise InputError("the answer is that of a question, not of a bill: give its file with --workload")
    if bills and (kind != "commit" or workload is not None):
        raise InputError("--bill is for an answer of commit --from-focus, in place of --workload")


def _bill(saved: Any, bills: tuple[str, ...]) -> Verdict:
    """Judge a commitment plan that was made of a bill."""
    from planner.commands.verified_bill import memory_of_bill
    from planner.judge.judge import judge_commit

    return judge_commit(saved, memory_of_bill(saved, bills))


def _load(
    path: Path | None,
    values: tuple[str, ...],
    objective: str | None,
    allow_flagged: bool,
    allow_derived: bool,
    evidence: tuple[Path, ...],
) -> LoadedWorkload | None:
    if path is None:
        return None
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.job.overrides import override

    return override(
        with_settings(load_workload(path), values),
        objective=objective,
        allow_flagged=allow_flagged,
        allow_derived=allow_derived,
        spot_evidence=evidence,
    )


def _plan(path: Path, saved: Any, loaded: LoadedWorkload | None, prices: bool) -> Verdict:
    """Judge a plan, a frontier, or pools: answers of a workload file."""
    from planner.judge.judge import judge_saved, kind_of
    from planner.plan.file import as_plan

    if kind_of(saved) != "plan":
        return judge_saved(saved, loaded, prices=prices)
    plan = as_plan(path, saved)
    return judge_saved(plan, loaded, prices=prices, older=saved["schema_version"] != plan["schema_version"])


def _question(kind: str, saved: Any, path: Path | None, as_of: datetime | None) -> Verdict:
    """Judge the answer to a question with its own file format.

    Raises:
        InputError: the file is not given.
    """
    from planner.errors import InputError
    from planner.judge.document import Node
    from planner.judge.judge import catalog_of, judge_pipeline, judge_schedule, judge_serving
    from planner.judge.memory import Memory

    if path is None:
        of_bill = f" (computed from a bill: {_OF_BILL})" if kind == "commit" else ""
        raise InputError(f"a {kind} is recomputed from its input file: give it with --workload{of_bill}")
    if kind == "schedule":
        from planner.inputs.schedule_load import as_on, load_schedule

        schedule = load_schedule(path)
        return judge_schedule(saved, schedule if as_of is None else as_on(schedule, as_of))
    if kind == "commit":
        return _commit(saved, path)
    if kind in ("portfolio", "portfolio_frontier", "portfolio_rolling"):
        from planner.inputs.portfolio_load import load_portfolio
        from planner.judge.judge import judge_portfolio, judge_portfolio_frontier, judge_portfolio_rolling
        from planner.judge.portfolio_jobs import PortfolioMemory
        from planner.portfolios.sized_jobs import check_candidates

        catalog_dates = Node(saved)["catalog"]
        jobs = load_portfolio(path)
        check_candidates(jobs)  # the judge reads the file by code of its own, which names no lines
        memory = PortfolioMemory(jobs, catalog_of(Node(saved)) if len(catalog_dates) else None)
        judges = {
            "portfolio": judge_portfolio, "portfolio_frontier": judge_portfolio_frontier,
            "portfolio_rolling": judge_portfolio_rolling,
        }  # fmt: skip
        return judges[kind](saved, memory)
    catalog = catalog_of(Node(saved))
    if kind == "tco":
        from planner.inputs.tco_load import load_tco
        from planner.judge.judge import judge_tco

        return judge_tco(saved, load_tco(path), catalog)
    if kind == "serving":
        from planner.inputs.serving_load import load_serving

        return judge_serving(saved, load_serving(path), catalog)
    from planner.inputs.pipeline_load import load_pipeline

    return judge_pipeline(saved, load_pipeline(path), Memory(catalog, path.parent))


def _commit(saved: Any, path: Path) -> Verdict:
    """Judge a commitment plan; files of demand are read first by the code that names their lines.

    Raises:
        InputError: the question is a bill, or a file cannot be read.
    """
    from planner.commitments.scenarios import check_demand
    from planner.errors import InputError
    from planner.inputs.commit_load import load_commit
    from planner.judge.commits.figures import CommitMemory
    from planner.judge.document import Node
    from planner.judge.judge import catalog_of, judge_commit

    if path.is_dir() or path.suffix.lower() in _BILLS:
        raise InputError(f"{path}: a bill: {_OF_BILL}")
    loaded = load_commit(path)
    check_demand(loaded)
    catalog_dates = Node(saved)["catalog"]
    return judge_commit(saved, CommitMemory(loaded, catalog_of(Node(saved)) if len(catalog_dates) else None))


def _certificate(certificate: dict[str, Any]) -> Verdict:
    from planner.judge.findings import Verdict
    from planner.plan.certificates import check_certificate, summary

    faults = tuple(map(str, check_certificate(certificate)))
    return Verdict(faults, ("point", "cost", "bound"), "" if faults else summary(certificate))


def _show(
    path: Path, kind: str, verdict: Verdict, details: tuple[str, ...], output: str, out: Path | None
) -> None:
    """Print a verdict; exit code 5 where the answer does not hold, 3 where it is that there is none."""
    from planner.errors import GateError, InfeasibleError
    from planner.plan.report_verdict import verdict_answer

    report = verdict_answer(str(path), _WORDS.get(kind, kind), verdict, details=details)
    show_answer(report, output, out)
    if verdict.faults:
        click.get_current_context().exit(GateError.exit_code)
    if verdict.nothing:
        click.get_current_context().exit(InfeasibleError.exit_code)
