"""The pages of single commands: their commands run as written, with the exit code that they state.

Two are run beside the tests that share their answers: `compare` (`test_compare.py`), `budget-and-proof`
(`test_best_within.py`).
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.asked import options
from tests.conftest import ROOT, Run
from tests.readme_blocks import Command, mismatch, read_blocks, without_install

ASKING = tuple(f"planner.workloads.{name}" for name in ("explain", "price_days", "size", "whatif"))
PAGES = (
    "carbon", "diff", "explain", "export", "index", "size", "validate", "walks", "whatif",
)  # fmt: skip


def commands_of(page: str) -> list[Command]:
    """The commands that a page has its readers type."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [item for block in read_blocks(text) if not block.skip for item in block.commands]


def _on_a_part(page: str) -> object:
    """A page that shows no answer says as much of fewer offers."""
    shows = any(item.output is not None for item in commands_of(page))
    return page if shows else pytest.param(page, marks=pytest.mark.catalog("small"))


@pytest.mark.parametrize("page", [*map(_on_a_part, PAGES)])
def test_the_commands_of_a_page_run(
    page: str,
    run_cli: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked_once: Callable[..., None],
) -> None:
    # pages ask the same of the same examples, some of them of now
    asked_once("planner.workloads.answer.optimize", *ASKING)
    monkeypatch.setattr("planner.asked.options.utc_now", functools.cache(options.utc_now))
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    run_page(page, run_cli)


def run_page(page: str, run_cli: Run) -> None:
    """Run the commands of a page in this folder; `examples` lies in it."""
    commands = commands_of(page)
    assert commands
    for item in commands:
        program, *words = shlex.split(without_install(item.text))
        assert program == "planner"
        result = run_cli(*words)
        assert result.code == item.exit_code, f"{page}.md:{item.line}: {item.text}\n{result.stderr}"
        assert item.output is None or not (found := mismatch(item.output, result.stdout)), (
            f"{page}.md: {found}"
        )
