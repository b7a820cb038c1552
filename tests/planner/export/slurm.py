"""A real Slurm on this machine with fake GPUs, on loopback and ports of its own, without munge."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

_COMMON = """\
ClusterName=plannertest
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={port}
SlurmdPort={slurmd}
StateSaveLocation={dir}/state
SlurmdSpoolDir={spool}/%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
EnforcePartLimits=ALL
ReturnToService=2
PrologFlags=Alloc
KillWait=5
"""
_CLOUD = """\
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=600
"""
_REAL = """\
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=real1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={slurmd} CPUs=1 RealMemory=100 Gres=gpu:h100:8
PartitionName=low Nodes=real1 Default=YES MaxTime=14-00:00:00 State=UP PriorityTier=1 GraceTime=60
PartitionName=high Nodes=real1 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""
REQUIRED = os.environ.get("PLANNER_REQUIRE_SLURM") == "1"  # read before fixtures clear the environment
# type, accelerators of a node, CPUs
KINDS = (
    ("h100", 8, 192), ("h200", 8, 192), ("a100", 8, 96), ("b300", 8, 192), ("l4", 1, 4), ("t4", 4, 32), ("a30", 1, 8),
    ("rtx6000", 1, 14),
)  # fmt: skip


@dataclass(frozen=True)
class Slurm:
    """A controller; `run` calls a program of Slurm with its configuration and a time limit."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.folder,
            env={**self.environment, **more},
        )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until(seconds: float, holds: Callable[[], bool]) -> bool:
    """Wait for it, at most so long."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _absent(why: str) -> NoReturn:
    """`.ci/run` sets the variable where it could install Slurm: there no test may go missing."""
    if REQUIRED:
        pytest.fail(f"PLANNER_REQUIRE_SLURM=1, but {why}")
    pytest.skip(why)


@contextmanager
def slurm(folder: Path, *, real: bool) -> Iterator[Slurm]:
    """Start one; `real`: with a node that runs jobs, else 128 nodes of each kind that only schedule.

    Skips the test where Slurm is not installed, or its daemons may not run here; fails it with PLANNER_REQUIRE_SLURM=1.
    """
    if shutil.which("slurmctld") is None:
        _absent("slurmctld is not installed: apt-get install --no-install-recommends slurm-wlm")
    if os.getuid() != 0:
        _absent("slurmctld without munge runs jobs of root alone: run as root, in a container")
    (folder / "state").mkdir(parents=True)
    # sockets lie there: their names end at 108 characters
    spool = tempfile.mkdtemp(prefix="slurm-", dir="/tmp")
    (folder / "gres.conf").write_text(_gres(folder, real=real))
    server = Slurm(folder, {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")})
    programs = [["slurmctld", "-D"], *([["slurmd", "-D", "-N", "real1"]] if real else [])]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(5):  # a port that was free may be taken before the daemon binds it
            (folder / "slurm.conf").write_text(_configuration(folder, spool, real=real))
            started = [
                subprocess.Popen(each, env=dict(server.environment), cwd=folder, **quiet) for each in programs
            ]
            if _is_up(server, started, real=real):
                break
            _end(started)
        else:
            logs = "\n".join(path.read_text()[-2000:] for path in folder.glob("*.log"))
            pytest.fail(f"Slurm did not start:\n{logs}")
        yield server
    finally:
        _end(started)
        shutil.rmtree(spool, ignore_errors=True)


def _configuration(folder: Path, spool: str, *, real: bool) -> str:
    """The text of slurm.conf, with ports that are free now."""
    slurmd = free_port()
    text = _COMMON.format(user="root", dir=folder, spool=spool, port=free_port(), slurmd=slurmd)
    if real:
        return text + _REAL.format(slurmd=slurmd)
    return text + _CLOUD + "".join(_cloud(*kind) for kind in KINDS) + _partitions()


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cloud(kind: str, gpus: int, cpus: int) -> str:
    return f"NodeName={kind}-[1-128] CPUs={cpus} RealMemory=200000 Gres=gpu:{kind}:{gpus} State=CLOUD\n"


def _partitions() -> str:
    return "PartitionName=all Nodes=ALL Default=YES MaxTime=90-00:00:00 State=UP\n"


def _gres(folder: Path, *, real: bool) -> str:
    if not real:
        return "".join(
            f"NodeName={kind}-[1-128] Name=gpu Type={kind} Count={n} AutoDetect=off\n" for kind, n, _ in KINDS
        )
    for number in range(8):
        (folder / f"gpu{number}").touch()
    return f"NodeName=real1 Name=gpu Type=h100 File={folder}/gpu[0-7] AutoDetect=off\n"


def _is_up(server: Slurm, started: list[subprocess.Popen[bytes]], *, real: bool) -> bool:
    """Wait until the nodes are known; False where a daemon ended."""
    wanted = "idle" if real else ""

    def answers() -> bool:
        asked = server.run("sinfo", "-h", "-o", "%T")
        return asked.returncode == 0 and wanted in asked.stdout

    def ended() -> bool:
        return any(process.poll() is not None for process in started)

    return until(180, lambda: ended() or answers()) and not ended()
