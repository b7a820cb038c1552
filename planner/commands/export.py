"""`planner export`: launch files of a saved plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.completing import export_targets, frameworks
from planner.commands.options import examples
from planner.commands.output import show_text

if TYPE_CHECKING:
    from planner.plan.model import Plan


def _list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print targets and frameworks, and end."""
    if not wanted or ctx.resilient_parsing:
        return
    from planner.export.frameworks.registry import FRAMEWORKS
    from planner.export.registry import TARGETS

    for name, target in TARGETS.items():
        click.echo(f"{name:<17} {target.title}", file=sys.stdout)
        for key, choices in target.options.items():
            click.echo(f"{'':<17} --option {key}={'|'.join(choices) or 'TEXT'}", file=sys.stdout)
    click.echo("\n--framework", file=sys.stdout)
    for name, framework in FRAMEWORKS.items():
        click.echo(f"{name:<17} {framework.title}", file=sys.stdout)
    ctx.exit()


class _Target(click.ParamType[str]):
    """The name of a target; a missing one is answered with the names there are."""

    name = "target"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Name the targets."""
        from planner.export.registry import TARGETS

        return f"Targets: {', '.join(TARGETS)}."


@click.command(
    epilog=examples(
        "planner export plan.json --to slurm --out launch",
        "planner export plan.json --to kubernetes --framework megatron --out launch",
    )
)
@click.argument("plan", type=click.Path(path_type=Path), metavar="PLAN.json")
@click.option(
    "--to",
    "target",
    type=_Target(),
    shell_complete=export_targets,
    required=True,
    metavar="TARGET",
    help="What to write; --list names the targets.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="DIR",
              help="Folder for the files; without it (or -) a single file goes to stdout.")  # fmt: skip
@click.option("--framework", shell_complete=frameworks, default="none", show_default=True, metavar="NAME",
              help="State the parallel layout as this framework's own flags; --list names them.")  # fmt: skip
@click.option("--option", "values", multiple=True, metavar="KEY=VALUE",
              help="An option of the target, as --list names them; may be repeated.")  # fmt: skip
@click.option("--phase", default=None, metavar="N|all",
              help="Of a run in phases: layout, batch, length and steps of phase N, or all phases and what starts them"
              " in turn; default: the longest.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files with other content.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list,
              help="List targets, their options, and frameworks.")  # fmt: skip
def export(
    plan: Path, target: str, out: Path | None, framework: str, values: tuple[str, ...], phase: str | None,
    force: bool,
) -> None:  # fmt: skip
    """Write the launch files of PLAN.json, a plan saved with `planner optimize -o json` (-: standard input).

    For `planner pools`, --to skypilot starts both pools.

    The command does not start or buy anything. Exit code 0: written; 2: invalid input, a plan that the target cannot
    start, or existing files with other content.
    """
    from planner.errors import InputError
    from planner.export.files import write_files
    from planner.export.launch import launch_of
    from planner.export.phases import of_phase
    from planner.export.registry import Options, checked, export_phases
    from planner.export.registry import export as write

    saved = _saved(plan)
    chosen = Options(framework, _options(values))
    if target == "skypilot" and _kind(saved) == "pools":
        if phase is not None:
            raise InputError("--phase: pools of post-training have no phases")
        from planner.export.targets.skypilot_pools import render_pools

        files = render_pools(saved, _name(plan), checked(target, chosen))
    else:
        made = _plan(saved, plan)
        launch = launch_of(made, _name(plan))
        if phase == "all":
            numbers = range(1, len(launch.training.phases) + 1)
            each = [of_phase(launch, made, number) for number in numbers]
            files = export_phases(launch, each, target, chosen)
        else:
            files = write(launch if phase is None else of_phase(launch, made, _number(phase)), target, chosen)
    if out is not None and str(out) != "-":
        for path in write_files(files, out, force=force):
            click.echo(str(path), file=sys.stdout)
        return
    if len(files) > 1:
        names = ", ".join(file.path for file in files)
        raise InputError(f"{target}: writes {len(files)} files ({names}): name a folder with --out")
    show_text(files[0].text, None)


def _number(phase: str) -> int:
    """The phase that is meant.

    Raises:
        InputError: no number.
    """
    from planner.errors import InputError

    if not (phase.isascii() and phase.isdigit()):
        raise InputError(f"--phase {phase}: must be a number from 1 on, or all")
    return int(phase)


def _options(values: tuple[str, ...]) -> dict[str, str]:
    """`--option KEY=VALUE` as a mapping.

    Raises:
        InputError: no `=` in one of them.
    """
    from planner.errors import InputError

    out = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise InputError(
                f"--option {value}: write it as KEY=VALUE; `planner export --list` names the keys"
            )
        out[key] = text
    return out


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _kind(saved: Any) -> str:
    from planner.judge.judge import kind_of

    return kind_of(saved) if isinstance(saved, dict) else "plan"


def _plan(saved: Any, path: Path) -> Plan:
    """The saved plan.

    Raises:
        InputError: not a plan of one workload; names the remedy.
    """
    from planner.errors import InputError
    from planner.plan.model import Plan

    kind = _kind(saved)
    if kind != "plan":
        raise InputError(
            f"{_name(path)}: an answer of `planner {kind.partition('_')[0]}`; export takes the plan of one workload: "
            "planner optimize WORKLOAD -o json --out PLAN.json (--to skypilot takes planner pools too)"
        )
    return Plan.from_dict(saved, _name(path))


def _saved(path: Path) -> Any:
    """Parsed JSON of a file or of standard input.

    Raises:
        InputError: it cannot be read, is too large, or no JSON.
    """
    from planner.plan.file import MAX_BYTES, load_saved, parse_saved

    if str(path) != "-":
        return load_saved(path, MAX_BYTES)
    return parse_saved(sys.stdin.buffer.read(MAX_BYTES + 1), _name(path), MAX_BYTES)
