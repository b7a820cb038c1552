"""What is shipped: the three packages with their data, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.architecture.modules import PACKAGES, ROOT

_BUILD_INPUTS = ("pyproject.toml", "README.md", "LICENSE", ".gitignore")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without a network from a copy that also holds folders that must stay out."""
    copy = tmp_path_factory.mktemp("source")
    for name in _BUILD_INPUTS:
        shutil.copy(ROOT / name, copy / name)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "notebooks", "benchmarks", "examples"):
        (copy / name).mkdir()
        (copy / name / "__init__.py").write_text('"""Must stay out."""\n', encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (copy / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_top_level_is_exactly_the_three_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_every_file_of_the_packages_is_shipped(wheel: zipfile.ZipFile) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert wanted - set(wheel.namelist()) == set()
    assert {f"{package}/py.typed" for package in PACKAGES} <= wanted


def test_the_script_and_the_python_version_are_declared(wheel: zipfile.ZipFile) -> None:
    def read(name: str) -> str:
        (found,) = (entry for entry in wheel.namelist() if entry.endswith(f".dist-info/{name}"))
        return wheel.read(found).decode()

    assert "planner = planner.cli:main" in read("entry_points.txt")
    assert "Requires-Python: >=3.11" in read("METADATA")
    assert "License-Expression: Apache-2.0" in read("METADATA")


def test_no_single_file_is_huge(wheel: zipfile.ZipFile) -> None:
    limit = 5 * 2**20
    assert [info.filename for info in wheel.infolist() if info.file_size > limit] == []
    assert Path(str(wheel.filename)).stat().st_size < limit


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive does not say what is tracked")
def test_the_source_archive_holds_what_is_tracked(tmp_path: Path) -> None:
    """Its tests read the notebooks, the container file, the templates and the lock file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()} - shipped == set()
