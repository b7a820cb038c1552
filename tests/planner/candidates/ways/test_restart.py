"""Reading the checkpoint is part of a restart: it grows with the size, falls with the nodes, and the plan shows it."""

from __future__ import annotations

import pytest

from tests.planner.candidates.ways.cases import answer, on_demand, spot


def restart(size: str, **checkpoint: str) -> tuple[float, float]:
    """Seconds to read a checkpoint and to be back at work, as the plan has them."""
    offers = [on_demand("30.00"), spot(zone="use1-az1")]
    plan = answer(offers, 600.0, checkpoint={"export": False, "size": size, **checkpoint}).plan
    assert plan.launch is not None
    return plan.launch.checkpoints.read_s, plan.launch.checkpoints.restart_s


def test_a_large_checkpoint_is_read_for_long() -> None:
    small, large = restart("1GB"), restart("200GB")
    assert large[0] == pytest.approx(200.0 * small[0])
    assert small[1] == pytest.approx(720.0 + small[0])
    assert large[1] == pytest.approx(720.0 + large[0])
    assert large[0] == pytest.approx(200.0 / 1.25), "one node reads 1.25 GB/s"


def test_a_restart_that_the_workload_states_holds_all_of_it() -> None:
    assert restart("200GB", restart_time="10m")[1] == pytest.approx(600.0)
