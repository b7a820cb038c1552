"""`planner review`: the FinOps review of one month of a bill."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from planner.commands.options import (
    Written,
    bill_options,
    currency_option,
    examples,
    more_paths,
    output_options,
    rates_options,
    vintages_option,
)
from planner.commands.output import show_answer, show_text
from planner.render.formats import REVIEW_FORMATS

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.finops.review.model import Review
    from planner.render.model import Answer

# The names of planner.finops.engine.registry.ENGINES and .dialects.DIALECTS, imported only when used; a test compares.
ENGINE_NAMES = ("duckdb", "spark", "bigquery", "snowflake", "databricks", "clickhouse", "trino", "athena", "redshift",
                "postgres")  # fmt: skip
DIALECT_NAMES = ("duckdb", "spark", "databricks", "bigquery", "snowflake", "clickhouse", "trino", "athena", "redshift",
                 "postgres")  # fmt: skip


def _month(text: str) -> date:
    from planner.inputs.quantities import parse_month

    return parse_month(text)


_MONTH = Written("month", _month)  # its first day


@click.command(
    epilog=examples(
        "planner review --focus examples/focus",
        "planner review --focus 'bills/*.parquet' --month 2026-10 -o html --out review.html",
    )
)
@more_paths
@bill_options
@click.option(
    "--month", type=_MONTH, default=None, help="Month to review (default: the latest with usage after day 1)."
)
@click.option(
    "--compare", type=_MONTH, default=None, help="Month to compare with (default: the previous one)."
)
@click.option("--tags", default="team,env", show_default=True, metavar="KEYS",
              help="Mandatory tag keys; the first one names the owner of the cost.")  # fmt: skip
@click.option(
    "--exact-tags",
    is_flag=True,
    help="Treat ML-Platform and ml_platform, and keys team and Team, as different (default: as the same).",
)
@click.option("--run-tag", default=None, metavar="KEY",
              help="Tag key that identifies a run (default: planner_run_id, otherwise run_id).")  # fmt: skip
@click.option(
    "--budgets", type=click.Path(path_type=Path), default=None, help="Budgets file, `planner schema budget`."
)
@click.option("--fiscal-year-start", type=click.IntRange(1, 12), default=None, metavar="MONTH",
              help="With --budgets: the fiscal year that begins in this month.")  # fmt: skip
@click.option(
    "--plans", multiple=True, metavar="GLOB", help="Saved plans (-o json) of the runs; may be repeated."
)
@click.option("--utilisation", type=click.Path(path_type=Path), default=None, metavar="CSV",
              help="Utilisation of accelerators, by day and run.")  # fmt: skip
@click.option("--ledger", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
              help="Ledger of accepted actions and their savings.")  # fmt: skip
@click.option(
    "--accept", multiple=True, metavar="ID", help="Accept an action into the --ledger; may be repeated."
)
@click.option("--showback", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="RULES",
              help="Rules that assign costs to teams (YAML, `planner schema showback`).")  # fmt: skip
@click.option(
    "--statement", default=None, metavar="TEAM", help="Show one team's statement instead of the review."
)
@click.option("--usage", "usages", multiple=True, metavar="FILE[@PLACE]",
              help="GPU usage from Slurm sacct, DCGM, OpenCost or Kubernetes; may be repeated.")  # fmt: skip
@click.option(
    "--forecasts",
    multiple=True,
    metavar="GLOB",
    help="Earlier forecasts (`planner forecast -o json`); may be repeated.",
)
@vintages_option
@click.option(
    "--forecast/--no-forecast", "ahead", default=True, show_default=True, help="Include a forecast."
)
@currency_option
@rates_options
@click.option(
    "--engine",
    type=click.Choice(ENGINE_NAMES),
    default="duckdb",
    show_default=True,
    help="Engine that computes the sums.",
)
@click.option("--connection", default=None, metavar="MODULE:FUNCTION|URL", envvar="PLANNER_CONNECTION",
              help="Connection to the warehouse of --focus; better keep a URL in PLANNER_CONNECTION.")  # fmt: skip
@click.option("--emit-sql", type=click.Choice(DIALECT_NAMES), default=None,
              help="Print the SQL of the KPIs instead; --focus: with the tag keys that it uses.")  # fmt: skip
@click.option("--cube", "cubes", type=click.Path(path_type=Path, file_okay=False), multiple=True, metavar="FOLDER",
              help="Write the bill's sums to this folder; without --focus, review its sums.")  # fmt: skip
@click.option("--use-case", default=None, metavar="NAME",
              help="Answer one official FOCUS use case instead; `list` shows those available.")  # fmt: skip
@click.option("--measurements", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="FOLDER",
              help="Write one file per planned run to this folder, for `planner calibrate`.")  # fmt: skip
@output_options(REVIEW_FORMATS, private=True)
def review(
    focus: tuple[str, ...], more: tuple[str, ...], emit_sql: str | None, use_case: str | None, output: str,
    out: Path | None, **given: Any,
) -> None:  # fmt: skip
    """Review one month of a bill: FOCUS 1.0 to 1.4, or the exports of AWS, Azure and Google.

    Spend and why it changed, savings, commitments, GPU units, allocation, anomalies, forecast, plans against the bill,
    and what to do. Exit code 0: reviewed; 2: invalid input.
    """
    from planner.errors import InputError

    bill = (*focus, *more)  # a shell puts what a glob matches after --focus
    if emit_sql is not None:
        show_text(_emitted(emit_sql, bill, given), out)
    elif use_case is not None and (bill or given["cubes"] or use_case == "list"):
        show_answer(_use_case(bill, use_case, given), output, out)
    elif not bill and not given["cubes"]:
        raise InputError("--focus: name the bill's files or folder")
    elif given["statement"] is not None:
        show_answer(_statement(bill, given), output, out)
    else:
        _show_review(bill, given, output, out)


def _emitted(dialect: str, focus: tuple[str, ...], given: dict[str, Any]) -> str:
    """The KPIs' SQL; with a bill its spellings of the tags' keys count."""
    from planner.finops.read.tag_keys import tag_keys
    from planner.finops.review.emit import emit_kpis

    keys = None
    if focus:
        with _open(focus, given, lambda _step, _share: None) as bill:
            keys = tag_keys(bill, exact=given["exact_tags"])
    return emit_kpis(
        dialect, given["month"], given["compare"], _words(given["tags"]), given["run_tag"], keys,
        exact_tags=given["exact_tags"],
    )  # fmt: skip


def _show_review(focus: tuple[str, ...], given: dict[str, Any], output: str, out: Path | None) -> None:
    """Show the review, and accept actions once it was shown, or its file written."""
    from planner.errors import InputError, OutputError
    from planner.finops.review.report import review_answer

    book = _ledger(given["ledger"], given["accept"])
    review = _review(focus, given, book, lines=output == "xlsx")
    if book is None or not given["accept"]:
        show_answer(review_answer(review), output, out)
        return
    try:
        show_answer(review_answer(review), output, out)
        if out is None:
            sys.stdout.flush()  # a reader that went away is told by the last bytes
    except (OutputError, OSError):
        click.echo("--accept: nothing was accepted: the answer could not be written to its end", err=True)
        raise
    try:
        book.save()
    except (InputError, OutputError, OSError):
        click.echo(
            "--accept: nothing was accepted, though the answer says so: the ledger is as it was", err=True
        )
        raise


def _ledger(path: Path | None, wanted: tuple[str, ...]) -> Any:
    """The ledger, or None; `--accept` needs one."""
    from planner.errors import InputError
    from planner.finops.ledger import open_book

    if path is None:
        if wanted:
            raise InputError("--accept: name the file that keeps accepted actions with --ledger FILE")
        return None
    return open_book(path, wanted)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _review(focus: tuple[str, ...], given: dict[str, Any], ledger: Any, *, lines: bool) -> Review:
    from planner.errors import InputError
    from planner.finops.forecast.completion import learn_completion
    from planner.finops.forecast.daily import load_vintages
    from planner.finops.plan_vs_actual import load_plans
    from planner.finops.review.answer import review_bill
    from planner.finops.review.files import find_named, load_forecasts, write_measurements
    from planner.finops.review.inputs import Beside
    from planner.finops.usage import load_usage
    from planner.finops.utilisation import load_utilisation
    from planner.inputs.showback_load import load_showback
    from planner.render.progress import step_progress

    if given["fiscal_year_start"] is not None and given["budgets"] is None:
        raise InputError("--fiscal-year-start: name the budgets with --budgets FILE")
    plans = load_plans(find_named("--plans", given["plans"]))
    forecasts = load_forecasts(find_named("--forecasts", given["forecasts"]))
    busy = load_utilisation(given["utilisation"]) if given["utilisation"] else None
    beside = Beside(
        usage=load_usage(given["usages"]) if given["usages"] else None,
        ledger=ledger,
        showback=load_showback(given["showback"]) if given["showback"] else None,
        fiscal_start=given["fiscal_year_start"],
    )
    budgets = _budgets(given["budgets"])
    late = learn_completion(load_vintages(given["vintages"])) if given["vintages"] else None
    quiet = bool(getattr(click.get_current_context().find_root().obj, "quiet", False))
    with step_progress("review", quiet=quiet) as tell, _open(focus, given, tell, tags_later=True) as bill:
        review = review_bill(
            bill, month=given["month"], compare_month=given["compare"], budgets=budgets, plans=plans, utilisation=busy,
            tags=_words(given["tags"]), run_tag=given["run_tag"], forecasts=forecasts, forecast=given["ahead"],
            completion=late, progress=tell, beside=beside, lines=lines,
            exact_tags=given["exact_tags"],
        )  # fmt: skip
    if given["measurements"] is not None:
        write_measurements(given["measurements"], review)
    return replace(review, command=f"{review.command}{_as_asked(given)}") if review.command else review


def _as_asked(given: dict[str, Any]) -> str:
    """The options that affect the content of a review, for running it again."""
    changed = [("--compare", f"{given['compare']:%Y-%m}")] if given["compare"] else []
    changed += [
        (f"--{name}", str(given[name]))
        for name in ("budgets", "utilisation", "vintages", "ledger", "showback")
        if given[name]
    ]
    changed += [(f"--{name}", pattern) for name in ("plans", "forecasts") for pattern in given[name]]
    changed += [("--usage", name) for name in given["usages"]]
    context = click.get_current_context()
    changed += [
        (f"--{name.replace('_', '-')}", given[name])
        for name in ("tags", "run_tag")
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]
    if given["fiscal_year_start"]:
        changed.append(("--fiscal-year-start", str(given["fiscal_year_start"])))
    flags = " --exact-tags" if given["exact_tags"] else ""
    return "".join(f" {option} {shlex.quote(value)}" for option, value in changed) + flags


def _statement(focus: tuple[str, ...], given: dict[str, Any]) -> Answer:
    """What one team is shown."""
    from planner.finops.read.tag_keys import tag_keys
    from planner.finops.showback.statement import rules_by_tag, team_statement
    from planner.finops.usage import load_usage
    from planner.inputs.showback_load import load_showback

    rules = load_showback(given["showback"]) if given["showback"] else None
    usage = load_usage(given["usages"]) if given["usages"] else None
    exact = given["exact_tags"]
    with _open(focus, given, lambda _step, _share: None) as bill:
        if rules is None:
            keys = tag_keys(bill, exact=exact)
            rules = rules_by_tag(*keys.spellings(keys.spelled((*_words(given["tags"]), "team")[0])))
        return team_statement(bill, given["month"], rules, given["statement"], usage, exact_tags=exact)


def _use_case(focus: tuple[str, ...], name: str, given: dict[str, Any]) -> Answer:
    """One official question and its answer, or the list of questions."""
    from planner.finops.use_cases.report import LIST, list_use_cases, report_use_case

    if not focus and not given["cubes"]:
        return list_use_cases(None)
    with _open(focus, given, lambda _step, _share: None) as bill:
        if name == LIST:
            return list_use_cases(bill)
        tag = (*_words(given["tags"]), "team")[0]
        return report_use_case(
            bill,
            name,
            month=given["month"],
            compare=given["compare"],
            tag=tag,
            exact_tags=given["exact_tags"],
        )


def _open(focus: tuple[str, ...], given: dict[str, Any], tell: Any, *, tags_later: bool = False) -> Bill:
    """The bill, or the cubes of one; a cube that is to be written is written on the way."""
    from planner.errors import InputError
    from planner.finops.read import open_bill
    from planner.finops.read.mapping import read_mapping
    from planner.finops.read.rates import read_rates

    cubes: tuple[Path, ...] = given["cubes"]
    rates = read_rates(given["rates"], given["target"])
    if not focus:
        from planner.finops.cube import open_cube

        if given["engine"] != "duckdb":
            raise InputError(f"--cube: is read by the embedded engine, not by {given['engine']}")
        if rates is not None:
            raise InputError("--rates: a cube is in one currency; give the rates when it is written")
        return open_cube(cubes, currency=given["currency"])
    bill = open_bill(
        focus, engine=given["engine"], month=given["month"], currency=given["currency"], progress=tell,
        mapping=read_mapping(given["pairs"], given["map_file"]), rates=rates, connection=_connection(given),
        tags_later=tags_later and not cubes,
    )  # fmt: skip
    bill = replace(bill, mapping_file=str(given["map_file"] or ""))
    if not cubes:
        return bill
    from planner.finops.cube import build_cube
    from planner.finops.read.tag_keys import tag_keys

    try:
        if len(cubes) > 1:
            raise InputError("--cube: one folder is written; without --focus several are reviewed together")
        keys = tag_keys(bill)
        spelled = (*map(keys.spelled, _words(given["tags"])), keys.run_key(given["run_tag"]))
        spellings = dict.fromkeys(spelling for key in spelled for spelling in keys.spellings(key))
        build_cube(bill, cubes[0], tags=tuple(spellings), progress=tell)
    except BaseException:
        bill.close()
        raise
    return bill


def _connection(given: dict[str, Any]) -> str | None:
    """How to reach the warehouse; a setting of the environment is for warehouses alone."""
    from planner.errors import InputError

    connection: str | None = given["connection"]
    if connection is None or given["engine"] not in ("duckdb", "spark"):
        return connection
    if click.get_current_context().get_parameter_source("connection") is ParameterSource.ENVIRONMENT:
        return None
    raise InputError(f"--connection: is for a warehouse; --engine {given['engine']} reads files itself")


def _budgets(path: Path | None) -> Any:
    if path is None:
        return None
    from planner.inputs.budget_load import load_budgets

    return load_budgets(path)
