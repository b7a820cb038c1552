"""The command line: a click group that imports a command's module only when that command runs.

`planner --help` must stay instant, so this file imports click and nothing heavier, and the one-line helps
live in `COMMANDS` beside the place each command is found. Standard output carries the answer only; messages
go to standard error. `main` is the single place where an exception becomes a message and an exit code.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from planner.records import record
from planner.startup import (
    EndedError,
    abandon_stdout,
    end,
    given,
    limit_memory,
    report,
    watch_for_interrupt,
    with_room_for_calls,
)
from planner.version import __version__

if TYPE_CHECKING:
    import logging

PROGRAM = "planner"
_PACKAGES, _USAGE = (PROGRAM, "catalogs", "solvers"), "planner.commands.unknown_option"
MAX_MEMORY_BYTES = 2 << 30  # of an answer, unless --max-memory or the setting says otherwise


@record(frozen=True)
class CommandSpec:
    """Where a command lives, and the line `planner --help` shows without importing it."""

    module: str
    attribute: str
    help: str


COMMANDS: dict[str, CommandSpec] = {
    "init": CommandSpec("planner.commands.init", "init", "Write a first workload, empty or from your files."),
    "validate": CommandSpec("planner.commands.validate", "validate", "Check a file and list every error."),
    "size": CommandSpec("planner.commands.size", "size", "Suggest machines from your data and goal."),
    "optimize": CommandSpec("planner.commands.optimize", "optimize", "Find the cheapest feasible plan."),
    "estimate": CommandSpec(
        "planner.commands.estimate", "estimate", "Predict speed, memory and cost on machines you name."
    ),
    "portfolio": CommandSpec(
        "planner.commands.portfolio", "portfolio", "Plan many jobs under shared quotas and one budget."
    ),
    "calibrate": CommandSpec(
        "planner.commands.calibrate", "calibrate", "Improve predictions with your measurements."
    ),
    "verify": CommandSpec(
        "planner.commands.verify", "verify", "Recompute a saved answer with independent code."
    ),
    "export": CommandSpec("planner.commands.export", "export", "Write launch files of a saved plan."),
    "explain": CommandSpec(
        "planner.commands.explain", "explain", "Explain why a plan was chosen, or a type was not."
    ),
    "frontier": CommandSpec(
        "planner.commands.frontier", "frontier", "Show the cheapest plan for every deadline."
    ),
    "compare": CommandSpec(
        "planner.commands.compare", "compare", "Compare machines, regions or purchase options for one job."
    ),
    "whatif": CommandSpec(
        "planner.commands.whatif", "whatif", "Show what another deadline, budget or model would cost."
    ),
    "sweep": CommandSpec("planner.commands.sweep", "sweep", "Plan many workloads, days and scenarios."),
    "diff": CommandSpec(
        "planner.commands.diff", "diff", "Show what changed between two plans, or prices of two days."
    ),
    "commit": CommandSpec("planner.commands.commit", "commit", "Find which commitments to buy."),
    "tco": CommandSpec("planner.commands.tco", "tco", "Compare buying a machine with renting."),
    "pipeline": CommandSpec(
        "planner.commands.pipeline", "pipeline", "Plan tasks that pass data to each other."
    ),
    "pools": CommandSpec(
        "planner.commands.pools", "pools", "Choose trainer and rollout pools for reinforcement learning."
    ),
    "serving": CommandSpec(
        "planner.commands.serving", "serving", "Find the cheapest machines that serve given requests."
    ),
    "schedule": CommandSpec(
        "planner.commands.schedule", "schedule", "Schedule work that can pause by an hourly forecast."
    ),
    "advise": CommandSpec(
        "planner.commands.advise", "advise", "Recommend the next action for a job on spot."
    ),
    "track": CommandSpec("planner.commands.track", "track", "Compare a running job with its plan."),
    "diagnose": CommandSpec("planner.commands.diagnose", "diagnose", "Find what limits the steps of a run."),
    "simulate": CommandSpec(
        "planner.commands.simulate", "simulate", "Replay spot policies on recorded availability."
    ),
    "forecast": CommandSpec("planner.commands.forecast", "forecast", "Forecast what the coming months cost."),
    "budget": CommandSpec(
        "planner.commands.budget", "budget", "Show how likely each budget is to be exceeded."
    ),
    "review": CommandSpec("planner.commands.review", "review", "Review one month of a cloud bill."),
    "catalog": CommandSpec(
        "planner.commands.catalog", "catalog", "List, show and check prices and machines."
    ),
    "mcp": CommandSpec("planner.commands.mcp", "mcp", "Serve assistants (Model Context Protocol)."),
    "schema": CommandSpec("planner.commands.schema", "schema", "Print JSON Schemas and model presets."),
    "config": CommandSpec(
        "planner.commands.config", "config", "Show every setting with its value and origin."
    ),
}


# Their engine has a limit of its own and spills to disk.
_SPILLING = frozenset({"commit", "forecast", "budget", "review"})


@record
class Session:
    """Values of the global options; the `obj` of every command's context."""

    verbosity: int = 0
    log_handler: logging.Handler | None = None
    reproducible: bool = False  # leave out what differs between equal runs: the time that they took
    is_program: bool = False  # this process runs nothing else, so that its limits may be set
    max_memory_bytes: int = 0  # 0: unlimited
    settings: tuple[str, ...] = ()  # their values, which a message may quote

    def limit_memory(self, size_bytes: int) -> None:
        """Limit the memory of the process if it is the program's own; 0: no limit."""
        if self.is_program:
            self.max_memory_bytes = size_bytes
            limit_memory(size_bytes)

    @property
    def quiet(self) -> bool:
        """True when only errors may be written to standard error."""
        return self.verbosity < 0


class _BrokenStdoutError(Exception):
    """The reader of standard output has closed it."""


def _set_verbosity(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    session = ctx.find_object(Session)
    if session is None or not value:
        return
    session.verbosity = -1 if param.name == "quiet" else int(value)
    _configure_logging(session)


def _set_max_memory(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    session = ctx.find_object(Session)
    if session is None or value is None:
        return
    from planner.units import parse_size

    try:
        session.limit_memory(0 if value.strip() == "0" else parse_size(value))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _set_reproducible(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    session = ctx.find_object(Session)
    if session is not None and value:
        session.reproducible = True


def _message_options(*, is_shown: bool) -> list[click.Parameter]:
    """Options of every command; those that few need are shown by `planner --help` alone."""
    return [
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_set_verbosity,
            help="Errors only on stderr.",
        ),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_set_verbosity,
            help="More detail; -vv adds debug logs.",
        ),
        click.Option(
            ["--reproducible"],
            is_flag=True,
            expose_value=False,
            callback=_set_reproducible,
            hidden=not is_shown,
            help="Omit timings from json, yaml and csv, so that equal questions give equal bytes.",
        ),
        click.Option(
            ["--max-memory"],
            expose_value=False,
            callback=_set_max_memory,
            hidden=not is_shown,
            metavar="SIZE",
            help="Memory limit, such as 4GiB; 0: no limit.",
        ),
    ]


def _accept_message_options(command: click.Command) -> click.Command:
    """Accept the global options after a command as well as before it."""
    taken = {name for param in command.params for name in param.opts}
    command.params.extend(p for p in _message_options(is_shown=False) if taken.isdisjoint(p.opts))
    if isinstance(command, click.Group):
        for child in command.commands.values():
            _accept_message_options(child)
    return command


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the command names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None where there is none of that name."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        spec = COMMANDS.get(cmd_name)
        if spec is None:
            return None
        command = getattr(importlib.import_module(spec.module), spec.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{spec.module}:{spec.attribute} is not a click command")
        self.commands[cmd_name] = _accept_message_options(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command named by `args`, with a suggestion where the name is a near miss."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}.{_did_you_mean(name)}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the command table from `COMMANDS`, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, spec.help) for name, spec in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed standard output is distinguished from other input/output errors."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _BrokenStdoutError from error


def _did_you_mean(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name.lower(), COMMANDS, n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(COMMANDS)}."


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=_message_options(is_shown=True),
    epilog="Exit codes: 0 plan found, 1 internal error, 2 invalid input, 3 infeasible, 4 catalog, "
    "5 gate exceeded, 6 limit of time or memory without a plan, 7 cannot be written.",
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Plan what to train on: the cheapest feasible cluster for a workload, with proof."""
    from planner.config import command_defaults, environment_for_folders, load_settings

    settings = load_settings()
    ctx.ensure_object(Session).settings = tuple(setting.value for setting in settings)
    _limit_by_default(ctx, next(s.value for s in settings if s.name == "max_memory"))
    ctx.default_map = dict.fromkeys(COMMANDS, command_defaults(settings))
    for name, value in environment_for_folders(settings).items():
        os.environ[name] = value
        ctx.call_on_close(functools.partial(os.environ.pop, name, None))


def _limit_by_default(ctx: click.Context, setting: str) -> None:
    session = ctx.find_object(Session)
    if session is None or session.max_memory_bytes:
        return
    if setting:
        from planner.units import parse_size

        session.limit_memory(parse_size(setting))
    elif ctx.invoked_subcommand not in _SPILLING:
        session.limit_memory(MAX_MEMORY_BYTES)


def _configure_logging(session: Session) -> None:
    """Attach the one log handler of the program.

    Without -q and -v there is none, nor an import of logging: warnings reach stderr through its last resort.
    """
    import logging

    level = {-1: logging.ERROR, 1: logging.INFO}.get(session.verbosity, logging.DEBUG)
    if session.log_handler is None:
        session.log_handler = logging.StreamHandler(sys.stderr)
        session.log_handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logging.getLogger().addHandler(session.log_handler)
    session.log_handler.setLevel(level)
    for package in _PACKAGES:
        logging.getLogger(package).setLevel(level)


def _remove_log_handler(session: Session) -> None:
    if session.log_handler is None:
        return
    import logging

    logging.getLogger().removeHandler(session.log_handler)
    for package in _PACKAGES:
        logging.getLogger(package).setLevel(logging.NOTSET)


def _complete_shell() -> int | None:
    """Answer a shell-completion request; None where there is none."""
    instruction = os.environ.get(f"_{PROGRAM.upper()}_COMPLETE")
    if not instruction:
        return None
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE", instruction)


@with_room_for_calls
def _run(arguments: list[str], session: Session) -> int:
    try:
        with root.make_context(PROGRAM, arguments, obj=session) as ctx:
            answer = root.invoke(ctx)
        return answer if type(answer) is int else 0
    finally:
        _remove_log_handler(session)
        try:
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _BrokenStdoutError from error


def main(args: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        args: arguments after the program's name; the process's own when None.
    """
    at_end = end(is_program=args is None)
    code = _main(args)
    if at_end is not None:
        at_end(code)
    return code


def _main(args: Sequence[str] | None) -> int:
    completed = _complete_shell()
    if completed is not None:
        return completed
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal must not end in a traceback
    session = Session(is_program=args is None)
    with watch_for_interrupt() as interruption:
        code = _guarded(list(sys.argv[1:] if args is None else args), session)
    return interruption.exit_code(code)


def _guarded(arguments: list[str], session: Session) -> int:
    """Run; every exception becomes a message and an exit code."""
    try:
        return _run(list(arguments), session)
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        importlib.import_module(_USAGE).show(error, given(arguments, session.settings))
        return int(error.exit_code)
    except _BrokenStdoutError:
        return abandon_stdout()
    except EndedError as ended:
        return ended.report()
    except (KeyboardInterrupt, EOFError, click.Abort):
        return EndedError().report()
    except Exception as error:  # noqa: BLE001 - the last resort: every defect becomes a message
        return report(error, session.verbosity, session.max_memory_bytes, given(arguments, session.settings))
