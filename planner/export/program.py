"""What runs on each node, for all targets: words of the program, variables, and the shell lines that several share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.errors import InputError
from planner.export.fabric import Where, network_variables
from planner.export.frameworks.model import Part
from planner.export.phases import phase_words
from planner.export.quoting import comment, shell, shell_words
from planner.export.view import Launch, Pool
from planner.plan.words import enable_first
from planner.render.numbers import usd

RENDEZVOUS_PORT = 29500
NO_COMMAND = "set run.command in workload.yaml, or export PLANNER_COMMAND"
NO_IMAGE = "planner.invalid/set-run.image-in-workload.yaml:0"
"""An image that cannot be pulled, in place of one that the workload does not name; its name is the remedy."""
_STARTED_BY_TORCH = ("nvidia", "amd", "intel", "aws", "")


def heading(launch: Launch, *more: str) -> list[str]:
    """Comment lines that say what a file starts, for files with `#` comments.

    Args:
        launch: the plan.
        more: lines that the target adds.
    """
    first = launch.pools[0]
    gpus = f" ({first.gpus} x {first.accelerator} each)" if first.gpus else ""
    size = f"{launch.nodes} x {first.instance_type}{gpus}"
    if launch.way == "workers":
        kind = "run" if launch.run.runs > 1 else "worker"
        size = f"{_count(launch.tasks, f'independent {kind}')} on {_count(launch.instances, 'instance')}"
    where = [f"{pool.nodes} x {pool.instance_type} {pool.option} in {pool.place}" for pool in launch.pools]
    lines = [
        f"{launch.name}: {size}", *(f"{word} {text}" for word, text in zip(_words(launch), where, strict=True)),
        f"about {launch.limits.hours:,.1f} h and {usd(launch.limits.cost_usd)} by plan {launch.run_id} of "
        f"{launch.created_at}; prices change: plan again before a later launch",
        *phase_words(launch.training),
        *enable_first((pool.provider, pool.region) for pool in launch.pools), *more,
    ]  # fmt: skip
    return [f"# {comment(line)}" for line in lines]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _words(launch: Launch) -> list[str]:
    if launch.parts:
        return [*_words(launch.parts[0]), "and", *_words(launch.parts[1])[1:]]
    return ["on"] + ["else" if launch.moves else "and"] * (len(launch.pools) - 1)


def variables(launch: Launch, part: Part, pool: Pool | None = None, where: Where = "any") -> dict[str, str]:
    """Environment of the program: the plan's figures, the layout, the network of the machines, then the workload's own.

    Args:
        launch: the plan.
        part: what states the layout.
        pool: the machines; default: the first of the plan.
        where: whether the program runs in a container on Kubernetes.
    """
    pool = pool or launch.first
    saved, run, training = launch.checkpoints, launch.run, launch.training
    own = {
        "PLANNER_RUN_ID": launch.run_id,
        "PLANNER_CHECKPOINT_INTERVAL_S": "" if saved.interval_s is None else f"{saved.interval_s:.0f}",
        "PLANNER_CHECKPOINTS": run.checkpoints, "PLANNER_DATA": run.data, "PLANNER_OUTPUTS": run.outputs,
        "PLANNER_PHASE": str(training.phase or ""), "PLANNER_STEPS": str(training.steps if training.phase else ""),
        "OMP_NUM_THREADS": str(threads(pool)), **network_variables(pool, launch.nodes, where),
    }  # fmt: skip
    return {key: value for key, value in {**own, **part.env, **run.env}.items() if value or key in run.env}


def threads(pool: Pool) -> int:
    """CPU threads of one rank: vCPUs over accelerators, at least 1."""
    return max(1, (pool.vcpus or 1) // max(pool.gpus, 1))


def export_lines(values: Mapping[str, str], secrets: Sequence[str] = ()) -> list[str]:
    """Shell lines that set variables, and stop where a secret is not in the environment."""
    needed = [f': "${{{name}:?is a secret of the workload: export it}}"' for name in secrets]
    return [*needed, *(f"export {name}={shell(value)}" for name, value in values.items())]


def command_lines(launch: Launch) -> list[str]:
    """Shell lines that put the program's words into the array `command`; without one they stop with the remedy."""
    if launch.command:
        return [f"command=({shell_words(launch.command)})"]
    return [f': "${{PLANNER_COMMAND:?{NO_COMMAND}}}"', 'read -r -a command <<<"$PLANNER_COMMAND"']


def setup_lines(launch: Launch) -> list[str]:
    """Shell lines that run the workload's setup in this shell, so that what it activates stays active."""
    if not launch.run.setup.strip():
        return []
    return ["# run.setup of the workload", f"setup={shell(launch.run.setup.strip())}", 'eval "$setup"']


def start_words(launch: Launch, part: Part, *, head: str, rank: str = "", job: str = "") -> list[str]:
    """Words that start the workers of one node, each safe in a shell; the program's own follow.

    Args:
        launch: the plan.
        part: what states the layout, and the launcher.
        head: shell word of the first node's address, for gangs.
        rank: shell word of this node's number: a static rendezvous; empty: by c10d.
        job: shell word that is the same on all nodes and new at each start, for c10d.
    """
    each = max(launch.gpus, 1)
    if part.launcher == "accelerate":
        where = [] if launch.nodes == 1 else [
            f"--num_machines={launch.nodes}", f"--main_process_ip={head}", f"--main_process_port={RENDEZVOUS_PORT}",
            *([f"--machine_rank={rank}", "--rdzv_backend=static"] if rank else ["--rdzv_backend=c10d"]),
        ]  # fmt: skip
        several = ["--multi_gpu"] if launch.world > 1 and "--use_fsdp" not in part.launch else []
        own = [] if "--use_deepspeed" in part.launch else several
        return [
            "accelerate launch",
            *own,
            *where,
            f"--num_processes={launch.nodes * each}",
            *map(shell, part.launch),
        ]
    if launch.nodes == 1:
        return ["torchrun", "--standalone", f"--nproc-per-node={each}"]
    if rank:
        where = [f"--node-rank={rank}", f"--master-addr={head}", f"--master-port={RENDEZVOUS_PORT}"]
    else:
        where = [f"--rdzv-id={job}", "--rdzv-backend=c10d", f"--rdzv-endpoint={head}:{RENDEZVOUS_PORT}"]
    return ["torchrun", f"--nnodes={launch.nodes}", *where, f"--nproc-per-node={each}"]


def refuse_unless_torch(launch: Launch, target: str) -> None:
    """Refuse machines that torchrun starts nothing on.

    Raises:
        InputError: names the accelerator.
    """
    for pool in launch.pools:
        if pool.vendor not in _STARTED_BY_TORCH:
            raise InputError(
                f"--to {target}: torchrun starts nothing on {pool.accelerator}; start it with its own tools"
            )
