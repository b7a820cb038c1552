"""Estimates and calibrations as text: golden files of made-up figures, no width exceeded, hostile names disarmed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.calibration.correction import Predicted
from planner.calibration.store import Calibration
from planner.estimation.calibrate_report import build_report as calibration_report
from planner.estimation.compare import Calibrated
from planner.estimation.report import build_report
from planner.estimation.values import (
    Estimate,
    Host,
    Interval,
    Loading,
    Memory,
    Priced,
    Prices,
    Remedy,
    RunTotals,
)
from planner.market.machines import Machine
from planner.performance.search_explain import LayoutReport, RankedLayout
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec
from planner.plan.layout import Layout
from planner.render import render_answer
from planner.render.model import Answer
from planner.render.table import BAR_FULL, BAR_PARTS
from planner.render.terminal import in_encoding
from planner.render.text import display_width

Golden = Callable[[str, str], None]
MACHINE = Machine("aws", "p4d.24xlarge", "a100-40gb-sxm", 8.0, 0, 0)
LAYOUT = Layout(2, 1, 1, 16, 1, 2, 16, "selective")
OTHER = RankedLayout("tensor 4, data 8, micro-batch 4 x 16, ZeRO 1, no recompute", 4.4, 0.1, 33.0,
                     (("tensor, context and expert traffic", 0.41), ("optimizer", 0.01)))  # fmt: skip
SEEN = LayoutReport(32, 36.8, 20, 1, 2, 3, 396, 127, 268, OTHER, (OTHER,), replace(OTHER, over_best_ratio=-0.05), None,
                    None, None)  # fmt: skip
GOOD = Estimate(
    machine=MACHINE, nodes=4, unit="tokens", units_per_step=512 * 8192, precision="bf16", stack="compiled", reason="",
    layout=LAYOUT, step_s=Interval(40.0, 28.8, 55.4), mfu=0.541, hfu=0.577,
    breakdown_s={"compute": 36.0, "memory_bound": 2.6, "tp_comm": 1.0, "pp_comm": 0.0, "bubble": 0.0, "dp_comm": 0.39,
                 "optimizer": 0.009, "data_loading": 0.0, "fixed": 0.001},
    limited_by="compute",
    memory=Memory(34.3, 39.4, 36.8, {"weights": 0.9, "optimizer": 1.9, "activations": 30.0, "runtime": 1.5}, 0.148),
    loading=Loading(0.00084, 0.000021, 1.0), host=Host(26.2, 1152.0, None, 745.0), learned_factor=1.11, calibration="",
    remedy=None, others=SEEN,
)  # fmt: skip
QUOTE = Priced("on_demand", "aws", "us-east-2", "use2-az1", 21.957642, 4, "list", "2026-07", "a catalog")
GOOD = replace(
    GOOD, prices=Prices(QUOTE, replace(QUOTE, option="spot", usd_per_hour=5.2, basis="derived", source="a band")),
    run=RunTotals(
        1e22, 32, 640.0, 12.8, 230.4, 16.5, 0.3, Interval(900.0, 600.0, 1500.0), Interval(0.71, 0.63, 0.75), 4.0, 1.5,
    ),
)  # fmt: skip
BAD = replace(
    GOOD, run=None, prices=Prices(None, None), layout=None, step_s=None,
    reason="no layout with the parts that are fixed fits in accelerator memory", mfu=None, hfu=None,
    breakdown_s={}, limited_by="", loading=None, nodes=1,
    memory=Memory(52.5, 39.4, 36.8, {}, 0.974),
    remedy=Remedy(LAYOUT, 2, ("recompute", "tensor_parallel"), 11_500.0),
    others=replace(SEEN, offload_gib=20.4, host_gib=244.0, offload=("offload_optimizer",)),
    calibration="1 measurement of this model on ampere: measured / predicted step time 1.03",
)  # fmt: skip
CALIBRATED = Calibrated(
    Calibration(
        ModelSpec("llama-3-8b", ModelFamily.TRANSFORMER, 8e9), TrainingSpec(512, 8192, "bf16"), {},
        {"provider": "aws", "instance_type": "p4d.24xlarge", "accelerator": "a100-40gb-sxm", "nodes": 4}, 45.7, 0.03,
        {"kind": "megatron", "source": "run.log", "steps_used": 60, "steps_dropped": 10, "mad_s": 0.18},
        "2026-11-20T12:00",
    ),
    Predicted(40.0, 0.32, 0.541, "", ()), MACHINE, "tokens", 512 * 8192.0, ("profiling itself slows the steps",),
)  # fmt: skip
AFTER = Interval(45.6, 44.1, 47.2)


@pytest.mark.parametrize("fmt", ["table", "json", "csv", "yaml", "md"])
def test_an_estimate_in_every_format(check_golden: Golden, fmt: str) -> None:
    check_golden(f"estimate/one.{fmt}.txt", unversioned(render_answer(build_report("llama", [GOOD]), fmt)))


@pytest.mark.parametrize(("name", "items"), [("misfit", [BAD]), ("several", [GOOD, BAD])])
def test_other_estimates_as_text(check_golden: Golden, name: str, items: list[Estimate]) -> None:
    text = render_answer(
        build_report("llama", items, ["3 x p4d.24xlarge left out: tp=3 divides nothing"]), "table"
    )
    check_golden(f"estimate/{name}.txt", text)


@pytest.mark.parametrize("fmt", ["table", "json", "csv", "yaml", "md"])
def test_a_calibration_in_every_format(check_golden: Golden, fmt: str) -> None:
    report = calibration_report("llama", CALIBRATED, AFTER, "data/calibrations/llama.json", False)
    check_golden(f"calibrate/one.{fmt}.txt", unversioned(render_answer(report, fmt)))


def unversioned(text: str) -> str:
    import planner

    return text.replace(planner.__version__, "VERSION")


def every_report() -> list[Answer]:
    trial = calibration_report("llama", CALIBRATED, AFTER, "", False)
    return [build_report("llama", items) for items in ([GOOD], [BAD], [GOOD, BAD])] + [trial]


@pytest.mark.parametrize("width", [40, 60, 79, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for report in every_report():
        lines = render_answer(report, "table", width=width).splitlines()
        assert max(display_width(line) for line in lines) <= width


def test_a_run_of_steps_alone_names_nothing_beside_them() -> None:
    wall, share = Interval(641.3, 600.0, 700.0), Interval(1.0, 0.9, 1.0)
    run = RunTotals(1e22, 32, 640.0, 0.0, 0.0, 1.0, 0.3, wall, share, 4.0, 1.5)
    text = render_answer(build_report("llama", [replace(GOOD, run=run)]), "table")
    notes = [line for line in text.splitlines() if "whole run" in line]
    assert notes == ["! whole run: training steps 640 h (>99 %)"]


def test_bars_are_as_long_as_their_share() -> None:
    lines = render_answer(build_report("llama", [GOOD], details=("all",)), "table").splitlines()
    bars: dict[str, int] = {}
    for line in lines:
        cells = line.split("  ")
        if cells[-1].strip() and set(cells[-1].strip()) <= {BAR_FULL, *BAR_PARTS}:
            bars[line.strip().split("  ")[0]] = len(cells[-1].strip())
    assert bars["matrix products, attention"] > 5 * bars["memory-bound, launches"] > 0
    assert "pipeline bubble" not in bars


def test_colour_only_where_asked_and_ascii_where_the_stream_is() -> None:
    report = build_report("llama", [GOOD], details=("all",))
    assert "\x1b" not in render_answer(report, "table")
    assert "\x1b[1m" in render_answer(report, "table", color=True)
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert in_encoding(render_answer(report, "table"), narrow).isascii()
    wide = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert BAR_FULL in in_encoding(render_answer(report, "table"), wide)


@pytest.mark.parametrize("fmt", ["table", "json", "csv", "yaml", "md"])
def test_hostile_names_are_disarmed(fmt: str) -> None:
    evil: Any = replace(MACHINE, instance_type="=cmd|' /C calc'!A0<script>\x1b[31m")
    text = render_answer(build_report("=1+1<b>\x1b[2J", [replace(GOOD, machine=evil)]), fmt)
    assert "\x1b" not in text
    if fmt == "csv":
        assert not any(cell.startswith("=") for cell in text.split(","))
    if fmt == "md":
        assert "<script>" not in text and "<b>" not in text
