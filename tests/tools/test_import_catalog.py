"""The import: the same lists give the same bytes, and the bundled files are what it builds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catalogs.errors import CatalogError
from catalogs.store.load import load_catalog
from catalogs.tables.columns import DATA_DIRECTORY
from tests.architecture.modules import ROOT
from tools.import_catalog import import_catalog

TABLES = ("accelerators.csv", "interconnects.csv", "commitment_ratios.csv")


@pytest.mark.shared
def test_import_reproduces_the_bundled_files(shared_dir: Path, tmp_path: Path) -> None:
    report = import_catalog(shared_dir, tmp_path)
    assert not report.faults
    assert report.n_instance_types >= 250
    assert report.n_offers >= 6000
    assert report.n_regional_offers >= 6000
    assert report.n_admitted >= 6000
    built = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    bundled = {
        path.relative_to(DATA_DIRECTORY): path.read_bytes()
        for path in [*(DATA_DIRECTORY / "snapshot").rglob("*"), *(DATA_DIRECTORY / name for name in TABLES)]
        if path.is_file()
    }
    assert sorted(built) == sorted(bundled)
    assert [str(name) for name in built if built[name] != bundled[name]] == []
    assert load_catalog(tmp_path, cache=False).offers.n_rows == report.n_offers


@pytest.mark.shared
def test_an_unwritable_target_is_named(shared_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(CatalogError, match=r"cannot write the catalog to .*choose another --out"):
        import_catalog(shared_dir, tmp_path / "out")


def test_import_without_lists_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no offers\.csv"):
        import_catalog(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_import_with_half_the_lists_names_the_missing_one(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "offers.csv").write_text("provider\n")
    with pytest.raises(CatalogError, match=r"gpus\.csv"):
        import_catalog(tmp_path, tmp_path / "out")


def _run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.import_catalog", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_folder_without_lists_is_named(tmp_path: Path) -> None:
    done = _run("--from", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "no offers.csv" in done.stderr


@pytest.mark.shared
def test_the_command_prints_what_it_built(shared_dir: Path, tmp_path: Path) -> None:
    done = _run("--from", str(shared_dir), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "unique regional offers" in done.stdout
    assert (tmp_path / "snapshot" / "aws" / "manifest.json").is_file()
