"""`planner sweep`: rows equal the plans of `optimize`, the same bytes from every engine, and runs that go on."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.inputs.sweep_load import load_sweep
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
LLAMA = ROOT / "examples" / "llama-3-8b.yaml"
LIMITS = "constraints: {deadline: 30d, max_nodes: 2, providers: [lambda], purchase_options: [on_demand]}\n"
SMALL = f"""version: 1
name: NAME
model: {{preset: bert-base}}
training: {{samples: 1e6, global_batch: 256, sequence_length: 128}}
{LIMITS}"""
pytestmark = pytest.mark.catalog("small")


def workload(folder: Path, name: str, text: str = SMALL) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("NAME", name), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        return list(connection.execute(f"SELECT * FROM '{path}'").df().to_dict("records"))


def test_a_row_is_the_plan_of_optimize(run_cli: Run, tmp_path: Path) -> None:
    one, results = workload(tmp_path, "one"), tmp_path / "out.parquet"
    scenario = "constraints.max_nodes=1"
    said = run_cli("sweep", str(one), *DAY, "--set", scenario, "--results", str(results), "-o", "json")
    assert said.code == 0, said.stderr
    plan = json.loads(run_cli("optimize", str(one), "--set", scenario, *DAY, "-o", "json").stdout)
    before, row = rows_of(results)
    assert (before["scenario"], row["scenario"], row["status"]) == ("", scenario, "planned")
    assert row["plan_id"] == plan["run_id"] and row["workload_sha256"] == plan["workload_sha256"]
    assert float(row["total_usd"]) == pytest.approx(float(plan["total_usd"]), abs=1e-6)
    assert (row["hours"], row["finish"]) == (plan["hours"], plan["finish_expected"])
    assert row["instance_type"] == plan["lines"][0]["instance_type"]
    answer = json.loads(said.stdout)
    assert answer["statuses"] == {"planned": 2, "infeasible": 0, "refused": 0, "failed": 0}
    assert [group["scenario"] for group in answer["groups"]] == ["as the file says", scenario]


def test_one_cell_is_no_cells_and_no_time_is_stated_where_none_was_measured(
    run_cli: Run, tmp_path: Path
) -> None:
    command = ("sweep", str(workload(tmp_path, "one")), *DAY, "--results", str(tmp_path / "out.csv"))
    said = run_cli(*command)
    assert said.stdout.startswith("1 cell: 1 planned\n"), said.stdout
    assert "  1 cell; 0 from earlier runs" in said.stdout
    again = json.loads(run_cli(*command, "-o", "json").stdout)
    assert again["cells"] == 1 and again["cpu"]["jobs"]["median"]["seconds"] is None


def test_a_sweep_that_goes_on_gives_the_bytes_of_one_that_began(run_cli: Run, tmp_path: Path) -> None:
    files = [str(workload(tmp_path, name)) for name in ("one", "two")]
    command = ("--reproducible", "sweep", *files, *DAY, "--results", str(tmp_path / "out.csv"), "-o", "json")
    first = run_cli(*command).stdout
    assert run_cli(*command).stdout == first  # the second measured nothing


def test_days_scenarios_folders_and_files_that_are_no_workloads(run_cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    for name in ("b", "a"):
        workload(folder, name)
    workload(folder, "other", "version: 1\nkind: portfolio\n")
    results = tmp_path / "out.csv"
    command = ("sweep", str(folder), *DAY, "--as-of", "2026-11-22", "--results", str(results))
    first = run_cli(
        *command, "--set", "constraints.deadline=20d", "--set", "constraints.max_nodes=1", "--together"
    )
    assert first.code == 0, first.stderr
    assert "8 cells: 8 planned" in first.stdout and "as the file says" in first.stdout
    rows = list(csv.DictReader(io.StringIO(results.read_text(encoding="utf-8"))))
    places = [(Path(row["file"]).name, row["as_of"], row["scenario"]) for row in rows]
    both = "constraints.deadline=20d, constraints.max_nodes=1"
    assert places == [
        (name, day, scenario)
        for name in ("a.yaml", "b.yaml")
        for day in ("2026-11-20", "2026-11-22")
        for scenario in ("", both)
    ]


def test_a_sweep_file_names_workloads_days_and_scenarios(run_cli: Run, tmp_path: Path) -> None:
    workload(tmp_path, "one")
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "version: 1\nkind: sweep\nname: grid\nworkloads: [one.yaml]\ndays: [2026-11-20]\n"
        "scenarios: {alone: [constraints.max_nodes=1], late: ['constraints.deadline=60d']}\n",
        encoding="utf-8",
    )
    results = tmp_path / "out.csv"
    assert run_cli("sweep", str(path), "--results", str(results)).code == 0
    rows = list(csv.DictReader(io.StringIO(results.read_text(encoding="utf-8"))))
    assert [row["scenario"] for row in rows] == ["", "alone", "late"]
    refused = run_cli("simulate", "--sweep", str(path), "--generate", "2")
    assert (
        refused.code == 2
        and f"has days or scenarios, which are planned by: planner sweep {path}" in refused.stderr
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("[one.yaml, two.yaml]\n", "sweep.yaml:4:23: workloads[1]: no such file: two.yaml"),
        ("[one.yaml]\nscenarios:\n  a: [constraints.deadlne=2d]\n",
         "sweep.yaml:6:7: scenarios.a[0]: constraints.deadlne: unknown key 'deadlne' (did you mean 'deadline'?)"),
        ("[one.yaml]\nscenarios:\n  a: [constraints.max_nodes=1, constraints.deadline]\n",
         "sweep.yaml:6:32: scenarios.a[1]: is not KEY=VALUE"),
        ("[one.yaml]\nscenarios:\n  a: [constraints.deadline=2x]\n", "sweep.yaml:6:7: scenarios.a[0]: constraints.de"),
    ],
)  # fmt: skip
def test_faults_of_a_sweep_file_are_at_their_line(
    written: str, message: str, run_cli: Run, tmp_path: Path
) -> None:
    workload(tmp_path, "one")
    path = tmp_path / "sweep.yaml"
    path.write_text(f"version: 1\nkind: sweep\nname: grid\nworkloads: {written}", encoding="utf-8")
    done = run_cli("sweep", str(path), "--results", str(tmp_path / "out.csv"))
    assert done.code == 2 and message in done.stderr, done.stderr


def test_the_example_sweep_is_read() -> None:
    sweep = load_sweep(ROOT / "examples" / "sweep.yaml").sweep
    assert len(sweep.workloads) >= 3 and sweep.days and sweep.scenarios


def test_a_cell_without_a_plan_is_a_row(run_cli: Run, tmp_path: Path) -> None:
    workload(tmp_path, "late", SMALL.replace("deadline: 30d", "deadline: 1m"))
    workload(tmp_path, "unknown", SMALL.replace("lambda", "nimbus"))
    results = tmp_path / "out.csv"
    said = run_cli("sweep", str(tmp_path), *DAY, "--results", str(results))
    assert said.code == 2
    rows = list(csv.DictReader(io.StringIO(results.read_text(encoding="utf-8"))))
    assert [row["status"] for row in rows] == ["infeasible", "refused"]
    assert "deadline" in rows[0]["needs"] and "nimbus" in rows[1]["message"]
    assert "REFUSED" in said.stdout and "NO PLAN" in said.stdout
    assert "$0" not in said.stdout  # no plan is not a plan that costs nothing


def test_a_finished_cell_is_not_planned_again(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, results = workload(tmp_path, "one"), tmp_path / "out.csv"
    command = ("sweep", str(one), *DAY, "--results", str(results))
    assert run_cli(*command).code == 0
    first = results.read_bytes()
    results.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("planner.workloads.answer.optimize", lambda *_, **__: pytest.fail("planned again"))
        assert run_cli(*command).code == 0
    assert results.read_bytes() == first
    one.write_text(one.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    assert run_cli(*command).code == 0  # another file: another question
    assert results.read_bytes() != first


def test_a_defect_that_one_workload_meets_is_a_row(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("planner.workloads.answer.optimize", broken)
    said = run_cli("sweep", str(workload(tmp_path, "one")), *DAY, "--results", str(tmp_path / "out.csv"))
    assert said.code == 1 and "internal error: ZeroDivisionError at test_sweep.py" in said.unwrapped


@pytest.mark.catalog("whole")  # one is as of a day before all snapshots
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--results", "{folder}/out.txt"), "results are written as .parquet or .csv"),
        (("--results", "{folder}/none/out.csv"), "there is no folder"),
        (("--results", "{folder}/out.csv", "--set", "constraints.dedline=2d"), "did you mean 'deadline'?"),
        (("--results", "{folder}/out.csv", "--address", "tcp://127.0.0.1:9"), "name --engine dask or ray"),
        (("--results", "{folder}/out.csv", "--as-of", "2001-01-01"), "no snapshot not after 2001-01-01"),
    ],
)
def test_bad_input_is_named_before_any_search(
    arguments: tuple[str, ...], message: str, run_cli: Run, tmp_path: Path
) -> None:
    one = workload(tmp_path, "one")
    said = run_cli("sweep", str(one), *(text.format(folder=tmp_path) for text in arguments))
    assert said.code in (2, 4) and message in " ".join(said.stderr.split())


def test_a_worker_with_other_prices_is_refused(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.workloads.sweeps import cells

    asked = cells.source_of

    def other(*args: Any, **given: Any) -> Any:
        from dataclasses import replace

        return replace(asked(*args, **given), catalog_sha256="x")

    monkeypatch.setattr(cells, "source_of", other)
    said = run_cli("sweep", str(workload(tmp_path, "one")), *DAY, "--results", str(tmp_path / "out.csv"))
    assert said.code == 2 and "has other prices of 2026-11-20" in said.stderr


def test_each_sweep_of_a_process_reads_the_prices_of_its_time(
    run_cli: Run, tmp_path: Path, small_catalog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, results = str(workload(tmp_path, "one")), []
    for number, folder in enumerate((str(small_catalog), "", str(small_catalog))):
        monkeypatch.setenv("PLANNER_CATALOG_DIR", folder)
        out = tmp_path / f"{number}.csv"
        said = run_cli("sweep", one, *DAY, "--results", str(out))
        assert said.code == 0, said.stderr
        results.append(out.read_text(encoding="utf-8"))
    assert results[0] == results[2] != results[1]


ENGINES = [
    pytest.param("dask", marks=pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None, reason="the extra 'dask' is not installed")),
    pytest.param("ray", marks=pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="the extra 'ray' is not installed")),
]  # fmt: skip


@pytest.fixture(scope="module")
def local_results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A folder of workloads and the results of this process alone."""
    folder = tmp_path_factory.mktemp("engines")
    for name in ("a", "b", "c"):
        workload(folder, name)
    results = folder / "local.parquet"
    from planner.cli import main

    assert (
        main(["sweep", str(folder), *DAY, "--results", str(results), "-o", "csv", "--out", os.devnull]) == 0
    )
    return folder, results.read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_same_bytes(
    engine: str, local_results: tuple[Path, bytes], tmp_path: Path
) -> None:
    """On two workers of this machine; in a process of its own, because an engine's processes are the program's."""
    folder, expected = local_results
    results = tmp_path / "out.parquet"
    command = [sys.executable, "-m", "planner", "sweep", str(folder), *DAY, "--results", str(results),
               "--engine", engine, "--workers", "2"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert results.read_bytes() == expected
    used = {entry["value"]["worker"] for entry in _entries(results)}
    assert len(used) >= 1 and str(os.getpid()) not in used


def _entries(results: Path) -> list[dict[str, Any]]:
    parts = results.with_name(f"{results.name}.parts").glob("part-*.jsonl")
    return [json.loads(line) for part in parts for line in part.read_text(encoding="utf-8").splitlines()]


@pytest.mark.signals
def test_a_killed_sweep_goes_on(local_results: tuple[Path, bytes], tmp_path: Path) -> None:
    """The whole program is killed after its first part; the same command then plans the rest."""
    folder, expected = local_results
    results = tmp_path / "out.parquet"
    command = [sys.executable, "-c", _SLOW, "sweep", str(folder), *DAY, "--results", str(results)]
    with subprocess.Popen(command) as running:
        parts = results.with_name(f"{results.name}.parts")
        while not list(parts.glob("part-*.jsonl")) and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
    assert len(_entries(results)) == 1 and not results.exists()
    from planner.cli import main

    assert main([*command[3:], "-o", "csv", "--out", os.devnull]) == 0
    assert results.read_bytes() == expected and len(_entries(results)) == 3


_SLOW = """
import sys, time
import planner.engines.resume as resume
resume.KEEP_EVERY_S = 0.0
add = resume.Parts.add
def slow(self, key, value):
    add(self, key, value)
    time.sleep(600.0)  # until it is killed
resume.Parts.add = slow
from planner.cli import main
sys.exit(main(sys.argv[1:]))
"""
