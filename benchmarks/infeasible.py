"""What an infeasible answer costs: `python -m benchmarks.infeasible [--runs 3] [--only TEXT ...]`.

Files of examples/ are made infeasible one limit at a time and asked through the command line, each in a process of its
own. The figure is the least user and system time of the runs after a first one, which fills the caches; the goal of
each is a CPU second. Exit code 1: some answer is not exit code 3.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

EXAMPLES = Path(__file__).parent.parent / "examples"
DATE = "2026-11-22"
GOAL_S = 1.0
FALLING_BACK = {"spot": None, "fleet": {"max_spot_share": None, "max_share_per_region": None}}
NO_QUOTA = {
    "providers": ["aws"],
    "purchase_options": ["on_demand"],
    "accelerators": {"allow": ["h100*"]},
    "quota": [{"provider": "aws", "region": "*", "quota": "L-417A185B", "unit": "vCPU", "limit": 8}],
}


class Kind(NamedTuple):
    """A question without an answer: a command on an example in which some sections are changed."""

    name: str
    command: str
    example: str
    changes: Mapping[str, Any]


KINDS = (
    Kind("job: deadline 30 minutes", "optimize", "bert-large", {"constraints": {"deadline": "30m"}}),
    Kind("job: deadline 2 h", "optimize", "bert-large", {"constraints": {"deadline": "2h"}}),
    Kind("job: deadline, larger model", "optimize", "llama-3-8b", {"constraints": {"deadline": "1d"}}),
    Kind("job: budget", "optimize", "bert-large", {"constraints": {"budget_usd": 20}}),
    Kind("job: quota", "optimize", "bert-large", {"constraints": NO_QUOTA}),
    Kind("job: memory", "optimize", "gpt3-175b", {"constraints": {"max_nodes": 1, "max_accelerators": 8}}),
    Kind("job: no offer", "optimize", "bert-large", {"constraints": {
        "accelerators": {"allow": ["b200*"]}, "providers": ["azure"], "purchase_options": ["capacity_block"]}}),
    Kind("fleet: deadline", "optimize", "hpo-fleet", {"constraints": {"deadline": "30m"}}),
    Kind("fleet: budget", "optimize", "hpo-fleet", {"constraints": {"budget_usd": 5}}),
    Kind("fleet: quota", "optimize", "hpo-fleet", {"constraints": NO_QUOTA}),
    Kind("fleet: too few machines", "optimize", "hpo-fleet", {"constraints": {"max_nodes": 1}}),
    Kind("fleet with a fall-back: deadline", "optimize", "hpo-fleet", {
        **FALLING_BACK, "constraints": {"deadline": "30m"}}),
    Kind("fleet with a fall-back: budget", "optimize", "hpo-fleet", {
        **FALLING_BACK, "constraints": {"budget_usd": 5}}),
    Kind("inference fleet: budget", "optimize", "embed-images-fleet", {"constraints": {"budget_usd": 5}}),
    Kind("pipeline: deadline", "pipeline", "pipeline", {"deadline": "6h"}),
    Kind("pipeline: budget", "pipeline", "pipeline", {"budget_usd": 50}),
    Kind("portfolio: budget", "portfolio", "portfolio", {"budget_usd": 200}),
    Kind("schedule: too little capacity", "schedule", "schedule", {"jobs": [
        {"name": "finetune", "work": 15_000, "deadline": "3d", "min_nodes": 2, "max_nodes": 8}]}),
    Kind("serving: machines", "serving", "serving", {"max_nodes": 2}),
)  # fmt: skip


def changed(value: Any, changes: Any) -> Any:
    """`value` with `changes` in its sections; None leaves a key out."""
    if not isinstance(value, dict) or not isinstance(changes, Mapping):
        return changes
    merged = {**value, **{key: changed(value.get(key), part) for key, part in changes.items()}}
    return {key: part for key, part in merged.items() if part is not None}


def asked(kind: Kind, folder: Path, environment: Mapping[str, str]) -> tuple[int, float, str]:
    """Ask once: exit code, CPU seconds of the process, and its last words."""
    path = folder / "question.yaml"
    section = yaml.safe_load((EXAMPLES / f"{kind.example}.yaml").read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(changed(section, kind.changes), sort_keys=False), encoding="utf-8")
    words = [sys.executable, "-m", "planner", kind.command, str(path), "--as-of", DATE]
    before = os.times()
    done = subprocess.run(words, capture_output=True, text=True, env={**environment}, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return done.returncode, spent, (done.stderr or done.stdout).strip()


def main() -> int:
    """Run; exit code 1 when a question has another exit code than that of an infeasible one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each after the first (default 3)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", default=[""], help="kinds whose name has one")
    arguments = parser.parse_args()
    wrong = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "examples"
        shutil.copytree(EXAMPLES, folder)
        cache = str(
            Path(name) / "cache"
        )  # of the planner, and of compiled modules, which an installation has
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "PYTHONPYCACHEPREFIX": cache}
        environment["PLANNER_REUSE_ANSWERS"] = "0"  # each run works its answer out
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for kind in (one for one in KINDS if any(text in one.name for text in arguments.only)):
            first, *later = [asked(kind, folder, environment) for _ in range(arguments.runs + 1)]
            least = min(spent for _, spent, _ in later or [first])
            late = " (goal missed)" if least > GOAL_S else ""
            print(f"{kind.name:36}{first[1]:8.2f}{least:8.2f}{late}", flush=True)
            if first[0] != 3:
                wrong = True
                print(f"  exit code {first[0]}: {first[2][:600]}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
