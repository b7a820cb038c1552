"""Questions that are planned by cost refuse a workload that asks for the least time, and say what to do."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT, CliResult, Run

DAY = ("--as-of", "2026-11-20")


def hurried(folder: Path) -> None:
    text = (ROOT / "examples" / "bert-large.yaml").read_text(encoding="utf-8")
    assert "objective: cost" in text
    (folder / "fast.yaml").write_text(text.replace("objective: cost", "objective: time"), encoding="utf-8")


def ask(run_cli: Run, folder: Path, command: str, text: str) -> CliResult:
    hurried(folder)
    path = folder / "question.yaml"
    path.write_text(text, encoding="utf-8")
    return run_cli(command, path, *DAY)


def test_a_portfolio_refuses_the_objective_time_by_name(tmp_path: Path, run_cli: Run) -> None:
    text = "version: 1\nkind: portfolio\nname: p\njobs:\n  - {name: soon, workload: fast.yaml}\n"
    done = ask(run_cli, tmp_path, "portfolio", text)
    assert done.code == 2
    assert "jobs[0].workload" in done.stderr
    assert "job 'soon' has preferences.objective: time" in done.stderr
    assert "delay_usd_per_hour" in done.stderr


def test_a_pipeline_refuses_the_objective_time_by_name(tmp_path: Path, run_cli: Run) -> None:
    text = "version: 1\nkind: pipeline\nname: p\ntasks:\n  - {name: soon, workload: fast.yaml}\n"
    done = ask(run_cli, tmp_path, "pipeline", text)
    assert done.code == 2
    assert "tasks[0].workload" in done.stderr
    assert "task 'soon' has preferences.objective: time" in done.stderr
    assert "set the pipeline's deadline" in done.stderr
