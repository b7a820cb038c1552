"""torchrun: one shell script that each node runs."""

from __future__ import annotations

from planner.export.files import ExportFile
from planner.export.frameworks.model import Part
from planner.export.frameworks.registry import part_of
from planner.export.program import (
    command_lines,
    export_lines,
    heading,
    refuse_unless_torch,
    setup_lines,
    start_words,
    variables,
)
from planner.export.quoting import shell, shell_words
from planner.export.registry import Options
from planner.export.view import Launch

MAX_RESTARTS = 3


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return `run.sh` and the files of the framework.

    Raises:
        InputError: torchrun starts nothing on these machines, or the framework cannot state the layout.
    """
    refuse_unless_torch(launch, "torchrun")
    part = part_of(options.framework, launch)
    lines = [
        "#!/usr/bin/env bash", *heading(launch, _how(launch), *part.notes), "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")"', "",
        *export_lines(variables(launch, part), launch.run.secrets), "", *setup_lines(launch), *command_lines(launch),
        *_arguments(part.args), *_start(launch, part),
    ]  # fmt: skip
    return (ExportFile("run.sh", "\n".join(lines) + "\n", executable=True), *part.files)


def _how(launch: Launch) -> str:
    if launch.nodes == 1:
        return "start: ./run.sh"
    return f"start on each of the {launch.nodes} nodes: HEAD=<address of one of them> ./run.sh"


def _arguments(args: tuple[str, ...]) -> list[str]:
    return [f"command+=({shell_words(args)})"] if args else []


def _start(launch: Launch, part: Part) -> list[str]:
    words = start_words(launch, part, head='"$HEAD"', job=shell(launch.run_id))
    words += (
        [f"--max-restarts={MAX_RESTARTS}"]
        if part.launcher == "torchrun"
        else [f"--max_restarts={MAX_RESTARTS}"]
    )
    needs = (
        []
        if launch.nodes == 1
        else [': "${HEAD:?export HEAD, the address of one of the nodes, the same on all}"']
    )
    return [*needs, "exec " + " \\\n  ".join([*words, '"${command[@]}" "$@"'])]
