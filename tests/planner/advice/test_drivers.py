"""The drivers of examples/drivers, run as a user would: a shell, the program, a provider."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.plan.ids import TimePartId
from planner.plan.model import TimePart
from planner.plan.plain import plain
from planner.spot.traces.registry import read_traces
from tests.conftest import ROOT
from tests.forked_program import forks
from tests.planner.advice.plans import line_values, plan_values

DRIVERS = ROOT / "examples" / "drivers"
TICK_HOURS = 0.5


def programs(folder: Path) -> dict[str, str]:
    """An environment in which `python3` is this interpreter, and programs of `bin` come first."""
    path = folder / "bin"
    path.mkdir()
    python = path / "python3"
    python.symlink_to(sys.executable)
    return {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


# passes its words to a process that has imported the program: a start costs more than an answer
_CLIENT = """
import json, socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as asked:
    asked.sendall(json.dumps(sys.argv[2:]).encode() + b"\\n")
    code, said = json.loads(asked.makefile().readline())
sys.stderr.write(said)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where `_CLIENT` is answered by the program."""
    with forks() as program:

        class Answer(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                done = program.run(json.loads(self.rfile.readline()))
                self.wfile.write(json.dumps([done.returncode, done.stderr.decode()]).encode() + b"\n")

        with socketserver.TCPServer(("127.0.0.1", 0), Answer) as server:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            yield server.server_address[1]
            server.shutdown()


def plan(folder: Path, work_hours: float, deadline: str) -> str:
    line = line_values(nodes=1)
    steps = TimePartId.TRAINING_STEPS
    parts = plain((TimePart(steps, steps, work_hours, "model"),))
    path = folder / "plan.json"
    path.write_text(
        json.dumps(plan_values(lines=[line], timeline=parts, deadline=deadline)), encoding="utf-8"
    )
    return str(path)


def drive(folder: Path, port: int, up: list[int]) -> dict[str, Any]:
    """Run the loop on 1.5 h of work with a deadline after 3 h; returns the world at the end."""
    world = folder / "world.json"
    first = {"tick": 0, "hours": TICK_HOURS, "up": up, "mode": "idle", "left": 0, "done": 0, "log": [],
             "paid": {"spot": 0, "on_demand": 0}}  # fmt: skip
    world.write_text(json.dumps(first), encoding="utf-8")
    provider = folder / "provider"
    fake = Path(__file__).parent / "fake_provider.py"
    provider.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}" "$@"\n', encoding="utf-8")
    provider.chmod(0o755)
    environment = {**programs(folder), "WORLD": str(world), "SPOT_LOOP_SLEEP": f"{provider} sleep"}
    client, planner = folder / "client.py", folder / "bin" / "planner"
    client.write_text(_CLIENT, encoding="utf-8")
    # it does not say what each action may cost, which drivers do not read: most of an answer's time
    planner.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -S -E "{client}" {port} "$@" --futures 0\n', encoding="utf-8"
    )
    planner.chmod(0o755)
    command = [
        str(DRIVERS / "spot_loop.sh"),
        plan(folder, 1.5, "2026-03-02T11:00+00:00"),
        str(provider),
        "1800",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(world.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_shell_loop_finishes_before_the_deadline_though_spot_never_comes_back(
    tmp_path: Path, port: int
) -> None:
    world = drive(tmp_path, port, [1, 1, 0, 0, 0, 0, 0])
    assert world["done"] == 3 and world["tick"] <= 6 and world["mode"] == "idle"
    assert world["paid"]["spot"] > 0 and world["paid"]["on_demand"] > 0


@pytest.mark.shared
def test_the_shell_loop_finishes_on_a_recorded_trace(tmp_path: Path, port: int, shared_dir: Path) -> None:
    """Spot that is there, lost within the hour, and back: the first such stretch of one zone's record."""
    traces = read_traces(shared_dir / "spot" / "v100_2mo_b1.json", tick_hours=TICK_HOURS)
    up = next(trace.up for trace in traces if trace.zone.startswith("us-east-2a")).astype(int)
    windows = [up[at : at + 7].tolist() for at in range(len(up) - 7)]
    world = drive(tmp_path, port, next(w for w in windows if w[0] and not all(w[:3]) and any(w[2:])))
    assert world["done"] == 3 and world["tick"] <= 6 and world["mode"] == "idle"


def test_a_provider_that_cannot_answer_ends_on_on_demand(tmp_path: Path) -> None:
    """No state three times: on-demand is asked for. The pause then ends the loop."""
    log, provider = tmp_path / "log", tmp_path / "provider"
    provider.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\n[ "$1" != status ]\n', encoding="utf-8")
    provider.chmod(0o755)
    pause = tmp_path / "pause"
    pause.write_text(f'#!/bin/sh\n! grep -q run "{log}" || kill $PPID\n', encoding="utf-8")
    pause.chmod(0o755)
    environment = {**programs(tmp_path), "SPOT_LOOP_SLEEP": str(pause)}
    command = [str(DRIVERS / "spot_loop.sh"), "plan.json", str(provider), "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert log.read_text().splitlines() == ["status", "status", "status", "run on_demand"]
    assert done.returncode == 130 and "no answer (3)" in done.stderr


SKY = """#!/bin/sh
echo "$@" >>"{log}"
case "$1" in
  status) [ -f "{up}" ] && echo "train  1h ago  1x AWS  UP  -" || echo "train  1h ago  1x AWS  STOPPED" ;;
  launch) case "$*" in *us-east-2b*) exit 1 ;; esac; touch "{up}" ;;
  down) rm -f "{up}" ;;
esac
"""


class Sky:
    """A pretended SkyPilot: its calls are logged, us-east-2b never has capacity."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.up = folder, folder / "log", folder / "up"
        self.environment = programs(folder)
        sky = folder / "bin" / "sky"
        sky.write_text(SKY.format(log=self.log, up=self.up), encoding="utf-8")
        sky.chmod(0o755)
        zones = [
            {"name": f"us-east-2{x}", "region": "us-east-2", "infra": f"aws/us-east-2/us-east-2{x}"}
            for x in "ab"
        ]
        job = {"cluster": "train", "task": "task.yaml", "restart_hours": 0.2, "progress": "echo 0.25",
               "on_demand": "aws/us-east-2", "zones": zones}  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")

    def call(self, now: str, *verb: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, "SPOT_JOB": str(self.folder / "job.json"), "SPOT_JOB_NOW": now}
        command = [sys.executable, str(DRIVERS / "skypilot_provider.py"), *verb]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    def state(self, now: str) -> dict[str, Any]:
        done = self.call(now, "status")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found


def test_the_skypilot_provider_tells_what_happened(tmp_path: Path) -> None:
    sky = Sky(tmp_path)
    first = sky.state("2026-03-02T08:00+00:00")
    assert first["mode"] == "idle" and first["done_ratio"] == 0.25
    assert sky.call("2026-03-02T08:06+00:00", "run", "spot", "us-east-2b").returncode == 1
    assert sky.call("2026-03-02T08:06+00:00", "run", "spot", "us-east-2a").returncode == 0
    running = sky.state("2026-03-02T08:12+00:00")
    assert (running["mode"], running["zone"]) == ("spot", "us-east-2a")
    assert running["restart_left_hours"] == pytest.approx(0.1) and running["checkpoint_region"] == "us-east-2"
    assert [zone["available"] for zone in running["zones"]] == [True, False]
    sky.up.unlink()  # taken back
    gone = sky.state("2026-03-02T08:18+00:00")
    assert gone["mode"] == "idle" and [zone["available"] for zone in gone["zones"]] == [False, False]
    later = sky.state("2026-03-02T08:40+00:00")
    assert [zone["available"] for zone in later["zones"]] == [True, True]  # may be tried again
    calls = sky.log.read_text().splitlines()
    assert "launch -y -d -c train --infra aws/us-east-2/us-east-2a --use-spot task.yaml" in calls


def test_what_the_skypilot_provider_prints_is_a_state_that_advise_reads(tmp_path: Path) -> None:
    from planner.inputs.state_load import load_state

    sky = Sky(tmp_path)
    assert sky.call("2026-03-02T08:00+00:00", "run", "on_demand").returncode == 0
    (tmp_path / "state.json").write_text(json.dumps(sky.state("2026-03-02T08:06+00:00")), encoding="utf-8")
    state = load_state(tmp_path / "state.json").state
    assert state.mode == "on_demand" and np.isclose(state.restart_left_hours, 0.1)
    assert sky.call("2026-03-02T08:12+00:00", "stop").returncode == 0
    assert sky.state("2026-03-02T08:12+00:00")["mode"] == "idle"
