"""Shells complete commands, options and values."""

from __future__ import annotations

import pytest

from planner.cli import main


def completed(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COMP_WORDS", f"planner {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    monkeypatch.setenv("_PLANNER_COMPLETE", "bash_complete")
    main([])
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("comp", "compare"),
        ("compare w.yaml --over reg", "region"),
        ("estimate w.yaml --instance-type p5.", "p5.48xlarge"),
        ("compare w.yaml --pick p4d.24xlarge,a2-highgpu-8", "p4d.24xlarge,a2-highgpu-8g"),
        ("compare w.yaml --over region --base aws/us-w", "aws/us-west-1"),
        ("catalog list --provider aw", "aws"),
        ("catalog list --region eu-north", "eu-north-1"),
        ("catalog show p4d", "p4d.24xlarge"),
        ("init --model llama-3.1-8", "llama-3.1-8b"),
        ("export plan.json --to slu", "slurm"),
        ("export plan.json --to slurm --framework meg", "megatron"),
    ],
)
def test_values_are_completed(
    words: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = completed(words, monkeypatch, capsys)
    begun = words.split()[-1]
    assert wanted in found
    assert all(value.startswith(begun) for value in found)
