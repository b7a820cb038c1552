"""Every command that an answer says to type next is one: it parses; those about a workload end with exit code 0.

Hints are collected from the screens kept as goldens and from the program's own text, so a new one is tried without
being listed here.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click

from planner.cli import COMMANDS, root
from planner.finops.budget.screen import NEXT
from tests.conftest import ROOT, CliResult

# What stands for a value of the user, and a value for it.
VALUES = {
    "KEY=VALUE": "constraints.deadline=3d", "DATE": "2026-11-20", "SIZE": "100GB", "GOAL": "image_classification",
    "SECTION|all": "all", "TYPE": "g2-standard-4",
}  # fmt: skip
JOB = """
version: 1
name: small
model: { preset: bert-base }
training: { samples: 1_000_000, global_batch: 256, sequence_length: 128, precision: fp16 }
constraints:
  { deadline: 4d, max_nodes: 2, providers: [gcp], instance_types: { allow: [g2-standard-4, g2-standard-8] } }
"""
_COMMAND = re.compile(rf"^(?:planner )?({'|'.join(COMMANDS)}) (?=[A-Z]{{3}}|--|answer|proof|frontier)")
OF_A_WORKLOAD = ("optimize", "explain", "frontier", "compare", "whatif", "estimate", "sweep")


def _commands(text: str) -> list[str]:
    """The commands of a `next:` line, or of a piece of one."""
    text = text.partition("next: ")[2] or text
    parts = [part.strip() for part in re.split(r"[;,] (?=(?:planner )?[a-z]+ )", text)]
    return [part.removeprefix("planner ").rstrip(", ") for part in parts if _COMMAND.match(part)]


def _of_goldens() -> set[str]:
    """Those of the screens, whose lines are wrapped with two more columns."""
    found = set()
    for path in (ROOT / "tests" / "fixtures" / "golden").rglob("*.txt"):
        lines = iter([*path.read_text(encoding="utf-8").splitlines(), ""])
        for line in lines:
            if not line.startswith("next: "):
                continue
            whole = line
            for more in lines:
                if not more.startswith("  "):
                    break
                whole += f" {more.strip()}"
            found.update(_commands(whole.partition("; --details")[0]))
    return found


def _of_the_source() -> set[str]:
    """Those that stand in the program as constants: tuples of next steps, and whole `next:` lines."""
    found = set()
    for path in (ROOT / "planner").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"next: |^NEXT|following = ", text, re.MULTILINE):
            continue
        tree = ast.parse(text)
        pieces = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
                found.update(
                    _commands(node.value.partition("; --details")[0]) if "\n" not in node.value else ()
                )
    return found


@functools.cache
def hints() -> tuple[str, ...]:
    return tuple(sorted(_of_goldens() | _of_the_source()))


def _typed(hint: str, folder: Path) -> list[str]:
    """The words of a hint as a user types them, names of files in capitals as files that are there."""
    words = []
    for word in shlex.split(hint):
        value = VALUES.get(word, word)
        if re.fullmatch(r"[A-Z]+(\.json)?", value):
            value = str(folder / value)
            if not Path(value).exists():
                Path(value).write_text(JOB, encoding="utf-8")
        words.append(
            str(folder / value) if value.endswith((".json", ".yaml")) and "/" not in value else value
        )
    return words


def test_hints_are_found() -> None:
    assert len(hints()) >= 30
    assert {hint.split()[0] for hint in hints()} >= {
        "optimize",
        "explain",
        "commit",
        "forecast",
        "budget",
        "track",
    }


def test_every_hint_is_a_command_that_parses(tmp_path: Path) -> None:
    faults = {}
    for hint in hints():
        name, *words = _typed(hint, tmp_path)
        command = root.get_command(click.Context(root), name)
        for word in words:  # files that the hint before it writes
            if name == "verify" and word.startswith(str(tmp_path)):
                Path(word).touch()
        try:
            assert command is not None
            command.make_context(name, list(words))
        except click.ClickException as error:
            faults[hint] = error.format_message()
    assert faults == {}


def test_every_hint_about_a_workload_ends_well(tmp_path: Path, run_cli: Callable[..., CliResult]) -> None:
    (tmp_path / "workload.yaml").write_text(JOB, encoding="utf-8")
    faults = {}
    for hint in hints():
        if hint.split()[0] in OF_A_WORKLOAD:
            told = run_cli(
                *(re.sub(r"^p4d.24xlarge$", "g2-standard-4", word) for word in _typed(hint, tmp_path))
            )
            if told.code != 0:
                faults[hint] = told.stderr
    assert faults == {}


def test_a_bill_has_the_scopes_that_the_budget_screen_names(run_cli: Callable[..., CliResult]) -> None:
    words = NEXT[0].replace("BILL", str(ROOT / "examples" / "focus" / "bill-2026-10.csv.gz")).split()
    told = run_cli(*words)
    assert told.code == 0, told.stderr
