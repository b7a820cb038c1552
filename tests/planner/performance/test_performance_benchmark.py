"""The benchmark reads measured rows honestly: inputs only, every skip counted, accuracy where the data is present."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.accelerators import find_device, load_devices
from benchmarks.error_figures import errors
from benchmarks.fit_intervals import base_width
from benchmarks.fit_performance import NEVER_FITTED, fit
from benchmarks.held_out import fold_labels, held_out
from benchmarks.measured import (
    Case,
    hardware_of,
    load_cases,
    parse_gbps,
    read_networks,
    usual_dimensions,
)
from benchmarks.points import COLUMNS, load_rows, write_points
from benchmarks.predict import build_groups, hardware_table, layouts_of, predict, settle, throughput
from benchmarks.residual_plots import write_plots
from benchmarks.residuals import by_property
from benchmarks.rows import read_csv
from benchmarks.throughput import Scored, main, score_file
from catalogs.tables.table import Floats
from planner.performance.constants import Constants, load_constants
from planner.performance.search import estimate_shapes
from tests.draws import draws

ROOT = Path(__file__).resolve().parents[3]
DEV = ROOT.parent / "shared" / "performance" / "dev.csv"
ROW = {
    "row_id": "a", "quality": "ok", "source": "somebody new", "framework": "PyTorch", "family": "transformer",
    "model_name": "GPT 7B", "params": "6.7e9", "layers": "32", "hidden": "4096", "heads": "32", "vocab": "50257",
    "seq_len": "2048", "global_batch": "128", "micro_batch": "4", "precision": "bf16", "gpu": "A100-SXM-80",
    "gpus": "8", "gpus_per_node": "8", "interconnect": "NVLink; IB 8x200Gbps", "tp": "1", "pp": "1", "dp": "8",
    "zero_stage": "fsdp3", "activation_ckpt": "full", "metric": "tokens_per_s", "value": "25000", "notes": "",
}  # fmt: skip


def predicted(**change: str) -> float:
    cases, skipped = load_cases([{**ROW, **change}], load_devices())
    assert not skipped
    cases, dropped = settle(cases, load_constants())
    assert not dropped
    return float(predict(build_groups(cases), len(cases), load_constants())["value"][0])


def test_a_row_never_seen_is_predicted_sensibly() -> None:
    assert 15_000 < predicted() < 45_000


def test_what_was_measured_never_changes_the_prediction() -> None:
    assert predicted(value="1", notes="1 token/s") == predicted()
    assert predicted(metric="samples_per_s") == pytest.approx(predicted() / 2048)


def test_a_missing_layout_and_batch_are_found() -> None:
    assert predicted(tp="", pp="", dp="", micro_batch="") > 0
    assert predicted(micro_batch="", global_batch="") > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metric": "oom"}, "metric: oom"),
        ({"quality": "suspect: units"}, "quality: suspect"),
        ({"family": "rnn"}, "family: rnn"),
        ({"gpu": "Abacus"}, "accelerator: Abacus"),
        ({"family": "transformer-moe", "layers": ""}, "transformer dimensions not stated"),
        ({"family": "transformer-moe"}, "experts not stated"),
        ({"family": "hybrid-moe"}, "hybrid of attention and state-space layers"),
        ({"value": "0"}, "no value"),
        ({"value": "nan"}, "no value"),
        ({"quality": "caution: cpu offload"}, "offload to the host: time not modelled"),
        ({"seq_len": ""}, "sequence length not stated"),
        ({"params": ""}, "parameters not stated"),
        ({"family": "cnn"}, "FLOPs per sample not stated (cnn)"),
        ({"precision": "int4"}, "precision: int4"),
        ({"precision": "nvfp4"}, "no fp4 peak of the accelerator"),
        ({"gpus": ""}, "accelerator count not stated"),
    ],
)
def test_every_row_left_out_has_a_reason(change: dict[str, str], reason: str) -> None:
    cases, skipped = load_cases([{**ROW, **change}], load_devices())
    assert not cases and dict(skipped) == {reason: 1}


def test_a_size_alone_is_enough_for_a_dense_model() -> None:
    assert predicted(layers="", hidden="", heads="") == pytest.approx(predicted(), rel=0.2)
    assert usual_dimensions(175e9)[1] == pytest.approx(12288, rel=0.05)


def test_flops_metrics_are_the_same_prediction_in_other_units() -> None:
    flops = predicted(metric="tflops_per_gpu", activation_ckpt="full")
    assert predicted(metric="mfu", value="0.4", activation_ckpt="full") == pytest.approx(flops / 312.0)
    assert predicted(metric="hw_tflops_per_gpu", activation_ckpt="full") == pytest.approx(flops * 4.0 / 3.0)
    assert predicted(metric="tflops_per_gpu", seq_len="") == pytest.approx(predicted(metric="tflops_per_gpu"))


ODD = st.sampled_from(
    ["", "0", "-1", "nan", "inf", "1e400", "1e30", "0.3", "7", "abc", "8.0", "fsdp", "x;y|z", "nvfp4"]
)
CELLS = st.dictionaries(
    st.sampled_from([name for name in ROW if name != "row_id"]), ODD, min_size=1, max_size=4
)


@draws(150)
@given(CELLS)
@example({"gpus": "1e30", "tp": ""})  # more nodes than an integer holds
@example({"layers": "1e30", "tp": ""})  # more stages than memory holds
@example({"global_batch": "0.3", "tp": ""})  # no whole sample in a step
def test_odd_cells_give_a_number_or_a_reason_never_a_crash(change: dict[str, str]) -> None:
    cases, skipped = load_cases([{**ROW, **change}], load_devices())
    cases, dropped = settle(cases, load_constants())
    assert len(cases) + sum(skipped.values()) + sum(dropped.values()) == 1
    assert all(reason for reason in (*skipped, *dropped))
    if cases:
        with np.errstate(all="ignore"):
            assert predict(build_groups(cases), 1, load_constants())["value"].shape == (1,)


def test_the_bundled_points_are_usable_rows_with_their_sources() -> None:
    rows = load_rows(None)
    cases, skipped = load_cases(rows, load_devices())
    assert len(cases) == len(rows) > 2000 and not skipped
    assert all(row["source"] and row["url_or_repo_path"] for row in rows)


def test_names_of_models_are_read_however_their_words_are_joined() -> None:
    experts = {
        "family": "transformer-moe",
        "params": "117e9",
        "layers": "",
        "hidden": "",
        "heads": "",
        "vocab": "",
    }
    names = ("gpt-oss-120b", "GPT-OSS-120B", "GPT OSS 120B", "gpt_oss_120b", "openai/gpt-oss-120b")
    cases, skipped = load_cases([{**ROW, **experts, "model_name": name} for name in names], load_devices())
    assert not skipped
    assert {(case.model.layers, case.model.experts, case.model.hidden) for case in cases} == {(36, 128, 2880)}


def test_points_keep_what_a_prediction_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = dict.fromkeys(COLUMNS.values(), "")
    rows = [{**full, **ROW}, {**full, **ROW, "row_id": "b", "gpu": "Abacus"}]
    path = tmp_path / "points.csv.gz"
    assert write_points(rows, path) == 1
    first = path.read_bytes()
    write_points(rows, path)
    assert path.read_bytes() == first
    monkeypatch.setattr("benchmarks.points.POINTS", path)
    again = load_cases(load_rows(None), load_devices())[0]
    assert repr(again) == repr(load_cases(rows[:1], load_devices())[0])


def test_plots_hold_a_column_per_value_that_has_rows(tmp_path: Path) -> None:
    rows = [{**ROW, "row_id": str(n), "seq_len": "2048" if n % 2 else "4096"} for n in range(12)]
    cases, _ = settle(load_cases(rows, load_devices())[0], load_constants())
    measured = np.asarray([case.measured.value for case in cases])
    scored = Scored(cases, 1.1 * measured, np.ones(12), np.ones(12))
    written = {path.stem: path.read_text(encoding="utf-8") for path in write_plots(scored, tmp_path)}
    assert "vision-flops" not in written
    assert ">2k<" in written["attention"] and ">4k<" in written["attention"] and ">6<" in written["attention"]


def test_residual_tables_pool_rare_values() -> None:
    rows = [{**ROW, "row_id": str(n), "tp": "1" if n else "2", "dp": "8" if n else "4"} for n in range(12)]
    cases, _ = load_cases(rows, load_devices())
    table = by_property(cases, np.full(12, np.log(1.2)), lambda case: str((case.layout or {})["tp"]))
    assert table["1"][0] == 11 and table["(rare)"][0] == 1
    assert table["1"][2] == pytest.approx(20.0)


def test_folds_keep_workload_groups_whole_and_are_balanced() -> None:
    rows = [{**ROW, "row_id": str(n), "split_group": f"model {n % 7}"} for n in range(70)]
    cases, _ = load_cases(rows, load_devices())
    labels = fold_labels(cases, 3)
    fold_of: dict[str, set[str]] = {}
    for case, label in zip(cases, labels, strict=True):
        fold_of.setdefault(case.split_group, set()).add(label)
    assert all(len(folds) == 1 for folds in fold_of.values())
    sizes = [labels.count(label) for label in set(labels)]
    assert len(sizes) == 3 and max(sizes) - min(sizes) <= 10


def test_rows_that_are_left_out_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each label is predicted with constants of the other labels' rows. The figures are the benchmark's."""
    rows = [{**ROW, "row_id": str(n), "source": f"publisher {n % 3}"} for n in range(7)]
    cases, _ = load_cases(rows, load_devices())
    fitted: list[set[str]] = []

    def fit(rest: Sequence[Case], start: Constants, path: Path) -> Constants:
        fitted.append({case.row_id for case in rest})
        return start

    monkeypatch.setattr("benchmarks.held_out.fit", fit)
    labels = [f"fold {n % 3}" for n in range(7)]
    value = held_out(cases, labels, load_constants())
    assert fitted == [{"1", "2", "4", "5"}, {"0", "2", "3", "5", "6"}, {"0", "1", "3", "4", "6"}]
    assert value == pytest.approx(np.full(7, predicted()))


def test_a_fit_knows_how_wide_what_was_never_measured_is() -> None:
    cases, _ = load_cases([{**ROW, "row_id": str(n)} for n in range(3)], load_devices())
    fitted = fit(cases, load_constants())
    assert {name: fitted[name] for name in NEVER_FITTED} == {
        name: load_constants()[name] for name in NEVER_FITTED
    }
    assert throughput(build_groups(cases), len(cases), fitted) == pytest.approx(
        [case.measured.value for case in cases], rel=0.5
    )


@pytest.mark.parametrize(
    ("name", "link"), [("A100-SXM-80", "nvswitch"), ("A100-PCIe-80", "pcie"), ("A10", "pcie")]
)
def test_modules_are_linked_and_cards_are_not(name: str, link: str) -> None:
    device = find_device(load_devices(), name)
    assert device is not None
    # Tables of whole runs name an A100 by its memory alone.
    cell = {"interconnect": "", "gpu": name.replace("-SXM", "")}
    assert hardware_of(cell, device, 8, 8, None, read_networks())[0]["intra_node"] == link


@pytest.mark.parametrize(
    ("name", "per_node", "gbps", "joined"),
    [
        ("GB200", 4, 1600, 72),
        ("GB200", 64, 25600, 72),
        ("GB300", 64, 51200, 72),
        ("B300", 8, 6400, 8),
        ("H100-SXM", 8, 3200, 8),
    ],
)
def test_every_accelerator_of_a_rack_has_its_network(
    name: str, per_node: int, gbps: float, joined: int
) -> None:
    device = find_device(load_devices(), name)
    assert device is not None
    cell = {"interconnect": "NVLink5 NVL72 1800GB/s", "gpu": name}
    hardware, _ = hardware_of(cell, device, per_node, per_node, None, read_networks())
    assert hardware["internode_gbps"] == gbps
    assert np.fmax(hardware["link_domain_accelerators"], hardware["accelerator_count"]) == joined


@pytest.mark.parametrize(
    ("model", "gpus", "precision"),
    [
        ("Llama3-8B", "8", "fp4"),
        ("Llama3-8B", "72", "fp8"),
        ("Llama2-70B LoRA", "512", "fp8"),
        ("Llama3.1-405B", "512", "fp4"),
    ],
)
def test_a_round_of_mlperf_ran_in_the_precision_of_its_configurations(
    model: str, gpus: str, precision: str
) -> None:
    nvidia = {"source": "MLPerf Training v5.1 (NVIDIA)", "precision": "fp8/fp4/bf16 mixed", "gpu": "GB300"}
    cases, _ = load_cases([{**ROW, **nvidia, "model_name": model, "gpus": gpus}], load_devices())
    assert cases[0].training.precision == precision


def test_a_searched_layout_is_scored_with_its_virtual_stages() -> None:
    cases, _ = load_cases([{**ROW, "tp": "", "pp": "", "dp": "", "micro_batch": ""}], load_devices())
    (case,), _ = settle(cases, load_constants())
    assert case.layout is not None
    found = estimate_shapes(case.model, case.training, hardware_table([case]), [case.nodes]).row(0)
    assert case.layout["interleave"] == found["interleave"]
    staged = replace(case, layout={**case.layout, "pp": 8, "interleave": 4.0})
    assert layouts_of([staged]).interleave[0] == 4.0


def test_chips_of_a_pod_gather_sharded_weights_as_fast_as_they_compute() -> None:
    # MaxText publishes 0.5 to 0.7 of the peak for 64 to 1,024 billion parameters on v5p.
    assert 0.5 < predicted(
        source="MaxText", gpu="TPU v5p", gpus="1024", gpus_per_node="4", interconnect="ICI", model_name="MaxText",
        params="1.024e12", layers="128", hidden="24576", heads="192", global_batch="1024", micro_batch="1",
        tp="1", dp="1024", activation_ckpt="", metric="mfu", value="0.6",
    ) < 0.75  # fmt: skip


def test_the_interval_width_covers_what_it_promises() -> None:
    rng = np.random.default_rng(3)
    gap, thin = np.abs(rng.normal(0.0, 0.2, 1000)), rng.uniform(0.0, 0.2, 1000)
    width = base_width(gap, thin)
    assert np.mean(gap <= np.sqrt(width**2 + thin**2) + 1e-12) == pytest.approx(0.8, abs=0.002)


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("NVLink4 900GB/s; IB 8x400Gbps", 3200.0), ("OmniPath 4x100Gbps/node", 400.0), ("RoCE 1600Gbps node", 1600.0),
        ("NVLINK 3.0 | 2x ConnectX-6 IB HDR 200Gb/Sec", 400.0), ("NVLink", None), (" | ", None),
    ],
)  # fmt: skip
def test_network_speeds_are_read_from_descriptions(text: str, gbps: float | None) -> None:
    assert parse_gbps(text) == gbps


def test_the_command_prints_and_writes_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "rows.csv", tmp_path / "out.json"
    rows = [ROW, {**ROW, "row_id": "b", "metric": "oom"}, {**ROW, "row_id": "c", "gpu": "H100-SXM"}]
    with data.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    assert main(["--data", str(data), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "transformers" in printed and "metric: oom" in printed
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert figures["transformers"]["n"] == 2 and set(figures["rows"]) == {"a", "c"}
    median = figures["transformers"]["median"]
    assert main(["--data", str(data), "--at-most", str(median + 0.1), "0"]) == 0
    assert main(["--data", str(data), "--at-most", str(median - 0.1), "0"]) == 1


@pytest.mark.shared
@pytest.mark.skipif(not DEV.is_file(), reason="the measured rows are not beside the project")
def test_accuracy_with_the_bundled_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every fifth row; `python -m benchmarks.throughput` scores all of them, by the users' path too."""

    def nothing(held: Sequence[Case], *_: object) -> tuple[dict[str, Floats], None]:  # `test_users_path.py`
        return dict.fromkeys(("value", "spread"), np.full(len(held), np.nan)), None

    monkeypatch.setattr("benchmarks.throughput.predict_workloads", nothing)
    rows = read_csv(DEV)[::5]
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    scored, skipped = score_file(tmp_path / "rows.csv", leave_source_out=False)
    assert len(scored.cases) + sum(skipped.values()) == len(rows) > 700
    family = [case.kind == "transformer" for case in scored.cases]
    at = [p for p, yes in enumerate(family) if yes]
    rest = [p for p, yes in enumerate(family) if not yes]
    assert errors(scored.predicted[at], scored.measured[at])["median"] <= 9.0
    assert errors(scored.predicted[rest], scored.measured[rest])["median"] <= 10.0


def test_rows_without_ids_or_that_stand_twice_are_scored_one_by_one(tmp_path: Path) -> None:
    rows = [{**ROW, "row_id": ""}, {**ROW, "row_id": "a"}, {**ROW, "row_id": "a"}]
    lines = [",".join(ROW), *(",".join(f'"{cell}"' for cell in row.values()) for row in rows)]
    (tmp_path / "rows.csv").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert [row["row_id"] for row in load_rows(tmp_path / "rows.csv")] == ["line 2", "a", "a, line 4"]
    scored, skipped = score_file(tmp_path / "rows.csv")
    assert len(scored.cases) == 3 and not skipped


def test_columns_that_a_file_lacks_count_as_empty(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("row_id,metric,value\na,tokens_per_s,5\n", encoding="utf-8")
    scored, skipped = score_file(tmp_path / "rows.csv")
    assert not scored.cases and sum(skipped.values()) == 1


def test_accelerators_are_found_in_other_capitals_and_punctuation() -> None:
    assert predicted(gpu="a100 sxm 80") == predicted()
    assert load_cases([{**ROW, "gpu": "A100"}], load_devices())[1] == {"accelerator: A100": 1}


def test_four_bit_is_faster_than_eight_and_far_from_its_peak_ratio() -> None:
    eight, four = predicted(gpu="GB300", precision="fp8"), predicted(gpu="GB300", precision="nvfp4")
    assert eight < four < 2.0 * eight


@pytest.mark.parametrize("content", [b"", b"row_id,metric\n"], ids=["empty", "header alone"])
def test_a_file_without_rows_is_scored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    assert main(["--data", str(tmp_path / "rows.csv")]) == 0


def test_a_file_that_cannot_be_read_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "rows.csv", tmp_path, tmp_path / "absent.csv"):
        with pytest.raises(SystemExit) as raised:
            main(["--data", str(path)])
        assert raised.value.code == 2
        assert "cannot be read as CSV" in capsys.readouterr().err


def test_a_row_that_ran_in_tight_memory_is_predicted_all_the_same() -> None:
    tight = {
        "gpu": "A100-SXM-40",
        "layers": "80",
        "params": "16.3e9",
        "tp": "",
        "pp": "",
        "dp": "",
        "micro_batch": "",
    }
    risky = load_constants().replace({"memory.oom_limit": 0.05})
    cases, _ = load_cases([{**ROW, **tight}], load_devices())
    assert not estimate_shapes(
        cases[0].model, cases[0].training, hardware_table(cases), [1], constants=risky
    ).row(0)["fits"]
    settled, dropped = settle(cases, risky)
    assert len(settled) == 1 and not dropped
