#!/usr/bin/env python3
"""A provider for spot_loop.sh that runs the job with SkyPilot (`sky launch`), one cluster at a time.

Settings come from the JSON file in SPOT_JOB (default spot-job.json):
    {"cluster": "train", "task": "task.yaml", "restart_hours": 0.2, "retry_minutes": 20,
     "progress": "cat /shared/progress",          # prints the share of the work that is saved, 0..1
     "on_demand": "aws/us-east-2",                # --infra of on-demand
     "zones": [{"name": "us-east-2a", "region": "us-east-2", "infra": "aws/us-east-2/us-east-2a"}]}
The task must resume from its own checkpoint, kept in a bucket: each start is a fresh cluster.

SkyPilot cannot say whether spot is there without asking for it, so a zone counts as up until a launch in it fails or
an instance in it is lost; after `retry_minutes` it counts as up again and may be tried.
"""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

SETTINGS = Path(os.environ.get("SPOT_JOB", "spot-job.json"))
MEMORY = SETTINGS.with_suffix(".memory.json")


def now():
    """The present; SPOT_JOB_NOW replaces it in tests."""
    return datetime.fromisoformat(os.environ.get("SPOT_JOB_NOW", datetime.now(timezone.utc).isoformat()))


def sky(*arguments):
    """Run SkyPilot; its output goes to standard error, the answer is kept."""
    done = subprocess.run(["sky", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stdout)
    return done


def load():
    """Settings and what is remembered between calls."""
    job = json.loads(SETTINGS.read_text())
    if MEMORY.exists():
        return job, json.loads(MEMORY.read_text())
    moment = now().isoformat()
    zones = {zone["name"]: {"available": True, "since": moment} for zone in job["zones"]}
    return job, {
        "launched_at": moment,
        "mode": "idle",
        "zone": None,
        "started_at": None,
        "region": None,
        "zones": zones,
    }


def save(memory):
    """Remember, whole or not at all."""
    MEMORY.with_suffix(".new").write_text(json.dumps(memory))
    MEMORY.with_suffix(".new").replace(MEMORY)


def mark(memory, zone, available):
    """Note that a zone is up or down from now on."""
    if memory["zones"][zone]["available"] != available:
        memory["zones"][zone] = {"available": available, "since": now().isoformat()}


def is_up(job):
    """Whether the cluster runs, as the cloud says now."""
    listed = sky("status", "--refresh", job["cluster"])
    return any(job["cluster"] in line.split() and "UP" in line.split() for line in listed.stdout.splitlines())


def status():
    """Print the state file."""
    job, memory = load()
    if memory["mode"] != "idle" and not is_up(job):
        if memory["mode"] == "spot":
            mark(memory, memory["zone"], False)
        memory.update(mode="idle", zone=None)
    retry = timedelta(minutes=job.get("retry_minutes", 20))
    for name, zone in memory["zones"].items():
        if not zone["available"] and now() - datetime.fromisoformat(zone["since"]) >= retry:
            mark(memory, name, True)
    save(memory)
    left = 0.0
    if memory["mode"] != "idle":
        ready = datetime.fromisoformat(memory["started_at"]) + timedelta(hours=job["restart_hours"])
        left = max((ready - now()).total_seconds() / 3600, 0.0)
    done = subprocess.run(job["progress"], shell=True, stdout=subprocess.PIPE, text=True, check=True).stdout
    zones = [
        {"name": zone["name"], "region": zone["region"], **memory["zones"][zone["name"]]}
        for zone in job["zones"]
    ]
    state = {
        "version": 1,
        "kind": "state",
        "now": now().isoformat(),
        "launched_at": memory["launched_at"],
        "done_ratio": float(done),
        "mode": memory["mode"],
        "restart_left_hours": left,
        "zones": zones,
    }
    for key, value in (("zone", memory["zone"]), ("checkpoint_region", memory["region"])):
        state.update({key: value} if value else {})
    print(json.dumps(state))


def stop():
    """Stop what runs."""
    job, memory = load()
    if memory["mode"] != "idle" and sky("down", "-y", job["cluster"]).returncode:
        sys.exit("sky down failed: check for a cluster that still runs")
    memory.update(mode="idle", zone=None)
    save(memory)


def run(mode, name=None):
    """Run on spot in a zone, or on on-demand; exit 1 if there is no capacity."""
    stop()
    job, memory = load()
    zone = next((zone for zone in job["zones"] if zone["name"] == name), None)
    infra = zone["infra"] if zone else job["on_demand"]
    spot = "--use-spot" if mode == "spot" else "--no-use-spot"
    if sky("launch", "-y", "-d", "-c", job["cluster"], "--infra", infra, spot, job["task"]).returncode:
        sky("down", "-y", job["cluster"])  # a launch that failed half way may leave something
        if zone:
            mark(memory, name, False)
            save(memory)
        sys.exit(1)
    region = zone["region"] if zone else memory["region"]
    memory.update(mode=mode, zone=name, started_at=now().isoformat(), region=region)
    save(memory)


if __name__ == "__main__":
    {"status": status, "run": run, "stop": stop}[sys.argv[1]](*sys.argv[2:])
