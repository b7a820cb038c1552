"""docs/CONTRIBUTING.md says which files a change of each kind touches; here the lists are held against the source."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from planner.candidates.constraints.registry import CONSTRAINTS
from planner.cli import COMMANDS
from planner.export.registry import TARGETS
from planner.render.formats import FORMATS
from tests.architecture.modules import ROOT, relative, source_files, text_of

PAGE = (ROOT / "docs" / "CONTRIBUTING.md").read_text(encoding="utf-8")
MOST = {"A constraint": 9, "A provider": 12, "An output format": 4, "A command": 4, "An exporter": 4}


def places(title: str) -> list[str]:
    """Paths of the first column of a section's table."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def mentions(word: str, *folders: str) -> set[str]:
    """Files below `folders` in which `word` occurs as a word."""
    found: set[str] = set()
    for folder in folders:
        found |= {
            relative(path)
            for path in files_of(folder)
            if word in text_of(path) and re.search(rf"\b{re.escape(word)}\b", text_of(path))
        }
    return found


@cache
def files_of(folder: str) -> tuple[Path, ...]:
    """Code, pages and tables below a folder of the checkout."""
    return tuple(
        path
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".json", ".csv") and "__pycache__" not in path.parts
    )


def naming(module: str) -> set[str]:
    """Source files in which the name of a module stands as a text."""
    return {relative(path) for path in source_files() if f'"{module}"' in text_of(path)}


@pytest.mark.parametrize("title", MOST)
def test_a_change_of_each_kind_touches_few_places(title: str) -> None:
    assert 0 < len(places(title)) <= MOST[title]


def test_a_constraint_is_where_the_page_says() -> None:
    listed = set(places("A constraint"))
    registry = "planner/candidates/constraints/registry.py"
    # the catalog's own query has an option of the same name
    found = mentions("min_memory_gib", "planner", "docs") - {
        "planner/commands/catalog.py",
        "docs/CONTRIBUTING.md",
    }
    assert {path for path in listed if not path.startswith("tests/")} == found | {registry}
    (own,) = [item for item in CONSTRAINTS if "constraints.min_memory_gib" in item.paths]
    assert type(own).__module__.replace(".", "/") + ".py" in listed
    assert {path for path in listed if path.startswith("tests/")} <= mentions("min_memory_gib", "tests")


def test_a_provider_is_where_the_page_says() -> None:
    listed = [path.replace("NAME", "alibaba") for path in places("A provider")]
    for path in listed:
        target = ROOT / path
        assert target.exists(), path
        texts = target.glob("*.csv") if target.is_dir() else [target]
        named = "alibaba" in target.name or any(
            "alibaba" in text.read_text(encoding="utf-8") for text in texts
        )
        assert named, f"{path} does not name the example"
    code = {path for path in mentions("alibaba", "planner", "catalogs") if path.endswith(".py")}
    assert {path for path in code if not Path(path).name.startswith("alibaba")} == {
        "catalogs/providers/registry.py"
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_where_the_page_says(name: str) -> None:
    for place in places("An output format"):
        assert (ROOT / place.replace("NAME", name)).exists(), place
    assert naming(FORMATS[name].module) == {"planner/render/formats.py"}
    assert mentions(name, "tests/planner/render"), "no test of the room renders it"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_where_the_page_says(name: str) -> None:
    assert (ROOT / f"planner/commands/{name}.py").is_file()
    assert f"planner {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert naming(COMMANDS[name].module) == {"planner/cli.py"}
    tests = (path for path in files_of("tests") if path.match("test_*.py"))
    assert any(f'"{name}"' in text_of(path) for path in tests), "no test runs the command"


@pytest.mark.parametrize("name", TARGETS)
def test_an_exporter_is_where_the_page_says(name: str) -> None:
    for place in places("An exporter"):
        assert (ROOT / place.replace("NAME", name)).exists(), place
    module = TARGETS[name].module
    assert (ROOT / (module.replace(".", "/") + ".py")).is_file()
    assert naming(module) == {"planner/export/registry.py"}


def test_the_page_names_every_target_of_the_registry() -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    assert [name for name in TARGETS if f"`{name}`" not in page and f"--to {name}" not in page] == []
