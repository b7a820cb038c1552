"""What the options of several commands share: types with messages that name the remedy, and whole options."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from planner.errors import LONGEST_NAME, InputError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Value = TypeVar("_Value")

_BILLS = ("focus", "more")  # options of files, folders and globs
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def examples(*commands: str) -> str:
    """The end of a command's help: commands to copy, one a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


class Written(click.ParamType[_Value]):
    """A value by the text that it is written as.

    Args:
        name: of the type, in messages.
        read: gives the value; its ValueError says how the text should be written.
    """

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        """Take what reads the text."""
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Value:
        """The value; a default may be one already."""
        if not isinstance(value, str):
            return cast("_Value", value)
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _seconds_or_none(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h|)\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write it as 30s, 2m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def _seconds(text: str) -> float:
    if seconds := _seconds_or_none(text):
        return seconds
    raise ValueError(f"{text!r} is not a duration; write it as 30s, 2m or 1h")


def _days(text: str) -> int:
    number = text.strip().removesuffix("d")
    if not (number.isascii() and number.isdigit()):
        raise ValueError(f"{text!r} is not a number of days; write it as 30d")
    return int(number)


def _usd(text: str) -> Decimal:
    from planner.units import parse_money

    try:
        return parse_money(text)
    except ValueError as error:
        raise ValueError(f"it {error}") from error


def share(text: str) -> float:
    """The ratio that `20%` or `0.2` is; below 0 where the text is none."""
    text = text.strip()
    try:
        return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return -1.0


def ratio_type(example: str = "0.1% or 0.001") -> Written[float]:
    """A ratio of at least 0 and below 1; `example`: how it is written, for a message."""

    def read(text: str) -> float:
        ratio = share(text)
        if not 0.0 <= ratio < 1.0:
            percent = not text.strip().endswith("%") and 1.0 <= ratio < 100.0
            how = f"{text.strip()}% or {ratio / 100.0:g}" if percent else example
            wrong = "must be below 100 %" if ratio >= 1.0 and not percent else "is not a ratio"
            raise ValueError(f"{text!r} {wrong}; write it as {how}")
        return ratio

    return Written("ratio", read)


def _day(text: str) -> datetime:
    from planner.inputs.quantities import of_our_time

    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date; write it as 2026-11-20") from None
    return datetime.combine(of_our_time(day), time(), tzinfo=UTC)


SECONDS = Written("duration", _seconds)  # above 0
SECONDS_OR_NONE = Written("duration", _seconds_or_none)  # from 0
DAYS = Written("days", _days)  # `30d` or `30`
USD = Written("usd", _usd)  # `5000`, `5,000` or `$5000`, as a workload writes it
RATIO = ratio_type()
DAY = Written("date", _day)  # its first moment in UTC
STDOUT = Path("-")  # as the file of an answer


class FileBeside(click.Path):
    """A file that is written beside the answer, which has stdout for itself."""

    def __init__(self) -> None:
        """Take any path that is no folder."""
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail where it means stdout."""
        if str(value) == str(STDOUT):
            self.fail("- means stdout, which shows the answer; name a file", param, ctx)
        if len(os.fsencode(Path(value).name)) > LONGEST_NAME:  # not after the answer was worked out
            self.fail(f"the name has over {LONGEST_NAME} bytes", param, ctx)
        return super().convert(value, param, ctx)


_OTHER_DOCUMENTS = frozenset(
    {".pdf", ".doc", ".docx", ".odt", ".xls", ".ods", ".ppt", ".pptx", ".png", ".svg"}
)
FILE_MODE = "planner.file_mode"  # in the context's `meta`


def output_options(formats: Sequence[str], *, private: bool = False) -> Callable[[_Command], _Command]:
    """`-o` with these formats, the first by default, and `--out`, whose ending names the format where `-o` does not.

    Args:
        formats: names of formats.
        private: the answer shows a bill: its file is for its owner alone, unless `--mode` says otherwise.
    """

    def add(command: _Command) -> _Command:
        @functools.wraps(command)
        def run(*args: Any, **given: Any) -> Any:
            given["out"] = None if given["out"] == STDOUT else given["out"]
            _keep_inputs(given)
            given["output"] = _format_asked(given["output"], given["out"], formats)
            return command(*args, **given)

        out = click.option(
            "--out",
            type=click.Path(path_type=Path, dir_okay=False),
            default=None,
            help="Write to this file instead of stdout (-); without -o, its ending chooses the format.",
        )
        kind = click.Choice(list(formats))
        option = click.option(
            "-o", "--output", type=kind, default=formats[0], show_default=True, help="Output format."
        )
        run = mode_option(run) if private else run
        return cast("_Command", option(out(run)))

    return add


def _keep_inputs(given: Mapping[str, Any]) -> None:
    """Refuse an answer's file that is also read: it would be written over."""
    out = given["out"]
    if out is None or not out.exists():
        return
    for name, value in given.items():
        for one in value if isinstance(value, tuple) else (value,):
            if name != "out" and isinstance(one, str | Path) and _is_read(name, one, out):
                raise InputError(
                    f"--out {out}: is read by this command and would be written over; name another file"
                )


def _is_read(name: str, given: str | Path, out: Path) -> bool:
    """Whether an option names the answer's file, or a folder or glob of bills with it."""
    if name not in _BILLS or not (Path(given).is_dir() or any(mark in str(given) for mark in "*?[")):
        return _is_same(Path(given), out)
    from planner.finops.read.files import find_files

    return any(_is_same(path, out) for path in find_files([given]))


def _is_same(path: Path, out: Path) -> bool:
    try:
        return path.exists() and path.samefile(out)
    except (OSError, ValueError):  # a text that is no path
        return False


def _remember_mode(ctx: click.Context, param: click.Parameter, value: str) -> None:
    try:
        mode = int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise click.BadParameter(f"{value!r} is not a mode in octal digits such as 600 or 640", ctx, param)
    ctx.meta[FILE_MODE] = mode


mode_option = click.option(
    "--mode", default="600", show_default=True, metavar="OCTAL", expose_value=False, callback=_remember_mode,
    help="Permissions of the files written (bills are private).",
)  # fmt: skip


def _format_asked(output: str, out: Path | None, formats: Sequence[str]) -> str:
    """The format: what `-o` names, else what the file's ending does, else the default.

    Raises:
        InputError: the ending is that of a document which no format is, so that the file could not be opened.
    """
    source = click.get_current_context().get_parameter_source("output")
    if out is None or source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        return output
    from planner.render.formats import FORMATS, format_of

    if out.suffix.lower() in _OTHER_DOCUMENTS:
        raise InputError(
            f"--out {out}: no format is written as {out.suffix}; name a file that ends like one of "
            f"{', '.join(FORMATS[name].extension for name in formats)}, or the format with -o"
        )
    return format_of(out.name, formats) or output


as_of_option = click.option(
    "--as-of", type=DAY, default=None, metavar="DATE",
    help="Plan as of this day, with the prices known then (default: now).",
)  # fmt: skip


set_option = click.option(
    "--set", "values", multiple=True, metavar="KEY=VALUE",
    help="Override a value of the file, such as constraints.deadline=10d; may be repeated.",
)  # fmt: skip


def offer_options(command: _Command) -> _Command:
    """`--allow-flagged` and `--allow-derived`: offers that are left out otherwise."""
    flagged = click.option(
        "--allow-flagged", is_flag=True, help="Include offers that a flag refuses (see `catalog show`)."
    )
    derived = click.option(
        "--allow-derived", is_flag=True, help="Include commitment prices derived from median ratios."
    )
    return flagged(derived(command))


def verbose_option(help_text: str) -> Callable[[_Command], _Command]:
    """`-v` of a command that shows more of its answer; like that of all others, it shows tracebacks of our defects."""
    return click.option("-v", "--verbose", is_flag=True, callback=_remember_verbose, help=help_text)


def _remember_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value and ctx.obj is not None and not ctx.obj.verbosity:
        ctx.obj.verbosity = 1
    return value


class _SectionName(click.Choice[str]):
    """A section of an answer; a list of them is answered with how it is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """One of the names."""
        if "," in str(value):
            names = filter(None, (name.strip() for name in str(value).split(",")))
            self.fail(
                f"one section per option: {' '.join(f'--details {name}' for name in names)}", param, ctx
            )
        return super().convert(value, param, ctx)


def details_option(*sections: str) -> Callable[[_Command], _Command]:
    """`--details`: sections of the whole answer in place of the screen.

    Args:
        sections: keys of the sections that the command's answers have.
    """
    return click.option(
        "--details", multiple=True, type=_SectionName([*sections, "all"]), metavar="SECTION|all",
        help=f"Show a section of the full answer instead, or all; may be repeated: {', '.join(sections)}.",
    )  # fmt: skip


def solver_options(command: _Command) -> _Command:
    """`--backend`, `--time-limit` and `--gap` of a question that becomes a MILP."""
    backend = click.option(
        "--backend", default="auto", show_default=True, help="MILP backend: auto, highspy or scipy."
    )
    limit = click.option(
        "--time-limit", type=SECONDS, default="60s", show_default=True, help="Time limit of the solver."
    )
    gap = click.option(
        "--gap", type=RATIO, default="0.1%", show_default=True, help="Gap at which the solver may stop."
    )
    return backend(limit(gap(command)))


robust_option = click.option(
    "--robust", type=ratio_type("95% or 0.95"), default=None, metavar="LEVEL",
    help="Also weigh the worst outcomes: 95% adds the mean of the worst 5 %; the file's `risk` sets its weight.",
)  # fmt: skip


# The names of planner.calibration.logs.READERS, which is imported only when a log is read; a test compares them.
LOG_FORMATS = ("auto", "csv", "progress", "megatron", "hf", "torch", "tensorboard", "wandb", "nsys")
log_format_option = click.option(
    "--format", "kind", type=click.Choice(LOG_FORMATS), default="auto", show_default=True,
    help="Format of the log.",
)  # fmt: skip


def bill_options(command: _Command) -> _Command:
    """`--focus`, `--map` and `--map-file`: a bill, and how its columns are read."""
    focus = click.option(
        "--focus", multiple=True, metavar="PATH", help="Bill: files, folders, globs; may be repeated."
    )
    return focus(mapping_options(command))


def mapping_options(command: _Command) -> _Command:
    """`--map` and `--map-file`: how the columns of a bill are read."""
    pairs = click.option(
        "--map", "pairs", multiple=True, metavar="COLUMN=FOCUS",
        help="Read COLUMN of the bill as this FOCUS column; 'Usage'=ChargeCategory sets a constant. May be repeated.",
    )  # fmt: skip
    file = click.option(
        "--map-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="CSV",
        help="Store the mapping of --map in this file (columns column,focus) and read it the next time.",
    )  # fmt: skip
    return pairs(file(command))


more_paths = click.argument("more", nargs=-1, metavar="[PATH]...")
"""What a shell makes of a glob behind `--focus`: the first file is the option's, the others stand alone."""
daily_option = click.option(
    "--daily", type=click.Path(path_type=Path), help="Instead of a bill: CSV with date, scope, cost."
)


def capitals(_context: click.Context, _parameter: click.Parameter, code: str | None) -> str | None:
    """`eur` is EUR."""
    return None if code is None else code.strip().upper()


currency_option = click.option(
    "--currency", default=None, callback=capitals, metavar="CODE",
    help="ISO 4217 code: use only rows in this currency, and assume it for amounts without a currency.",
)  # fmt: skip


def rates_options(command: _Command) -> _Command:
    """The file of exchange rates, and the currency of the answer: `planner.finops.read.rates.read_rates`."""
    target = click.option(
        "--in", "target", default=None, metavar="CODE", help="ISO 4217: the currency of --rates."
    )
    rates = click.option(
        "--rates", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="CSV",
        help="Exchange rates (date, from, to, rate) to convert all currencies to the one of --in.",
    )  # fmt: skip
    return rates(target(command))


planned_option = click.option(
    "--plans", multiple=True, metavar="[SCOPE=]GLOB", help="Saved plans (-o json) to add; may be repeated."
)
drop_days_option = click.option(
    "--drop-days",
    type=click.IntRange(0, 31),
    default=None,
    help="Ignore this many last days (default: those whose bill looks incomplete).",
)
vintages_option = click.option(
    "--vintages", type=click.Path(path_type=Path), default=None, metavar="CSV",
    help="Earlier reports (reported, date, scope, cost), to learn how late charges arrive.",
)  # fmt: skip
evidence_option = click.option(
    "--spot-evidence", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Your availability traces (not of the planned days), preemption log, spot price history or placement scores, "
    "beside the bundled record and files named in the workload; may be repeated.",
)  # fmt: skip
