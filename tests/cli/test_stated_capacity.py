"""What a user states of capacity is used under the names that other limits take, and refused where it would not be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CliResult, Run

BASE = """version: 1
name: small
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
"""


@pytest.fixture
def optimize(run_cli: Run, tmp_path: Path) -> Callable[..., CliResult]:
    def optimize(limits: str, *options: str) -> CliResult:
        path = tmp_path / "w.yaml"
        path.write_text(f"{BASE}constraints: {{{limits}}}\n", encoding="utf-8")
        return run_cli("optimize", str(path), "--as-of", "2026-11-20", *options)

    return optimize


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            "obtainable: [{accelerator: h10, purchase_option: spot, accelerators: 8}]",
            ["obtainable[0].accelerator", "did you mean 'h100-80gb-sxm'"],
        ),
        (
            "obtainable: [{accelerator: h100, purchase_option: spot, accelerators: 8, provider: google}]",
            ["obtainable[0].provider", "did you mean 'gcp'"],
        ),
        (
            "obtainable: [{accelerator: h100, purchase_option: spot, accelerators: 8, region: aws/us-east-1}]",
            ["obtainable[0].region", "did you mean 'us-east-1'"],
        ),
        (
            "waiting: [{purchase_option: on-demand, hours: 3}]",
            ["waiting[0].purchase_option", "did you mean 'on_demand'"],
        ),
        ("waiting: [{purchase_option: spot, hours: 3}]", ["waiting[0].purchase_option", "spot.evidence"]),
        (
            "waited: [{purchase_option: on_demand, accelerators: 8, waited_hours: 3, region: us-est-1}]",
            ["waited[0].region", "did you mean 'us-east-1'"],
        ),
        ("providers: [oracle]", ["providers[0]", "did you mean 'oci'"]),
        ("providers: [Amazon]", ["providers[0]", "did you mean 'aws'"]),
        ("regions: [google/europe-west4]", ["regions[0]", "did you mean 'gcp/europe-west4'"]),
    ],
)
def test_words_that_would_be_passed_over_are_refused(
    optimize: Callable[..., CliResult], limits: str, words: list[str]
) -> None:
    done = optimize(limits)
    assert done.code == 2 and done.stdout == "", done.stderr
    for word in ("w.yaml:5:", *words):
        assert word in done.stderr


@pytest.mark.parametrize("name", ["H100", "h100", "h100*", "h100-80gb"])
def test_a_family_limits_as_its_pattern_does_and_is_verified(
    optimize: Callable[..., CliResult], run_cli: Run, tmp_path: Path, name: str
) -> None:
    only = "accelerators: {allow: [h100-80gb-sxm]}, providers: [aws], purchase_options: [on_demand], deadline: 30d"
    capacity = f"{{provider: 'a*', accelerator: '{name}', purchase_option: on_demand, accelerators: 1}}"
    limits = f"{only}, obtainable: [{capacity}]"
    waits = f"waiting: [{{accelerator: '{name}', purchase_option: on_demand, hours: 5}}]"
    saved = tmp_path / "plan.json"
    done = optimize(f"{limits}, {waits}", "-o", "json", "--out", str(saved))
    assert done.code == 0, done.stderr
    plan = json.loads(saved.read_text(encoding="utf-8"))
    assert sum(line["nodes"] * line["accelerators_per_node"] for line in plan["lines"]) == 1
    parts = {part["id"]: part["hours"] for part in plan["timeline"]}
    assert parts["capacity"] == pytest.approx(5.0)
    checked = run_cli("verify", str(saved), "--workload", str(tmp_path / "w.yaml"))
    assert checked.code == 0, checked.stdout


def test_a_long_wait_is_on_the_screen_and_a_short_one_in_the_details(
    optimize: Callable[..., CliResult],
) -> None:
    limits = "purchase_options: [on_demand], waiting: [{{purchase_option: on_demand, hours: {}}}]"
    long, short = (optimize(limits.format(hours)) for hours in (30, 2))
    assert (long.code, short.code) == (0, 0)
    assert "; starts in about 30 h; " in long.stdout and "starts in about" not in short.stdout
    details = optimize(limits.format(2), "--details", "time")
    assert "in about 2.08 h" in details.stdout
