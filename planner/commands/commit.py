"""`planner commit`: which commitments to buy for a demand that is not known."""

from __future__ import annotations

import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from planner.commands.options import (
    DAY,
    RATIO,
    SECONDS,
    FileBeside,
    capitals,
    details_option,
    examples,
    mapping_options,
    output_options,
    verbose_option,
)
from planner.commands.output import file_mode, show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.commitments.advise import Work
    from solvers.search.decompose import Round

_SEED_OF_BILL = "--currency and --seed belong to --from-focus: a question states its seed itself"
_COLUMNS_OF_BILL = "--map and --map-file are for --from-focus: a question has no columns of a bill"
_OF_BILLS = {  # by the parameter, what is said of it beside a question
    "currency": _SEED_OF_BILL,
    "seed": _SEED_OF_BILL,
    "avoid_loss": "--avoid-loss is for --from-focus: a question states risk.loss_price (1.5) itself",
    "expires": "--expires is for --from-focus: a question states when its `commitments` expire itself",
    "pairs": _COLUMNS_OF_BILL,
    "map_file": _COLUMNS_OF_BILL,
}


@click.command(
    epilog=examples(
        "planner commit examples/commit.yaml", "planner commit --from-focus bills/ -o html --out commit.html"
    )
)
@click.argument("question", type=click.Path(path_type=Path), required=False)
@click.option(
    "--from-focus", "bills", multiple=True, metavar="PATH",
    help="Instead of QUESTION: demand and owned commitments from a bill (FOCUS or a cloud's export).",
)  # fmt: skip
@mapping_options
@click.option(
    "--currency",
    default=None,
    callback=capitals,
    metavar="CODE",
    help="Use only rows in this currency, if the bill has several.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=None,
    help="Seed of the scenarios drawn from a bill (default: 1).",
)
@click.option(
    "--expires", multiple=True, metavar="ID=DATE",
    help="With a bill: last day of a commitment that it shows, where the bill does not say it; may be repeated.",
)  # fmt: skip
@click.option(
    "--avoid-loss", is_flag=True,
    help="With a bill: buy less, so that few scenarios cost over 2 % more than buying nothing.",
)  # fmt: skip
@output_options(ANSWER_FORMATS, private=True)
@click.option(
    "--as-of",
    type=DAY,
    default=None,
    metavar="DATE",
    help="Use the prices known on this day (default: newest).",
)
@click.option(
    "--gap", type=RATIO, default="0.1%", show_default=True, help="Gap at which the solver may stop."
)
@click.option(
    "--time-limit", type=SECONDS, default="60s", show_default=True, help="Time limit of the search."
)
@click.option(
    "--regret/--no-regret", default=True, show_default=True, help="Also solve each scenario separately."
)
@click.option(
    "--certificate", type=FileBeside(), default=None,
    help="Write the proof of the bound to this file, for `planner verify`.",
)  # fmt: skip
@details_option("warnings", "buy", "later", "money", "levels", "falls", "expiring", "break_even", "grounds")
@verbose_option("All sections, every round and every break-even.")
@click.pass_context
def commit(
    ctx: click.Context, question: Path | None, bills: tuple[str, ...], pairs: tuple[str, ...], map_file: Path | None,
    currency: str | None, seed: int | None, expires: tuple[str, ...], avoid_loss: bool, output: str,
    as_of: datetime | None, gap: float, time_limit: float, regret: bool, certificate: Path | None, out: Path | None,
    details: tuple[str, ...], verbose: bool,
) -> None:  # fmt: skip
    """Find which reservations and savings plans to buy for QUESTION (a YAML file, see examples/commit.yaml).

    Scenarios of demand come from a usage history (CSV or FOCUS) and from plans. The answer weighs the expected cost
    against the worst outcomes and includes a bound. With --from-focus, demand and owned commitments come from the
    last thirteen months of a bill (or as many as it has), and one-year terms start on the day after its last day.
    Ctrl-C ends the search with the best answer so far. Exit code 0: an answer; 2: invalid input; 130: interrupted.
    """
    from planner.commitments.advise import advise
    from planner.commitments.asked import ask_bill, ask_file
    from planner.commitments.report import commit_report
    from planner.commitments.stated_ends import parse_ends
    from planner.errors import InputError
    from planner.finops.read.mapping import read_mapping
    from planner.render.progress import text_progress
    from planner.startup import is_interrupted

    if (question is None) == (not bills):
        raise InputError("give either a QUESTION (examples/commit.yaml) or --from-focus with a bill")
    if question is not None:
        _refuse_options_of_bills(ctx)
    day, ends = as_of and as_of.date(), parse_ends(expires)
    asked = (
        ask_bill(
            bills,
            day,
            currency=currency,
            seed=seed,
            avoid_loss=avoid_loss,
            expires=ends,
            mapping=read_mapping(pairs, map_file),
        )
        if question is None
        else ask_file(question, day)
    )
    quiet = verbose or (ctx.obj is not None and ctx.obj.quiet)  # --verbose writes its own lines
    with text_progress("commit", quiet=quiet) as tell:
        work = advise(
            asked.loaded,
            asked.catalog,
            gap=gap,
            time_limit_s=time_limit,
            with_regret=regret,
            progress=_show if verbose else _rounds(tell),
            stage=tell,
            from_bill=asked.from_bill,
        )
    sections = details or (("all",) if verbose else ())
    source = "FILE" if question else _of_bill(pairs, map_file, currency, seed, expires, avoid_loss=avoid_loss)
    is_proven = not is_interrupted() and _prove(work, certificate)
    show_answer(commit_report(work.answer, verbose=verbose, details=sections, asked_as=source), output, out)
    if not is_proven:  # after Ctrl-C there may be time for the answer alone
        _prove(work, certificate)


def _prove(work: Work, certificate: Path | None) -> bool:
    """Write the certificate that was asked for; False where Ctrl-C ended it."""
    if certificate is None:
        return True
    from planner.commitments.certificate import write_certificate

    try:
        write_certificate(certificate, work.built.model, work.solved, mode=file_mode())
    except KeyboardInterrupt:
        return False
    return True


def _refuse_options_of_bills(ctx: click.Context) -> None:
    """Refuse options of `--from-focus` beside a question."""
    from planner.errors import InputError

    for name, said in _OF_BILLS.items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise InputError(said)


def _of_bill(
    pairs: tuple[str, ...], map_file: Path | None, currency: str | None, seed: int | None,
    expires: tuple[str, ...], *, avoid_loss: bool,
) -> str:  # fmt: skip
    """The options of a question about a bill, for the suggested next command."""
    columns = [f"--map-file {shlex.quote(str(map_file))}"] if map_file else []
    options = [
        *(columns or [f"--map {shlex.quote(pair)}" for pair in pairs]),
        ("--avoid-loss" if avoid_loss else ""),
        (f"--currency {shlex.quote(currency)}" if currency else ""),
    ]
    options += [f"--expires {shlex.quote(text)}" for text in expires]
    options.append("" if seed is None else f"--seed {seed}")
    return " ".join(["--from-focus BILL", *filter(None, options)])


def _rounds(tell: Callable[[str], None]) -> Callable[[Round], None]:
    """Report each round on the terminal."""
    from planner.render.precision import dollars

    def show(done: Round) -> None:
        bound = dollars(max(done.bound, 0.0), 0)
        tell(f"search: best {dollars(done.objective, 0)}, no choice below {bound}")

    return show


def _show(done: Round) -> None:
    """One round, on standard error."""
    click.echo(
        f"{done.elapsed_s:7.2f} s  best {done.objective:,.0f}  bound {done.bound:,.0f}", file=sys.stderr
    )
