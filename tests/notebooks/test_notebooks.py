"""Every notebook runs from top to bottom; its cells hold no outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    monkeypatch.chdir(FOLDER)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], f"cell {number} of {path.name} holds outputs: clear them before committing"
        exec(compile("".join(cell["source"]), f"{path.name}[{number}]", "exec"), names)  # the repository's own code
    assert len(names) > 1
