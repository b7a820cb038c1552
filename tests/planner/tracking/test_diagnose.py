"""The bottleneck of logs whose truth is known: four drawn, two recorded, and some that cannot tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.tracking.causes import find_causes
from planner.tracking.diagnose import Diagnosis, diagnose
from planner.tracking.model import Progress, Rows
from planner.tracking.progress import read_progress
from planner.tracking.row_order import in_order, intervals_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tracking"
N = 300


def drawn(seconds: Floats, **columns: Floats) -> Progress:
    """A log whose steps take so long, with 3 % noise."""
    rng = np.random.default_rng(11)
    took = seconds * np.exp(0.03 * rng.standard_normal(len(seconds)))
    values = {
        "step": np.arange(1.0, len(took) + 1.0),
        "seconds": 1.7e9 + np.cumsum(took),
        "step_s": took,
        **columns,
    }
    return in_order(
        Rows("drawn.csv", "csv", {name: list(column) for name, column in values.items()}, [], True)
    )


def flat(value: float) -> Floats:
    return np.full(N, value)


def found_in(progress: Progress) -> Diagnosis:
    return diagnose(progress)


def test_steps_that_wait_for_data() -> None:
    found = found_in(drawn(flat(1.0), loader_s=flat(0.4), gpu_busy=flat(0.55), network_s=flat(0.05)))
    assert (
        found.bottleneck == "loader" and found.sure and found.causes[0].share == pytest.approx(0.4, abs=0.02)
    )


def test_steps_that_wait_for_the_network() -> None:
    found = found_in(drawn(flat(1.0), loader_s=flat(0.02), gpu_busy=flat(0.6), network_s=flat(0.45)))
    assert found.bottleneck == "network" and found.sure


def test_a_first_step_that_compiles_is_no_stall() -> None:
    seconds = np.full(12, 13.0)
    seconds[0] = 40.0
    assert not [cause for cause in found_in(drawn(seconds)).causes if cause.key == "checkpoint"]
    seconds[6] = 60.0  # one in the middle is
    assert found_in(drawn(seconds)).bottleneck == "checkpoint"


def test_pauses_for_checkpoints() -> None:
    seconds = np.where(np.arange(N) % 25 == 24, 8.0, 1.0)
    assert found_in(drawn(seconds)).bottleneck == "checkpoint"
    logged = found_in(drawn(seconds, checkpoint_s=np.where(seconds > 1.0, 7.0, 0.0)))
    assert logged.bottleneck == "checkpoint" and logged.sure


def test_gpus_that_are_slowed() -> None:
    seconds = np.where(np.arange(N) > 150, 1.3, 1.0)
    found = found_in(drawn(seconds, clock_mhz=1980.0 / seconds, gpu_busy=flat(0.97), loader_s=flat(0.01)))
    assert found.bottleneck == "throttling" and found.sure
    assert found_in(drawn(flat(1.0), throttled=flat(0.3))).bottleneck == "throttling"


def test_one_slow_host(tmp_path: Path) -> None:
    rows = ["step,time,host,step_seconds"]
    for step in range(1, 60):
        rows += [f"{step},{1.5 * step},n{host},{1.5 if host == 3 else 1.0}" for host in range(8)]
    path = tmp_path / "hosts.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    found = diagnose(read_progress(path))
    assert found.bottleneck == "straggler" and "n3" in found.causes[0].evidence and len(found.hosts) == 8


def test_steps_that_compute() -> None:
    found = found_in(drawn(flat(1.0), loader_s=flat(0.02), gpu_busy=flat(0.97), network_s=flat(0.05)))
    assert found.bottleneck == "compute" and found.sure


@pytest.mark.parametrize(("name", "truth"), [("loader-bound", "loader"), ("cpu-bound", "compute")])
def test_steps_recorded_on_a_real_machine(name: str, truth: str) -> None:
    """Written by examples/record_steps.py on two shared cores, one thread; docs/track.md has the commands."""
    found = diagnose(read_progress(FIXTURES / f"{name}.csv"))
    assert found.bottleneck == truth and found.sure


def test_a_log_that_cannot_tell_says_so_and_what_to_log() -> None:
    found = found_in(drawn(flat(1.0)))
    assert found.bottleneck == "unknown" and not found.sure and "loader_seconds" in found.missing
    assert "cannot tell" in str(found)
    idle = found_in(drawn(flat(1.0), gpu_busy=flat(0.4)))
    assert idle.bottleneck == "gpu_idle" and not idle.sure  # idle, but nothing says why


def test_steps_that_become_slower_are_a_hint_only() -> None:
    found = found_in(drawn(np.linspace(1.0, 1.6, N)))
    assert found.bottleneck == "drift" and not found.sure and "perhaps" in str(found)


def test_the_model_says_how_much_network_is_right() -> None:
    progress = drawn(flat(1.0), network_s=flat(0.35))
    intervals = intervals_of(progress)
    assert [cause.key for cause in find_causes(progress, intervals)] == ["network"]
    assert find_causes(progress, intervals, network_ratio=0.3) == ()
    assert [cause.key for cause in find_causes(progress, intervals, network_ratio=0.1)] == ["network"]
