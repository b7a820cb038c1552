#!/usr/bin/env python3
"""A provider for spot_loop.sh that lives in a file: availability by tick, bookkeeping as in planner.spot.replay_batch.

`sleep` is its fifth verb: the loop's pause becomes a tick. The file is named by WORLD.
"""

import json
import os
import sys
from pathlib import Path

PATH = Path(os.environ["WORLD"])


def main(verb, *rest):
    world = json.loads(PATH.read_text())
    up = world["up"][world["tick"]]
    if world["mode"] == "spot" and not up:
        world.update(mode="idle", left=0)
    if verb == "status":
        age = 1
        while world["tick"] >= age and world["up"][world["tick"] - age] == up:
            age += 1
        hours = world["hours"]
        state = {
            "version": 1, "kind": "state", "now": world["tick"] * hours, "done_hours": world["done"] * hours,
            "mode": world["mode"], "restart_left_hours": world["left"] * hours, "on_demand_usd_per_hour": 4.0,
            "zones": [{"name": "us-east-2a", "available": bool(up), "since": age * hours}],
        }  # fmt: skip
        print(json.dumps(state | ({"zone": "us-east-2a"} if world["mode"] == "spot" else {})))
    elif verb == "sleep":
        if world["mode"] != "idle":
            world["paid"][world["mode"]] += 1
            if world["left"]:
                world["left"] -= 1
            else:
                world["done"] += 1
        world["tick"] += 1
    elif verb == "stop":
        world.update(mode="idle", left=0)
    else:
        world["log"].append([world["tick"], *rest])
        mode = rest[0]
        if mode == "on_demand" or up:
            world.update(mode=mode, left=1)
    PATH.write_text(json.dumps(world))
    return int(verb == "run" and rest[0] == "spot" and not up)


sys.exit(main(*sys.argv[1:]))
