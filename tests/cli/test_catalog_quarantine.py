"""`planner catalog quarantine` and `accept`: what waits, and that a person's word puts it in use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
OFFER = "aws/af-south-1/-/g4dn.16xlarge/spot/-"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))


def _waiting(run_cli: Run) -> dict[str, Any]:
    done = run_cli("catalog", "quarantine", "-o", "json")
    assert done.code == 0
    return {quote["offer_id"]: quote for quote in json.loads(done.stdout)["quotes"]}


def test_a_reason_is_written_once_for_all_quotes_that_have_it(run_cli: Run) -> None:
    shown = run_cli("catalog", "quarantine").stdout
    quotes = _waiting(run_cli).values()
    assert shown.count("why ") == len({quote["reason"] for quote in quotes}) < len(quotes)
    assert len(shown.splitlines()) < 2 * len(quotes) + 20


def test_a_quote_of_the_bundled_snapshot_is_listed_and_accepted(run_cli: Run) -> None:
    before = _waiting(run_cli)
    assert "lowest share of on-demand" in before[OFFER]["reason"]
    listed = ("catalog", "list", "--region", "aws/af-south-1", "--instance-type", "g4dn.16xlarge")
    assert "0 of 0 shown; 1 more excluded by a flag" in run_cli(*listed, "--purchase-option", "spot").stdout
    done = run_cli("catalog", "accept", OFFER)
    assert (done.code, done.stdout) == (0, f"accepted {OFFER}\n")
    assert set(_waiting(run_cli)) == set(before) - {OFFER}
    assert "0.5774" in run_cli(*listed, "--purchase-option", "spot", "-o", "csv").stdout


def test_what_does_not_wait_cannot_be_accepted(run_cli: Run) -> None:
    done = run_cli("catalog", "accept", "aws/af-south-1/-/g4dn.16xlarg/spot/-")
    assert done.code == 2 and f"did you mean {OFFER}?" in done.stderr


def test_quotes_of_one_provider(run_cli: Run) -> None:
    of_aws = json.loads(run_cli("catalog", "quarantine", "--provider", "aws", "-o", "json").stdout)["quotes"]
    assert [one["offer_id"] for one in of_aws] == [
        name for name in _waiting(run_cli) if name.startswith("aws/")
    ]
    done = run_cli("catalog", "quarantine", "--provider", "awss")
    assert (done.code, done.stderr) == (2, "error: unknown provider 'awss' (did you mean 'aws'?)\n")
