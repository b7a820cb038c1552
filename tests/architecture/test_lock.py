"""uv.lock fits pyproject.toml and names the public index only."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.architecture.modules import ROOT

PUBLIC = {"https://pypi.org/simple"}
PUBLIC_FILES = "https://files.pythonhosted.org/packages/"


@pytest.fixture(scope="module")
def lock() -> dict[str, Any]:
    """The parsed lock file."""
    return tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


def _requirement(text: str) -> tuple[str, str]:
    name, extra, rest = re.fullmatch(r"([A-Za-z0-9._-]+)(\[[^]]*\])?(.*)", text).groups()  # type: ignore[union-attr]
    return re.sub(r"[-_.]+", "-", name).lower() + (extra or ""), rest.strip()


def test_only_the_public_index_is_named(lock: dict[str, Any]) -> None:
    others = [package for package in lock["package"] if "registry" in package["source"]]
    assert {package["source"]["registry"] for package in others} == PUBLIC
    files = [
        entry for package in others for entry in [*package.get("wheels", []), package.get("sdist")] if entry
    ]
    assert [entry["url"] for entry in files if not entry["url"].startswith(PUBLIC_FILES)] == []
    assert all(entry["hash"].startswith("sha256:") for entry in files)


def test_the_lock_fits_the_declared_dependencies(lock: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (own,) = (package for package in lock["package"] if package["name"] == project["name"])
    locked = {(item["name"], item.get("specifier", "")) for item in own["metadata"]["requires-dist"]}
    declared = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    assert {_requirement(item) for item in declared} == locked
    assert lock["requires-python"] == project["requires-python"]
