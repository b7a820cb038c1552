"""What the directives of a Slurm script give its commands: nodes, tasks and accelerators, as Slurm's own variables.

https://slurm.schedmd.com/sbatch.html (options, and `OUTPUT ENVIRONMENT VARIABLES`).
"""

from __future__ import annotations

import re

_DIRECTIVE = re.compile(r"(?m)^#SBATCH[ \t]+(.*)$")
_OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[NnG])(?:[ \t]*=[ \t]*|[ \t]+)?(\S+)?")
# `gpu:8`, `gpu:a100:8`, or a bare number behind --gpus-per-node
_GPUS = re.compile(r"(?:^|,)(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d{1,5})(?:\(.*)?(?=,|$)")
_COUNT = re.compile(r"\d{1,6}")
_SHORT = {"-N": "--nodes", "-n": "--ntasks", "-G": "--gpus"}


def slurm_variables(text: str) -> dict[str, str]:
    """Variables that Slurm sets for the script, as far as its `#SBATCH` lines state them."""
    options: dict[str, str] = {}
    for line in _DIRECTIVE.findall(text):
        for name, value in _OPTION.findall(line.partition(" #")[0]):
            if value and not value.startswith("-"):
                options[_SHORT.get(name, name)] = value
    counts = {name: _number(options.get(f"--{name}", "")) for name in ("nodes", "ntasks", "ntasks-per-node")}
    chips = _gpus(options, counts)
    named = {
        "SLURM_NNODES": counts["nodes"], "SLURM_JOB_NUM_NODES": counts["nodes"],
        "SLURM_GPUS_ON_NODE": chips, "SLURM_GPUS_PER_NODE": chips,
        "SLURM_NTASKS": counts["ntasks"], "SLURM_NTASKS_PER_NODE": counts["ntasks-per-node"],
    }  # fmt: skip
    return {name: str(number) for name, number in named.items() if number}


def _gpus(options: dict[str, str], counts: dict[str, int]) -> int:
    """Accelerators of a node, 0 where not stated."""
    each = options.get("--gpus-per-node", "")
    kinds = [kind for kind in options.get("--gres", "").split(",") if kind.startswith("gpu")]
    found = _GPUS.search(each) or _GPUS.search(kinds[0] if kinds else "")
    if found:
        return int(found[1])
    whole, nodes = _GPUS.search(options.get("--gpus", "")), counts["nodes"] or 1
    if whole and int(whole[1]) % nodes == 0:
        return int(whole[1]) // nodes
    of_task, tasks = _GPUS.search(options.get("--gpus-per-task", "")), counts["ntasks-per-node"]
    if not tasks and counts["ntasks"] % nodes == 0:
        tasks = counts["ntasks"] // nodes
    return int(of_task[1]) * tasks if of_task else 0


def _number(text: str) -> int:
    """The least of `2` or `2-4`."""
    found = _COUNT.match(text)
    return int(found[0]) if found else 0
