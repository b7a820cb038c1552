"""The bundled catalog, loaded once, and small snapshots to break."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from catalogs.tables.model import Catalog


@pytest.fixture(scope="session")
def bundled() -> Catalog:
    """The snapshot shipped with the package."""
    return load_catalog(bundled_directory(), cache=False)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A copy of the smallest bundled provider that a test may damage."""
    root = tmp_path / "snapshot"
    shutil.copytree(bundled_directory() / "lambda", root / "lambda")
    return root


@pytest.fixture(scope="session")
def _small_data(small_catalog: Path, tmp_path_factory: pytest.TempPathFactory, _read_once: set[Path]) -> Path:
    data = tmp_path_factory.mktemp("small-bundle")
    _read_once.add(Path(shutil.copytree(small_catalog, data / "snapshot")))
    return data


@pytest.fixture
def small_bundle(_small_data: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ship a fifth of the bundled rows with the package, but not in tests that compare with all of them (`bundled`).

    Every refresh reads, merges and stores them, and every catalog with a history has them beside it.
    """
    if "bundled" in request.fixturenames:
        return
    monkeypatch.setattr("catalogs.store.read.DATA_DIRECTORY", _small_data)
