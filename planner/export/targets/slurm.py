"""Slurm: a batch script that saves before it is stopped, comes back by itself, and ends when the work is done.

What Slurm does that the script must meet (22.05): a warning by `--signal=B:` arrives up to 60 s early and reaches the
batch shell alone; SIGTERM to srun kills tasks at once, so the trap signals the step; a preempted step may leave srun
with status 0, so only a file says that the run is finished; a job that ends by itself is not requeued by Slurm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.frameworks.model import Part
from planner.export.frameworks.registry import part_of
from planner.export.names import SLURM_NAME, clean
from planner.export.program import (
    command_lines,
    export_lines,
    heading,
    refuse_unless_torch,
    start_words,
    variables,
)
from planner.export.quoting import comment, shell, shell_words
from planner.export.registry import Options
from planner.export.view import Launch, Pool, split

EARLY_S = 60
"""Seconds that Slurm may send a signal before it was asked for."""
_MOST_WARNING_S = 65_535
_MOST_FAILURES = 3
_SPARE = 1.25  # of the expected hours where the plan knows no 90th percentile
_TIME = re.compile(r"([0-9]{1,3}-)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,&|:@*-]*")
_FREE = ("partition", "account", "qos", "reservation", "constraint")


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:
    """Return one batch script for each kind of machine, and the files of the framework.

    Raises:
        InputError: torchrun starts nothing on these machines, the framework cannot state the layout, or an option is no
            word of Slurm.
    """
    refuse_unless_torch(launch, "slurm")
    part = part_of(options.framework, launch)
    groups = _groups(launch)
    files, begin = [], launch.begin
    for number, (group, tasks) in enumerate(groups, start=1):
        name = "job.sbatch" if len(groups) == 1 else f"job-{number}.sbatch"
        lines = [
            "#!/bin/bash", *heading(group, *_notes(group, options, name), *part.notes),
            *_directives(group, options, begin, tasks), "",
            "set -uo pipefail", "",
            *export_lines(variables(group, part), launch.run.secrets), *_index(launch), "",
            *_program(group, part.args), "", *_step(group, part), "", *_watch(group, options),
        ]  # fmt: skip
        files.append(ExportFile(name, "\n".join(lines) + "\n"))
        begin += tasks
    return (*files, *part.files)


def chain(launch: Launch, phases: Sequence[Sequence[ExportFile]]) -> tuple[ExportFile, ...]:
    """Return the script that submits the phases, each after all jobs of the one before, and their files.

    Jobs start in the folder where those of one phase alone would: programs and files are found by the same names.
    """
    lines = [
        "#!/bin/bash",
        f"# {comment(launch.name)}: {len(phases)} phases, each after the one before has ended well",
        "# where one fails, Slurm cancels those behind it; run this once, from any folder: jobs start in that of this",
        "# script, which all nodes must mount",
        "set -eo pipefail", "",
        "submit() {",
        "  local job",
        '  if ! job=$(cd "$1" && sbatch --parsable "${wait[@]}" "$2"); then',
        '    [ "${#submitted[@]}" -eq 0 ] || scancel "${submitted[@]}" # all phases or none',
        "    exit 1",
        "  fi",
        '  job=${job%%;*} # a federation adds its cluster',
        '  echo "$2: job $job"',
        '  jobs+=":$job"',
        '  submitted+=("$job")',
        "}", "",
        'cd "$(dirname "$0")"', "wait=()", "jobs=", "submitted=()",
    ]  # fmt: skip
    files: dict[ExportFile, None] = {}
    for number, phase in enumerate(phases, start=1):
        if number > 1:
            lines += ['wait=("--dependency=afterok$jobs" --kill-on-invalid-dep=yes)', "jobs="]
        for file in phase:
            folder, _, name = file.path.rpartition("/")
            if name.endswith(".sbatch"):
                lines.append(f"submit {folder or '.'} phase-{number}/{name}")
                file = replace(file, path=f"{folder}/phase-{number}/{name}".lstrip("/"))
            files[file] = None
    return (ExportFile("submit.sh", "\n".join(lines) + "\n", executable=True), *files)


def _groups(launch: Launch) -> list[tuple[Launch, int]]:
    """The launch by kind of machine, each with its number of runs; what moves from pool to pool is one group."""
    if launch.way != "workers" or launch.moves:
        return [(launch, launch.tasks)]
    kinds: dict[tuple[str, str], list[Pool]] = {}
    for pool in launch.pools:
        kinds.setdefault((pool.provider, pool.instance_type), []).append(pool)
    shares = [sum(pool.share for pool in pools) for pools in kinds.values()]
    counts = split(launch.tasks, shares)
    return [
        (launch.only(*pools), count) for pools, count in zip(kinds.values(), counts, strict=True) if count > 0
    ]


def _notes(launch: Launch, options: Options, name: str) -> list[str]:
    notes = [f"submit: sbatch {name}, from a folder that all nodes mount"]
    if (launch.moves or launch.way == "together") and not options.values["partition"]:
        notes.append("with --option partition=FIRST,NEXT Slurm takes the pools above in that order")
    if launch.run.image and options.values["container"] == "none":
        notes.append(
            f"image {launch.run.image}: --option container=pyxis runs in it, else nodes need its software"
        )
    return notes


def warning_s(launch: Launch) -> int:
    """Seconds before the time limit at which the run is told to save: two checkpoints, and what Slurm is early by."""
    write = launch.checkpoints.write_s or 0.0
    return min(_MOST_WARNING_S, max(120, math.ceil(2 * write / 30) * 30) + EARLY_S)


def time_limit(launch: Launch, tasks: int) -> str:
    """Time limit `D-HH:MM:SS`: what 9 of 10 runs need; a run that needs more saves and comes back.

    Args:
        launch: one kind of machine, or what moves from pool to pool.
        tasks: runs that these machines do.
    """
    hours = launch.limits.hours_p90 or launch.limits.hours * _SPARE
    if launch.way == "workers":
        alone = launch.limits.hours / math.ceil(tasks / max(launch.workers, 1))
        # where each pool does its own runs: what its machines are paid for, over the runs
        paid = sum(pool.hours * pool.nodes for pool in launch.pools) / launch.nodes / max(tasks, 1)
        hours = _SPARE * (alone if launch.moves else max(alone, paid))
    minutes = max(60, math.ceil(hours * 4) * 15)
    days, minutes_left = divmod(minutes, 1440)
    return f"{days}-{minutes_left // 60:02d}:{minutes_left % 60:02d}:00"


def gres_type(accelerator: str) -> str:
    """The type that a cluster's gres.conf usually gives an accelerator: h100 of h100-80gb-sxm."""
    return accelerator.partition("-")[0]


def _directives(launch: Launch, options: Options, begin: int, tasks: int) -> list[str]:
    values = options.values
    for key in _FREE:
        if values[key] and not _WORD.fullmatch(values[key]):
            raise InputError(f"--option {key}={values[key]}: no word that Slurm takes there")
    time = values["time"] or time_limit(launch, tasks)
    if not _TIME.fullmatch(time):
        raise InputError(f"--option time={time}: write it as D-HH:MM:SS, such as 2-00:00:00")
    tags = " ".join(f"{comment(key)}={comment(value)}" for key, value in launch.tags.items())
    kind = values["gpu-type"] or gres_type(launch.first.accelerator)
    if not _WORD.fullmatch(kind) and kind != "-":
        raise InputError(f"--option gpu-type={kind}: the type in gres.conf, or - for none")
    directives = {
        "job-name": clean(launch.name, SLURM_NAME), "comment": _quoted(tags),
        **{key: values[key] for key in _FREE if values[key]}, "nodes": str(launch.nodes), "ntasks-per-node": "1",
        "gpus-per-node": str(launch.gpus) if kind == "-" else f"{kind}:{launch.gpus}", "mem": "0", "time": time,
        "signal": f"B:USR1@{warning_s(launch)}", "open-mode": "append",
        "output": "%x-%j.log" if launch.way != "workers" else "%x-%A_%a.log",
    }  # fmt: skip
    if not launch.gpus:
        del directives["gpus-per-node"]
    if launch.way == "workers":
        directives["array"] = f"{begin}-{begin + tasks - 1}%{max(1, launch.workers)}"
    return [
        *(f"#SBATCH --{key}={value}" for key, value in directives.items()),
        "#SBATCH --exclusive",
        "#SBATCH --requeue",
    ]


def _quoted(text: str) -> str:
    """A value of a directive, in double quotes that Slurm takes away; it expands nothing."""
    return '"' + re.sub(r'["\\`$]', "_", text)[:500] + '"'


def _index(launch: Launch) -> list[str]:
    if launch.way != "workers":
        return []
    return ['export PLANNER_RUN_INDEX="$SLURM_ARRAY_TASK_ID"', f"export PLANNER_RUN_COUNT={launch.all_tasks}"]


def _program(launch: Launch, args: Sequence[str]) -> list[str]:
    """Lines that hand setup and the words of the program to the step, as variables."""
    setup = launch.run.setup.strip()
    given = [f"export PLANNER_SETUP={shell(setup)}"] if setup else []
    more = [f"command+=({shell_words(args)})"] if args else []
    words = ["printf -v PLANNER_WORDS '%q ' \"${command[@]}\"", "export PLANNER_WORDS"]
    return [*given, *command_lines(launch), *more, *words]


def _step(launch: Launch, part: Part) -> list[str]:
    job = '"$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"'
    words = start_words(launch, part, head='"$PLANNER_HEAD"', job=job)
    words.append('"${patience[@]}" "${command[@]}" &')
    stop = warning_s(launch) - EARLY_S
    return [
        "# shellcheck disable=SC2317,SC2329  # called by srun on each node",
        "step() {",
        "  local child='' stopped='' status=0",
        "  local -a command patience=()",
        "  # SIGTERM asks the workers to save; torchrun passes it on and, where it can, waits for them",
        '  trap \'stopped=1; : >"$PLANNER_STATE/stopped"; [ -z "$child" ] || kill -TERM "$child"\' TERM',
        *(
            ["  set -e", '  eval "$PLANNER_SETUP" # run.setup of the workload', "  set +e"]
            if launch.run.setup.strip()
            else []
        ),
        '  eval "command=($PLANNER_WORDS)"',
        *_patience(part, stop),
        "  " + " \\\n    ".join(words),
        "  child=$!",
        '  wait "$child" || status=$?',
        '  while kill -0 "$child" 2>/dev/null; do wait "$child"; status=$?; done # a trap ends wait',
        '  if [ "$status" -eq 0 ] && [ -z "$stopped" ] && [ "$SLURM_PROCID" = 0 ]; then',
        '    : >"$PLANNER_STATE/finished"',
        "  fi",
        '  return "$status"',
        "}",
        "export -f step",
    ]


def _patience(part: Part, seconds: int) -> list[str]:
    """Lines that let torchrun wait for workers that save, where this version can; older ones kill them after 30 s."""
    if part.launcher != "torchrun":
        return []
    return [
        "  if torchrun --help 2>/dev/null | grep -q -- --shutdown-timeout; then",
        f"    patience=(--shutdown-timeout={seconds})",
        "  fi",
    ]


def _watch(launch: Launch, options: Options) -> list[str]:
    most = math.ceil(2 * launch.limits.interruptions) + 20
    srun = ["srun", "--export=ALL", "--kill-on-bad-exit=1", '--cpus-per-task="$SLURM_CPUS_ON_NODE"', "--cpu-bind=none",
            *_container(launch, options), "bash -c step &"]  # fmt: skip
    return [
        f"most_restarts={most} # interruptions and time limits; expected: {launch.limits.interruptions:.1f}",
        f"most_failures={_MOST_FAILURES} # of the program itself",
        "restarts=${SLURM_RESTART_COUNT:-0}",
        'export PLANNER_STATE="$SLURM_SUBMIT_DIR/planner-$SLURM_JOB_ID"',
        'PLANNER_HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "export PLANNER_HEAD",
        'mkdir -p "$PLANNER_STATE" && rm -f "$PLANNER_STATE/stopped" || exit',
        "",
        "# shellcheck disable=SC2317,SC2329  # called by the trap",
        "save() {",
        '  echo "$(date -u +%FT%TZ) near the time limit: asking the run to save"',
        '  scancel --signal=TERM "$SLURM_JOB_ID.0"',
        "}",
        "trap save USR1",
        'echo "$(date -u +%FT%TZ) start, $restarts restarts before"',
        " \\\n  ".join(srun),
        "child=$!",
        "status=0",
        'wait "$child" || status=$?',
        'while kill -0 "$child" 2>/dev/null; do wait "$child"; status=$?; done # a trap ends wait',
        'echo "$(date -u +%FT%TZ) step ended with status $status"',
        "",
        'if [ -e "$PLANNER_STATE/finished" ]; then',
        '  rm -rf "$PLANNER_STATE"',
        "  exit 0",
        "fi",
        'if [ ! -e "$PLANNER_STATE/stopped" ]; then',
        '  echo "$status" >>"$PLANNER_STATE/failures"',
        '  if [ "$(wc -l <"$PLANNER_STATE/failures")" -ge "$most_failures" ]; then',
        '    echo "failed $most_failures times by itself: see the log above" >&2',
        "    exit 1",
        "  fi",
        "fi",
        'if [ "$restarts" -ge "$most_restarts" ]; then',
        '  echo "stopped $restarts times: more than twice what the plan expected" >&2',
        "  exit 1",
        "fi",
        'scontrol requeue "$SLURM_JOB_ID"',
        "exit 1",
    ]


def _container(launch: Launch, options: Options) -> list[str]:
    """Options of the pyxis plugin; the registry of an image is set off by `#` there."""
    if options.values["container"] == "none":
        return []
    image = launch.run.image
    if not image:
        raise InputError(
            "--option container=pyxis: the workload names no image; set run.image and plan again"
        )
    first, slash, path_in_registry = image.partition("/")
    if slash and ("." in first or ":" in first):
        image = f"{first}#{path_in_registry}"
    mounts = [
        path for path in (launch.run.checkpoints, launch.run.data, launch.run.outputs) if path.startswith("/")
    ]
    own_mounts = "".join(f",{path}:{path}" for path in dict.fromkeys(mounts))
    return [
        f"--container-image={shell(image)}",
        f'--container-mounts="$PLANNER_STATE:$PLANNER_STATE"{shell(own_mounts) if own_mounts else ""}',
    ]
