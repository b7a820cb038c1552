#!/usr/bin/env python3
"""Says what to do by a decision table, without the planner: `follow_table.py TABLE.json STATE.json`.

The table is `planner advise ... --table TABLE.json`; the state has elapsed_hours, done_hours, mode, zone,
restart_left_hours and zones: [{name, available, since_hours}]. Prints `idle`, `on_demand` or `spot ZONE`.
"""

import json
import math
import sys


def last(rows, limit):
    """The last row that begins no later than `limit`, or the first one."""
    return next((row for row in reversed(rows) if row[0] <= limit), rows[0])


def decide(table, state):
    """The action of the table: (mode, zone or None)."""
    tick = table["tick_hours"]
    ticks = lambda hours, rounded: int(rounded(round(hours / tick, 6)))  # noqa: E731
    left = ticks(table["deadline_hours"], math.floor) - ticks(state["elapsed_hours"], math.ceil)
    slack = left - ticks(table["work_hours"] - state["done_hours"], math.ceil)
    age = {zone["name"]: ticks(zone["since_hours"], round) for zone in state["zones"]}
    up = [
        name for name in table["zones"] if any(z["name"] == name and z["available"] for z in state["zones"])
    ]

    def ask(mode, zone, age_ticks, restart=0):
        rows = [
            (entry["age_from_ticks"], entry["rows"])
            for entry in table["entries"]
            if (entry["mode"], entry["zone"], entry["restart_left_ticks"]) == (mode, zone, restart)
        ]
        return last(last(last(rows, age_ticks)[1], left)[1], slack)[1] if left > 0 else "on_demand"

    mode, here = state["mode"], state["zone"]
    if mode == "spot" and here in up:
        restart = ticks(state["restart_left_hours"], math.ceil)
        action = ask("spot", here, age[here], restart)
        return (action, here if action == "spot" else None)
    mode = "idle" if mode == "spot" else mode
    if mode == "on_demand" and state["restart_left_hours"] > 0:
        return ("on_demand", None)
    for zone in up:
        if ask(mode, zone, age[zone]) == "spot":
            return ("spot", zone)
    return (ask(mode, up[0], age[up[0]]) if up else ask(mode, "", min(age.values())), None)


if __name__ == "__main__":
    with open(sys.argv[1]) as table_file, open(sys.argv[2]) as state_file:
        print(*(part for part in decide(json.load(table_file), json.load(state_file)) if part))
