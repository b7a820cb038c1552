"""The same question in other words has the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run

RESNET = (ROOT / "examples" / "resnet50-imagenet.yaml").read_text()
DAY = ("--as-of", "2026-11-20")
pytestmark = pytest.mark.catalog("small")


@pytest.mark.parametrize(
    "words", ["2026-11-30T19:00:00-05:00", "2026-12-01T14:00+14:00", "2026-12-01T00:00Z"]
)
def test_a_start_in_another_time_zone_is_the_same_start(words: str, tmp_path: Path, run_cli: Run) -> None:
    """Prices to expect are those of a day: of the moment's in UTC, not of the one on the user's calendar."""
    path = tmp_path / "w.yaml"

    def planned(start: str) -> tuple[str, str, str]:
        path.write_text(f'{RESNET}\nstart: "{start}"\n')
        found = json.loads(run_cli("optimize", path, "-o", "json", *DAY).stdout)
        return found["total_usd"], found["start"], found["finish_expected"]

    assert planned(words) == planned("2026-12-01")
