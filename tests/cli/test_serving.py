"""`planner serving` as a user types it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from solvers.backends.highs import HighsBackend
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
EXAMPLE = str(ROOT / "examples" / "serving.yaml")
TEXT = """version: 1
kind: serving
name: two
buckets:
  - {name: short, requests_per_s: 10}
  - {name: long, requests_per_s: 1}
machines:
  - {name: small, usd_per_hour: 1, requests_per_s: {short: 5}}
  - {name: big, usd_per_hour: 4, max_nodes: 3, requests_per_s: {short: 10, long: 2}}
"""


def write(folder: Path, text: str) -> str:
    path = folder / "serving.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_mix_by_hand(tmp_path: Path, run_cli: Run) -> None:
    """One big is half busy with long requests and takes half of the short ones; one small takes the rest: $5."""
    found = json.loads(run_cli("serving", write(tmp_path, TEXT), "-o", "json", *DAY).stdout)
    assert Decimal(found["total_usd_per_hour"]) == 5
    assert {m["machine"]: m["count"] for m in found["machines"]} == {"big": 1, "small": 1}
    assert found["cheapest_single_kind"] == {"machine": "big", "usd_per_hour": "8"}


@pytest.mark.parametrize("fmt", ["table", "csv", "md", "yaml"])
def test_the_example_in_every_format(fmt: str, run_cli: Run) -> None:
    result = run_cli("serving", EXAMPLE, "-o", fmt, *DAY)
    assert result.code == 0 and "h100" in result.stdout
    assert fmt != "table" or max(map(len, result.stdout.splitlines())) <= 100


def test_speeds_may_come_from_a_csv(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "speeds.csv").write_text("machine,bucket,requests_per_s\nsmall,long,9\n", encoding="utf-8")
    path = write(tmp_path, TEXT + "speeds_csv: speeds.csv\n")
    assert Decimal(json.loads(run_cli("serving", path, "-o", "json", *DAY).stdout)["total_usd_per_hour"]) == 3
    (tmp_path / "speeds.csv").write_text("machine,bucket,requests_per_s\nsmal,long,9\n", encoding="utf-8")
    result = run_cli("serving", path, *DAY)
    assert result.code == 2 and "speeds.csv:2: no machine 'smal' (did you mean 'small'?)" in result.stderr
    (tmp_path / "speeds.csv").write_text("machine,bucket,requests_per_s\nsmall,short,9\n", encoding="utf-8")
    assert "given twice" in run_cli("serving", path, *DAY).stderr
    (tmp_path / "speeds.csv").write_text("machine,bucket,requests_per_s\nsmall,long,-1\n", encoding="utf-8")
    assert "0 or more, got '-1'" in run_cli("serving", path, *DAY).stderr


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("long: 2}", "long: 0}", 3, "no machine serves long"),
        ("long, requests_per_s: 1}", "long, requests_per_s: 90}", 3, "cannot carry the load"),
        ("long: 2}", "lon: 2}", 2, "no bucket 'lon'"),
        ("usd_per_hour: 1,", "", 2, "needs usd_per_hour, or provider and instance_type"),
        (
            "usd_per_hour: 1,",
            "provider: aws, instance_type: none.such,",
            2,
            "no admitted on_demand price of none.such",
        ),
        ("name: long", "name: short", 2, "two buckets are called 'short'"),
        ("kind: serving", "kind: servin", 2, "kind"),
        ("kind: serving", f"kind: serving\nconfidence: 1{'0' * 350}", 2, "at most 1, got 1000"),
    ],
)
def test_faults(old: str, new: str, code: int, message: str, tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("serving", write(tmp_path, TEXT.replace(old, new, 1)), *DAY)
    assert result.code == code and message in result.stdout + result.stderr
    assert "Traceback" not in result.stderr and (code == 3 or "serving.yaml:" in result.stderr)


def test_the_solver_asked_for_finds_the_proof_too(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names another solver may have one that fails."""
    path = write(tmp_path, TEXT)
    asked = ("serving", path, "-o", "json", "--reproducible", *DAY)
    proven = run_cli(*asked).stdout
    monkeypatch.setattr(HighsBackend, "_relax", None)
    by_scipy = json.loads(run_cli(*asked, "--backend", "scipy").stdout)["proof"]
    assert by_scipy["proven"] == json.loads(proven)["proof"]["proven"]


def test_what_limits_keep_out_is_counted(tmp_path: Path, run_cli: Run) -> None:
    done = run_cli(
        "serving",
        write(tmp_path, TEXT.replace("long, requests_per_s: 1}", "long, requests_per_s: 90}")),
        *DAY,
    )
    words = " ".join(done.stdout.split())
    assert "max_nodes " in words and " carry it then, at $" in words
    assert (
        "$0.00" not in run_cli("serving", str(tmp_path / "serving.yaml"), *DAY, "--details", "proof").stdout
    )


def test_a_machine_nearly_written_right_is_named(tmp_path: Path, run_cli: Run) -> None:
    named = TEXT.replace("usd_per_hour: 1,", "provider: aws, instance_type: g6.xlarg,", 1)
    assert "did you mean 'g6.xlarge'?" in run_cli("serving", write(tmp_path, named), *DAY).stderr


def test_numbers_no_solver_can_hold_are_bad_input(tmp_path: Path, run_cli: Run) -> None:
    done = run_cli(
        "serving", write(tmp_path, TEXT.replace("requests_per_s: 10}\n", "requests_per_s: 1e14}\n")), *DAY
    )
    assert done.code == 2 and "apart" in done.stderr and "internal" not in done.stderr


@pytest.mark.parametrize(("headroom", "rate", "said"), [(0.0, 10, True), (0.15, 10, False), (0.0, 7, False)])
def test_machines_without_room_for_bursts_are_named(
    headroom: float, rate: float, said: bool, run_cli: Run, tmp_path: Path
) -> None:
    text = (
        f"version: 1\nkind: serving\nname: one\nheadroom_ratio: {headroom}\n"
        f"buckets: [{{name: short, requests_per_s: {rate}}}]\n"
        "machines: [{name: small, usd_per_hour: 1, requests_per_s: {short: 5}}]\n"
    )
    done = run_cli("serving", write(tmp_path, text), *DAY)
    assert done.code == 0 and ("bursts wait in a queue" in done.unwrapped) is said
