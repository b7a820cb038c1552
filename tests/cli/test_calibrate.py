"""`planner calibrate`: a run of one's own changes the predictions that follow, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_optimize import write
from tests.conftest import ROOT, Run
from tests.schema_check import schema_faults

FIXTURES = ROOT / "tests" / "fixtures" / "calibration"
SCHEMA = json.loads((ROOT / "planner/data/schemas/calibration.v1.json").read_text())
WHERE = ("--instance-type", "p4d.24xlarge")
TRAINING = {"tokens": 1e9, "global_batch": 16, "sequence_length": 2048, "precision": "bf16"}


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A workload, and a data directory of its own."""
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    return write(tmp_path, model={"preset": "llama-3-8b"}, training=TRAINING)


def predicted(run_cli: Run, workload: str, *args: str) -> dict[str, Any]:
    done = run_cli("estimate", workload, *WHERE, "-o", "json", *args)
    assert done.code == 0, done.stderr
    (one,) = json.loads(done.stdout)["estimates"]
    return dict(one)


def steps_of(folder: Path, seconds: float) -> str:
    path = folder / "steps.csv"
    rows = [3 * seconds, *[seconds * (1 + 0.01 * (k % 3 - 1)) for k in range(20)]]
    path.write_text("step,seconds\n" + "".join(f"{k},{value:.6f}\n" for k, value in enumerate(rows)))
    return str(path)


def width(one: dict[str, Any]) -> float:
    return float(one["step_time_high_s"] / one["step_time_low_s"])


def test_a_run_far_off_is_worded_in_times(run_cli: Run, workload: str, tmp_path: Path) -> None:
    slow = steps_of(tmp_path, 84.0 * predicted(run_cli, workload)["step_time_s"])
    said = run_cli("calibrate", workload, slow, *WHERE, "--dry-run").stdout
    assert "measured 84 times as slow as predicted" in said


def test_steps_of_phases_are_corrected_as_their_mean_is(run_cli: Run, workload: str, tmp_path: Path) -> None:
    """Launch files count the steps between checkpoints by them."""
    run_cli(
        "calibrate", workload, steps_of(tmp_path, 1.5 * predicted(run_cli, workload)["step_time_s"]), *WHERE
    )
    phases = [{"share": 0.5, "sequence_length": 512}, {"share": 0.5}]
    only = {"instance_types": {"allow": [WHERE[1]]}}
    (tmp_path / "phased").mkdir()
    file = write(tmp_path / "phased", model={"preset": "llama-3-8b"}, training={**TRAINING, "phases": phases},
                 constraints=only)  # fmt: skip
    plan = json.loads(run_cli("optimize", file, "-o", "json").stdout)
    steps = [0.5e9 / (16 * length) for length in (512, 2048)]
    mean = sum(x * y for x, y in zip(steps, plan["phase_step_times_s"], strict=True)) / sum(steps)
    assert mean == pytest.approx(plan["performance"]["step_time_s"], rel=0.01)


def test_a_run_moves_the_prediction_to_the_measurement(run_cli: Run, workload: str, tmp_path: Path) -> None:
    before = predicted(run_cli, workload)
    assert before["calibration"] is None
    done = run_cli("calibrate", workload, steps_of(tmp_path, 1.3 * before["step_time_s"]), *WHERE)
    assert (done.code, done.stderr) == (0, "")
    assert "measured 30.0 % slower than predicted" in done.stdout
    assert "20 steps used, 1 of warm-up skipped" in done.stdout
    after = predicted(run_cli, workload)
    assert after["step_time_s"] == pytest.approx(1.3 * before["step_time_s"], rel=0.02)
    assert width(after) < 0.5 * width(before) + 0.5
    assert "1 measurement of this model on ampere" in after["calibration"]
    assert after["layout"] == before["layout"]
    assert predicted(run_cli, workload, "--no-calibration") == before


def test_the_file_follows_its_schema_and_is_used_from_anywhere(
    run_cli: Run, workload: str, tmp_path: Path
) -> None:
    seconds = 1.2 * predicted(run_cli, workload)["step_time_s"]
    out = tmp_path / "kept" / "mine.json"
    assert run_cli("calibrate", workload, steps_of(tmp_path, seconds), *WHERE, "--out", str(out)).code == 0
    assert schema_faults(json.loads(out.read_text()), SCHEMA) == []
    assert predicted(run_cli, workload)["calibration"] is None
    folder = tmp_path / "data" / "calibrations"
    folder.mkdir(parents=True)
    (folder / "anything.json").write_text(out.read_text())
    assert predicted(run_cli, workload)["step_time_s"] == pytest.approx(seconds, rel=0.02)


def test_a_trial_writes_nothing(run_cli: Run, workload: str, tmp_path: Path) -> None:
    seconds = 1.2 * predicted(run_cli, workload)["step_time_s"]
    done = run_cli("calibrate", workload, steps_of(tmp_path, seconds), *WHERE, "--dry-run", "-o", "json")
    assert done.code == 0
    answer = json.loads(done.stdout)
    assert answer["file"] is None and answer["measured_over_predicted_ratio"] == pytest.approx(1.2, rel=0.01)
    assert answer["calibrated_step_time_s"] == pytest.approx(seconds, rel=0.02)
    assert not (tmp_path / "data" / "calibrations").exists()


@pytest.mark.parametrize("fmt", ["json", "csv", "yaml", "md"])
def test_every_format_gives_the_ratio(run_cli: Run, workload: str, fmt: str) -> None:
    log = FIXTURES / "megatron.log"
    done = run_cli("calibrate", workload, str(log), *WHERE, "--dry-run", "-o", fmt)
    assert (done.code, done.stderr) == (0, "")
    assert "megatron" in done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_every_kind_of_log_calibrates(run_cli: Run, workload: str, name: str) -> None:
    done = run_cli("calibrate", workload, str(FIXTURES / name), *WHERE, "--dry-run", "-o", "json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["measured_step_time_s"] == pytest.approx(2.0, rel=0.11)


def test_one_line_of_the_workload_is_enough(run_cli: Run, workload: str, tmp_path: Path) -> None:
    before = predicted(run_cli, workload)
    speed = 0.8 * before["throughput_per_s"]
    path = write(tmp_path, model={"preset": "llama-3-8b"}, training=TRAINING,
                 measured=f"{speed:.0f} tokens/s on 1 x p4d.24xlarge")  # fmt: skip
    after = predicted(run_cli, path)
    assert after["throughput_per_s"] == pytest.approx(speed, rel=0.05)
    assert after["throughput_per_s"] < before["throughput_per_s"]
    asked = ("optimize", path, "--as-of", "2026-11-20", "--details", "assumptions")
    plan = run_cli(*asked)
    assert plan.code == 0 and "calibration.ampere" in plan.stdout
    assert "calibration.ampere" not in run_cli(*asked, "--no-calibration").stdout
    kept = run_cli("calibrate", path, "-o", "json")
    assert kept.code == 0 and json.loads(kept.stdout)["steps_used"] is None
    again = predicted(run_cli, path)  # stored too, the line still counts once
    assert again["calibration"] == after["calibration"]
    assert width(again) == pytest.approx(width(after), rel=1e-3)


def test_a_run_on_cards_without_bf16_counts_in_fp16(run_cli: Run, workload: str, tmp_path: Path) -> None:
    card, where = "g4dn.xlarge", ("--instance-type", "g4dn.xlarge")
    training = {"samples": 1e6, "global_batch": 256, "sequence_length": 128}
    sections: dict[str, Any] = {"model": {"preset": "bert-large"}, "training": training}
    path = write(tmp_path, **sections)
    before = json.loads(run_cli("estimate", path, *where, "-o", "json").stdout)["estimates"][0]
    speed = f"{0.8 * before['throughput_per_s']:.0f} tokens/s"
    kept = run_cli("calibrate", path, *where, "--measured", speed, "-o", "json")
    assert kept.code == 0, kept.stderr
    assert json.loads(kept.stdout)["precision"] == before["precision"] == "fp16"
    after = json.loads(run_cli("estimate", path, *where, "-o", "json").stdout)["estimates"][0]
    assert after["throughput_per_s"] == pytest.approx(0.8 * before["throughput_per_s"], rel=0.05)
    line = run_cli("calibrate", write(tmp_path, **sections, measured=f"{speed} on 1 x {card}"), "-o", "json")
    assert line.code == 0, line.stderr


def test_accelerators_may_be_named_instead_of_machines(run_cli: Run, workload: str, tmp_path: Path) -> None:
    path = write(tmp_path, model={"preset": "llama-3-8b"}, training=TRAINING,
                 measured="12k tokens/s on 16 x a100-40gb-sxm")  # fmt: skip
    done = run_cli("calibrate", path, "--dry-run", "-o", "json")
    assert done.code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["nodes"] * 8 == 16 or answer["nodes"] == 1


def test_damaged_calibrations_are_named_on_the_plan(run_cli: Run, workload: str, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "calibrations"
    folder.mkdir(parents=True)
    (folder / "broken.json").write_text("{")
    plan = run_cli("optimize", workload, "--as-of", "2026-11-20")
    assert plan.code == 0 and "broken.json" in plan.stdout
    assert "broken.json" in run_cli("estimate", workload, *WHERE).stdout


def test_a_strange_measurement_is_doubted(run_cli: Run, workload: str, tmp_path: Path) -> None:
    seconds = 9 * predicted(run_cli, workload)["step_time_s"]
    done = run_cli("calibrate", workload, steps_of(tmp_path, seconds), *WHERE, "--dry-run")
    assert done.code == 0 and "far outside the prediction's interval" in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "nothing was measured"),
        (("steps.csv",), "--instance-type is needed"),
        (("steps.csv", "--instance-type", "p4d.24xlage"), "did you mean 'p4d.24xlarge'?"),
        (("steps.csv", *WHERE, "--measured", "5 tokens/s"), "not both"),
        (("absent.csv", *WHERE), "absent.csv: no such file"),
        (("steps.csv", *WHERE, "--format", "megatron"), "--log-interval 1"),
        (("steps.csv", *WHERE, "--layout", "tp=3"), "tp=3 does not divide"),
        (("steps.csv", *WHERE, "--skip", "99"), "lower --skip"),
        (("torch_trace.json", *WHERE, "--nodes", "2"), "the run had 8 accelerators, 2 x p4d.24xlarge has 16"),
        (("--measured", "fast", *WHERE), "is not a measured throughput: 'fast'"),
        (("--measured", "5 tokens/s on 8 x h100", *WHERE), "say where by --instance-type"),
        (("--measured", "900M tokens/s", *WHERE), "times the accelerators' peak"),
    ],
)
def test_bad_measurements_are_refused(run_cli: Run, workload: str, args: tuple[str, ...], words: str) -> None:
    at = [str(FIXTURES / item) if item.endswith((".csv", ".json")) else item for item in args]
    done = run_cli("calibrate", workload, *at)
    assert (done.code, done.stdout) == (2, "")
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_log_of_another_batch_is_refused(run_cli: Run, workload: str, tmp_path: Path) -> None:
    other = write(tmp_path, model={"preset": "llama-3-8b"}, training={**TRAINING, "global_batch": 32})
    done = run_cli("calibrate", other, str(FIXTURES / "megatron.log"), *WHERE)
    assert done.code == 2 and "the log's global batch is 16, the workload's 32" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fast", "is not a measured throughput: 'fast'; write like 12500 tokens/s on 8 x h100-80gb-sxm"),
        ("12500 tokens/s", "is not a measured throughput"),
        ("0 tokens/s on 8 x a100-40gb-sxm", "must be above zero"),
        ("5 tokens/s on 8 x a100-41gb-sxm", "did you mean 'a100-40gb-sxm'?"),
        ("5 tokens/s on 7 x p4d.24xlage", "did you mean 'p4d.24xlarge'?"),
    ],
)
def test_a_wrong_line_is_an_input_error_with_its_place(
    run_cli: Run, tmp_path: Path, line: str, words: str
) -> None:
    path = write(tmp_path, model={"preset": "llama-3-8b"}, training=TRAINING, measured=line)
    done = run_cli("optimize", path, "--as-of", "2026-11-20")
    assert (done.code, done.stdout) == (2, "")
    assert words in done.stderr and "w.yaml:1:" in done.stderr


def test_a_line_beyond_the_peak_is_warned_of_and_clipped(run_cli: Run, workload: str, tmp_path: Path) -> None:
    path = write(tmp_path, model={"preset": "llama-3-8b"}, training=TRAINING,
                 measured="900M tokens/s on 1 x p4d.24xlarge")  # fmt: skip
    one = predicted(run_cli, path)
    assert one["mfu_ratio"] <= 1.0 + 1e-9
    assert "times the accelerators' peak" in run_cli("estimate", path, *WHERE).stdout


def test_models_without_tokens_refuse_tokens(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path, model={"preset": "resnet-50"}, training={"samples": 1e6, "global_batch": 256},
                 measured="5 tokens/s on 8 x a100-40gb-sxm")  # fmt: skip
    done = run_cli("optimize", path)
    assert done.code == 2 and "write samples/s" in done.stderr


def test_planning_imports_no_calibration_where_there_is_none(run_process: Run, workload: str) -> None:
    code = (
        "import sys\nfrom planner.cli import main\n"
        f"main(['optimize', {workload!r}, '--as-of', '2026-11-20', '-o', 'json', '--out', '/dev/null'])\n"
        "print(sorted(name for name in sys.modules if name.startswith('planner.calibration')))"
    )
    done = run_process("-c", code, python=True)
    assert done.stdout.strip() == "['planner.calibration', 'planner.calibration.find']", done.stderr
