"""README keeps its word: its commands run, its outputs are what is printed, its command table is complete."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import COMMANDS
from tests.conftest import ROOT
from tests.readme_blocks import mismatch, read_blocks, without_install

README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
_INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q"
PLAN_COMMAND = f"{_INSTALL} . && .venv/bin/planner optimize examples/llama-3-8b.yaml"
TEST_COMMAND = f"{_INSTALL} -e '.[test]' && .venv/bin/pytest -q -n auto --dist loadfile"


@pytest.mark.parametrize("command", [PLAN_COMMAND, TEST_COMMAND])
def test_the_two_commands_stand_in_readme_and_are_what_ci_runs(command: str) -> None:
    commands = [item.text for block in read_blocks(README) for item in block.commands]
    assert command in commands
    assert f'="{command}"' in CI


def test_every_command_is_in_the_table_of_readme() -> None:
    rows = [line for line in README.splitlines() if line.startswith("|")]
    missing = [name for name in COMMANDS if not any(re.search(rf"`(planner )?{name}\b", row) for row in rows)]
    assert missing == []


def test_every_link_to_a_file_of_the_project_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = []
    for page in pages:
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        local = (target for target in targets if "://" not in target)
        broken += [f"{page.relative_to(ROOT)}: {name}" for name in local if not (page.parent / name).exists()]
    assert broken == []


def test_the_pictured_session_is_the_first_answer_of_readme() -> None:
    """Whose text is compared with what the command prints now; `python -m tools.readme_pictures` makes it anew."""
    picture = (ROOT / "docs" / "pictures" / "session.svg").read_text(encoding="utf-8")
    assert "url(http" not in picture and "<script" not in picture
    pieces = re.findall(r'<text class="session-r\d+"[^>]*>([^<]*)</text>', picture)
    shown = "".join(html.unescape("".join(pieces)).split())
    item = next(item for block in read_blocks(README) for item in block.commands if item.output is not None)
    assert shown == "".join(" ".join(["$", item.text, *(item.output or ())]).split())


@pytest.fixture
def workshop(tmp_path: Path, base_environment: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """A folder with the examples and a `planner` that is the checkout's, whatever is installed."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    script = binaries / "planner"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m planner "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    path = os.pathsep.join([str(binaries), base_environment.get("PATH", os.defpath)])
    return folder, {**base_environment, "PATH": path, "PYTHONPATH": str(ROOT)}


def test_the_commands_of_readme_run_and_print_what_it_shows(workshop: tuple[Path, dict[str, str]]) -> None:
    folder, environment = workshop
    faults = []
    for block in read_blocks(README):
        for item in block.commands:
            command = without_install(item.text)
            if not command or command.startswith("pytest"):
                continue  # this is pytest
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != item.exit_code:
                faults.append(f"README.md:{item.line}: {command}: exit code {done.returncode}\n{done.stderr}")
            elif item.output is not None and (difference := mismatch(item.output, done.stdout)):
                faults.append(f"README.md:{item.line}: {command}: {difference}")
    assert not faults, "\n".join(faults)


def test_blocks_are_read_with_their_markers() -> None:
    page = """
<!-- test: skip needs a network -->
```bash
planner catalog refresh
```

<!-- test: exit 3 -->

```console
$ planner optimize \\
    x.yaml
No feasible plan
...
```
```bash
# a comment
python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest -q
planner --help
```
```yaml
not: run
```
"""
    skipped, console, shell = read_blocks(page)
    assert skipped.skip == "needs a network"
    assert skipped.commands == []
    (command,) = console.commands
    assert (command.text, command.output, command.exit_code) == (
        "planner optimize x.yaml",
        ["No feasible plan", "..."],
        3,
    )
    assert [without_install(item.text) for item in shell.commands] == ["pytest -q", "planner --help"]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "b"], "a\nc\n", False),
        (["a", "...", "c"], "a\nb\nb\nc\n", True),
        (["a", "..."], "a\n", True),
        (["took [..] s"], "took 0.12 s\n", True),
        (["took [..] s"], "took 0.12 min\n", False),
        ([], "", True),
        (["x (1)"], "x (1)\n", True),
    ],
)
def test_outputs_match_loosely_only_where_marked(expected: list[str], printed: str, same: bool) -> None:
    assert (mismatch(expected, printed) == "") is same
