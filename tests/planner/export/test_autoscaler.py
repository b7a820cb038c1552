"""The autoscaler: the Kubernetes schema takes it, and no training gang gets one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from planner.errors import InputError
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import tool

SERVING = replace(LAUNCHES["workers"], kind="inference")
LOADER = Options(values={"role": "loader"})


def kubernetes(text: str, folder: Path) -> str:
    """What kubernetes-validate says; a kind that it does not know passes with a warning, so the word is asked for."""
    import subprocess

    (folder / "x.yaml").write_text(text)
    program = tool("kubernetes-validate", "pip install kubernetes-validate")
    done = subprocess.run(
        [program, "--strict", "x.yaml"], capture_output=True, text=True, timeout=60, cwd=folder
    )
    said = done.stdout + done.stderr
    return "" if done.returncode == 0 and "passed" in said else said


@pytest.mark.parametrize(("launch", "options"), [(SERVING, Options()), (LAUNCHES["one"], LOADER)])
def test_the_schema_takes_it(launch: Launch, options: Options, tmp_path: Path) -> None:
    assert kubernetes(export(launch, "autoscaler", options)[0].text, tmp_path) == ""


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("minReplicas:", "minReplica:"),
        ("maxReplicas: 5", "maxReplicas: five"),
        ("HorizontalPodAutoscaler", "HorizontalPodScaler"),
    ],
)
def test_the_schema_refuses_what_is_wrong(good: str, bad: str, tmp_path: Path) -> None:
    text = export(SERVING, "autoscaler", Options())[0].text
    assert good in text
    assert kubernetes(text.replace(good, bad), tmp_path) != ""


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_training_gang_and_its_jobs_have_none(name: str) -> None:
    with pytest.raises(InputError, match="fixed number of ranks"):
        export(LAUNCHES[name], "autoscaler", Options())


def test_servers_scale_to_the_machines_of_the_plan_and_loaders_beside_the_nodes() -> None:
    served = yaml.safe_load(export(SERVING, "autoscaler", Options())[0].text)
    assert served["spec"]["maxReplicas"] == sum(pool.nodes for pool in SERVING.pools)
    loader = yaml.safe_load(export(LAUNCHES["one"], "autoscaler", LOADER)[0].text)
    assert loader["spec"]["scaleTargetRef"]["name"] == "llama-3-8b-pretrain-loader"
    assert loader["metadata"]["labels"]["planner_run_id"] == "run-0123456789ab"
