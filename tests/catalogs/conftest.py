"""The bundled catalog, loaded once, and small snapshots to break."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory, history_directory
from catalogs.tables.model import Catalog


@pytest.fixture(scope="session")
def bundled() -> Catalog:
    """The snapshot shipped with the package."""
    return load_catalog(bundled_directory(), cache=False)


@pytest.fixture
def home(small_bundle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty history, in use."""
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path))
    return history_directory()


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A copy of the smallest bundled provider that a test may damage."""
    root = tmp_path / "snapshot"
    shutil.copytree(bundled_directory() / "lambda", root / "lambda")
    return root
