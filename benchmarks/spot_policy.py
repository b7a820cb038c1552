"""The product's spot policy behind the interface of a trace scorer: `make_policy(job) -> decide(state)`, `plan(job)`.

Nothing is decided here: dictionaries become the records of `planner.spot.policy.job`, actions become dictionaries.
`SPOT_POLICY` chooses another registered policy for comparison, `SPOT_HAZARDS` counts fitted on other days
(`benchmarks.fit_spot`) in place of the bundled ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.spot.hazards import HazardModel, load_hazards
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.policy.registry import make_policy as policy_by_name
from planner.spot.policy.view import IDLE, ON_DEMAND, SPOT, ArrayPolicy, RunStates

_THEIR_MODE = {IDLE: "idle", ON_DEMAND: "od"}
_OUR_MODE = {"idle": IDLE, "spot": SPOT, "od": ON_DEMAND, "on_demand": ON_DEMAND}


def spot_job(job: Mapping[str, Any]) -> SpotJob:
    """The job's dictionary as a record."""
    zones = tuple(
        SpotZone(
            name=zone["name"],
            region=zone.get("region", ""),
            instance_type=zone.get("itype", ""),
            usd_per_hour=float(zone["price"]),
            gang=int(zone.get("requested", 1)),
        )
        for zone in job["zones"]
    )
    history = {name: np.asarray(seen, dtype=bool) for name, seen in job.get("history", {}).items()}
    return SpotJob(
        work_hours=float(job["work_h"]),
        deadline_hours=float(job["deadline_h"]),
        restart_hours=float(job["restart_h"]),
        on_demand_usd_per_hour=float(job["od_price"]),
        zones=zones,
        egress_usd=float(job.get("egress_usd", 0.0)),
        tick_hours=float(job.get("tick_h", 0.1)),
        utc_hour=float(job.get("utc_hour", 0.0)),
        history=history,
    )


def hazards() -> HazardModel:
    """The bundled hazards, or those of the file that `SPOT_HAZARDS` names."""
    path = os.environ.get("SPOT_HAZARDS")
    return load_hazards(Path(path) if path else None)


def make_policy(job: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The policy for a job, as a function from state to action."""
    ready: list[ArrayPolicy] = []
    if all("price" in zone for zone in job["zones"]):
        ready.append(ready_policy(spot_job(job)))

    def decide(state: Mapping[str, Any]) -> dict[str, Any]:
        if not ready:  # prices are first seen in the first state
            ready.append(ready_policy(spot_job(_priced(job, state))))
        policy = ready[0]
        view = policy.view
        mode, zone = policy.decide_runs(_runs(state, view.zone_number, view.region_names))
        if mode[0] == SPOT:
            return {"mode": "spot", "zone": view.zone_names[zone[0]]}
        return {"mode": _THEIR_MODE[int(mode[0])]}

    return decide


def _priced(job: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """The job with the prices of a state."""
    usd = {zone["name"]: zone["price"] for zone in state["zones"]}
    return {**job, "zones": [{**zone, "price": usd[zone["name"]]} for zone in job["zones"]]}


def ready_policy(job: SpotJob) -> ArrayPolicy:
    """The policy that `SPOT_POLICY` names."""
    model = hazards()
    tables = {zone.name: model.table_for(zone) for zone in job.zones}
    return policy_by_name(os.environ.get("SPOT_POLICY", "survival"), job, tables)


def _runs(state: Mapping[str, Any], number: Mapping[str, int], regions: tuple[str, ...]) -> RunStates:
    """One state as arrays, without a record per zone in between."""
    zones = state["zones"]
    region = state.get("region")
    known = regions.index(region) if region in regions else len(regions)
    mode = _OUR_MODE[state["mode"]]
    return RunStates(
        float(state["t_h"]),
        np.array([state["done_h"]], dtype=float),
        np.array([mode]),
        np.array([number[state["zone"]] if mode == SPOT else -1]),
        np.array([state["restart_left_h"]], dtype=float),
        np.array([-1 if region is None else known]),
        np.array([[bool(zone["available"]) for zone in zones]]),
        np.array([[zone["since_h"] for zone in zones]], dtype=float),
        np.array([[zone["price"] for zone in zones]], dtype=float),
    )


def plan(job: Mapping[str, Any]) -> dict[str, float]:
    """What is known before launch: chance that spot alone meets the deadline, and the policy's cost with its range."""
    from planner.spot.launch import forecast_launch

    forecast = forecast_launch(spot_job(job), hazards())
    return {
        "p_meet_spot_only": forecast.p_meet_spot_only_ratio,
        # costs are skewed upwards: half of the runs cost less than the middle one, most of them less than the mean
        "cost_ratio": forecast.cost_ratio_p50,
        "cost_ratio_p10": forecast.cost_ratio_p10,
        "cost_ratio_p90": forecast.cost_ratio_p90,
    }
