"""`planner portfolio`: many jobs, shared quotas, one budget."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import (
    FileBeside,
    as_of_option,
    details_option,
    examples,
    output_options,
    robust_option,
    solver_options,
    verbose_option,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.portfolios.answer import PortfolioAnswer
    from planner.portfolios.solve import PortfolioOptions
    from planner.render.model import Answer


@click.command(
    epilog=examples(
        "planner portfolio examples/portfolio.yaml",
        "planner portfolio examples/portfolio.yaml --frontier 5 -o csv",
    )
)
@click.argument("jobs", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@as_of_option
@click.option(
    "--mode",
    type=click.Choice(["auto", "fast", "full"]),
    default="auto",
    show_default=True,
    help="fast: plan with an exact bound; full: the whole model; auto: full only if fast misses the gap.",
)
@solver_options
@click.option(
    "--frontier",
    type=click.IntRange(min=2, max=100),
    default=None,
    metavar="N",
    help="Show N points of cost against delay instead of one plan.",
)
@click.option(
    "--rolling",
    metavar="TIME",
    default=None,
    help="Let the jobs arrive at their `submitted` times and plan again every TIME, such as 1d.",
)
@robust_option
@click.option(
    "--certificate", type=FileBeside(), default=None, help="Also write the proof, for `planner verify`."
)
@details_option(
    "stuck", "relaxation", "teams", "sums", "points", "jobs", "limits", "warnings", "filters", "proof"
)
@verbose_option("All sections, with every job, limit and filter.")
def portfolio(
    jobs: Path, output: str, as_of: datetime | None, mode: str, backend: str, time_limit: float, gap: float,
    frontier: int | None, rolling: str | None, robust: float | None, certificate: Path | None, out: Path | None,
    details: tuple[str, ...], verbose: bool,
) -> None:  # fmt: skip
    """Plan all jobs of JOBS (a YAML file, `planner schema portfolio`) together: the cheapest within shared limits.

    Exit code 0: a plan; 3: not everything fits (the answer names the limits to relax, and plans with them relaxed);
    2: invalid input; 6: no plan within the time limit. Ctrl-C gives the best plan so far with its bound.
    """
    from planner.asked.options import options_at
    from planner.errors import InputError
    from planner.inputs.portfolio_load import load_portfolio
    from planner.portfolios.answer import plan_portfolio
    from planner.portfolios.report import portfolio_report
    from planner.portfolios.solve import PortfolioOptions
    from solvers.problem.errors import ModelError

    loaded = load_portfolio(jobs)
    planning = options_at(as_of)
    if rolling is not None or loaded.portfolio.rolling is not None:
        exclusive = {"--frontier": frontier, "--robust": robust, "--certificate": certificate}
        _rolling(
            loaded,
            planning,
            rolling,
            [name for name, value in exclusive.items() if value is not None],
            (verbose, details, output, out),
        )
        return
    options = PortfolioOptions(gap=gap, time_limit_s=time_limit, backend=backend, mode=mode)

    sections = details or (("all",) if verbose else ())
    try:
        if frontier is None:
            answer = plan_portfolio(loaded, planning, options, robust_level=robust)
            report, code = portfolio_report(answer, verbose=verbose, details=sections), _exit_code(answer)
        elif robust is not None or loaded.portfolio.risk is not None:
            raise InputError(
                "--frontier: its points are by expected cost; leave out --robust, and `risk` of the file"
            )
        else:
            report, code = _frontier(loaded, planning, options, frontier, sections)
    except ModelError as error:
        raise InputError(f"{jobs}: {error}") from error
    if certificate is not None:
        if frontier is not None:
            raise InputError("--certificate: is of one plan; leave out --frontier")
        from planner.files import write_atomically
        from planner.portfolios.certificate import certificate_text

        write_atomically(certificate, certificate_text(answer))
    show_answer(report, output, out)
    if code:
        click.get_current_context().exit(code)


def _rolling(
    loaded: LoadedPortfolio, planning: Options, every: str | None, others: list[str],
    shown: tuple[bool, tuple[str, ...], str, Path | None],
) -> None:  # fmt: skip
    """Plan as jobs arrive, and show it."""
    from planner.errors import InputError
    from planner.portfolios.rolling.answer import plan_rolling
    from planner.portfolios.rolling.report import rolling_report
    from planner.units import parse_duration

    if others:
        raise InputError(f"{others[0]}: is of one plan with all jobs known; leave it out of a rolling plan")
    try:
        step = None if every is None else parse_duration(every)
    except ValueError as error:
        raise InputError(f"--rolling: {error}") from error
    verbose, details, output, out = shown
    answer = plan_rolling(loaded, planning, step)
    report = rolling_report(answer, verbose=verbose, details=details)
    show_answer(report, output, out)
    if not report.success:
        click.get_current_context().exit(3)


def _frontier(
    loaded: LoadedPortfolio,
    planning: Options,
    options: PortfolioOptions,
    points: int,
    details: tuple[str, ...],
) -> tuple[Answer, int]:
    from planner.portfolios.frontier_report import frontier_report, plan_frontier

    frontier = plan_frontier(loaded, planning, options, points)
    return frontier_report(frontier, details=details), 0 if frontier.points else 3


def _exit_code(answer: PortfolioAnswer) -> int:
    from solvers.problem.solution import Status

    if answer.solver_fault:
        return 1
    if answer.result.picks is not None:
        return 0
    return 3 if answer.result.status is Status.INFEASIBLE else 6
