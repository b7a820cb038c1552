"""`planner catalog diff`: readable and JSON, and a gate for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalogs.store.history import save_snapshot
from tests.catalogs.history_rows import refresh
from tests.conftest import Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two refreshes: one price up by a tenth, one gone, one new, one machine under another name."""
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path))
    save_snapshot("acme", *refresh("2026-11-01", {"north": "10", "south": "20"}, ("gpu.8x", "gpu.1x")))
    types, offers = refresh("2026-11-08", {"north": "11", "west": "20"}, ("gpu.8x", "gpu.1x"))
    types[1].update(vcpus="12")
    save_snapshot("acme", types, offers)
    return tmp_path


def test_the_table_tells_moves_new_and_gone(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "diff", "acme@2026-11-01", "acme@2026-11-08")
    assert found.code == 0
    assert not found.stderr
    assert all(len(line) <= 100 for line in found.stdout.splitlines())
    assert "offers  2 new, 2 gone, 2 with another price, 0 moved by less, 0 the same" in found.stdout
    assert "$10.00   $11.00  +10.0 %  2026-11-08" in found.stdout
    assert "gone regions: acme/south" in found.stdout
    assert "descriptions: acme/gpu.1x vcpus: 96 -> 12" in found.stdout


def test_json_holds_everything(home: Path, run_cli: Run) -> None:
    found = json.loads(run_cli("catalog", "diff", "acme@2026-11-01", "latest", "-o", "json").stdout)
    assert found["schema_version"] == 1
    assert found["moved"][0] == {
        "offer_id": "acme/north/-/gpu.1x/on_demand/-",
        "old_price_per_hour": "10",
        "new_price_per_hour": "11",
        "old_currency": "USD",
        "new_currency": "USD",
        "change_ratio": pytest.approx(0.1),
        "old_as_of": "2026-11-01",
        "new_as_of": "2026-11-08",
    }
    assert len(found["moved"]) == 2
    assert found["new_regions"] == ["acme/west"]
    assert not found["new_providers"]


def test_the_default_is_bundled_against_latest(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "diff")
    assert found.code == 0
    assert found.stdout.startswith("bundled -> latest")
    assert "whole provider: acme" in found.stdout


def test_a_directory_of_the_group_is_the_catalog_in_use(home: Path, run_cli: Run) -> None:
    (old,) = (home / "catalog" / "acme").glob("2026-11-01-*")
    (home / "named" / "acme").parent.mkdir()
    old.rename(home / "named" / "acme")
    found = run_cli("catalog", "--catalog-dir", home / "named", "diff", "acme@latest", "latest")
    assert found.code == 0
    assert found.unwrapped.startswith("acme@latest -> ")
    assert "2 new, 2 gone, 2 with another price" in found.stdout


@pytest.mark.parametrize(("limit", "code"), [("9%", 5), ("0.099", 5), ("10.1%", 0), ("50%", 0)])
def test_the_gate(home: Path, run_cli: Run, limit: str, code: int) -> None:
    found = run_cli("catalog", "diff", "acme@2026-11-01", "latest", "--fail-above", limit)
    assert found.code == code
    assert "acme@2026-11-01 -> latest" in found.stdout
    if code:
        assert "2 prices moved by more than 9" in found.stderr
        assert "most: +10.0 %" in found.stderr


def test_small_moves_are_counted_not_listed(home: Path, run_cli: Run) -> None:
    found = run_cli("catalog", "diff", "acme@2026-11-01", "latest", "--min-change", "20%")
    assert "0 with another price, 2 moved by less" in found.stdout
    assert "+10.0 %" not in found.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yesterday",), "no snapshot 'yesterday': give bundled, latest, a date"),
        (("acme@2020-01-01",), "there are acme@2026-11-01, acme@2026-11-08"),
        (("nobody@latest",), "none of that provider"),
        (("acme@latest", "aws@latest"), "different providers"),
        (("--provider", "nobody"), "unknown provider nobody"),
        (("--purchase-option", "spott"), "did you mean 'spot'"),
        (("--fail-above", "much"), "is not a ratio"),
    ],
)
def test_wrong_questions_end_with_2(
    home: Path, run_cli: Run, arguments: tuple[str, ...], message: str
) -> None:
    found = run_cli("catalog", "diff", *arguments)
    assert found.code == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
