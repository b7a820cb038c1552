"""A Dockerfile on the oldest image that has code for the plan's chips, with the driver that its hosts need."""

from __future__ import annotations

import json

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.names import RUN_TAG
from planner.export.program import heading
from planner.export.quoting import comment
from planner.export.registry import Options
from planner.export.software import image_for, least_driver, software_of
from planner.export.view import Launch


def render(launch: Launch, options: Options) -> tuple[ExportFile, ...]:  # noqa: ARG001
    """Return `Dockerfile` and `.dockerignore`.

    Raises:
        InputError: no image has code for the chips, or `run.image` has none, or its name breaks out of its line.
    """
    image = image_for(launch.pools, launch.run.image)
    if not comment(image) == image or any(letter in image for letter in " \\$\"'`#"):
        raise InputError(
            f"run.image {image!r}: not the name of an image; write registry/name:tag or name@digest"
        )
    lines = [
        # the first comments of a file may be directives of the parser, which no text of a user may become
        "# Dockerfile of a plan",
        *heading(launch, *_needs(launch, image)),
        f"FROM {image}",
        f"LABEL org.opencontainers.image.title={quoted(launch.name)} \\",
        f"      {RUN_TAG}={quoted(launch.run_id)}",
        'SHELL ["/bin/bash", "-o", "pipefail", "-c"]',
        "WORKDIR /workspace",
        "COPY requirements.txt .",
        "RUN pip install --no-cache-dir --requirement requirements.txt",
        "COPY . .",
        *_setup(launch),
        *_nccl(launch),
        *_command(launch),
    ]
    return (ExportFile("Dockerfile", "\n".join(lines) + "\n"), ExportFile(".dockerignore", _IGNORED))


def quoted(text: str) -> str:
    """A text as one double-quoted word of a Dockerfile: no variable, no end of line."""
    inner = comment(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{inner}"'


def _needs(launch: Launch, image: str) -> list[str]:
    rows = dict.fromkeys(row for pool in launch.pools if (row := software_of(pool)) is not None)
    lines = [
        f"image: {image}, {'of the workload' if launch.run.image else 'the oldest of the table with code for'}"
    ]
    if not launch.run.image:
        lines[0] += " " + ", ".join(f"{row.architecture} ({row.generation})" for row in rows)
    for row in rows:
        if row.first_cuda:
            upto = f" to {row.last_cuda}" if row.last_cuda else ""
            lines.append(f"{row.architecture}: CUDA {row.first_cuda}{upto} ({row.basis}: {row.source})")
    if driver := least_driver(launch.pools):
        lines.append(
            f"driver of the hosts: {driver} or newer; check: nvidia-smi --query-gpu=driver_version --format=csv"
        )
    return lines


def _setup(launch: Launch) -> list[str]:
    """The workload's setup as a file that is run: no text of it reaches the Dockerfile's own syntax."""
    script = launch.run.setup.strip()
    if not script:
        return []
    words = ["/bin/bash", "-euo", "pipefail", "-c", script]
    return [f"RUN {json.dumps(words)}"]


def _nccl(launch: Launch) -> list[str]:
    """Variables of the image; those of the plan are set where it is started."""
    return ["ENV NCCL_DEBUG=WARN"] if launch.first.vendor == "nvidia" else []


def _command(launch: Launch) -> list[str]:
    if launch.first.vendor in _BY_TORCHRUN:
        start = ['ENTRYPOINT ["torchrun"]']
    else:
        start = ['ENTRYPOINT ["python"]']
    if launch.command:
        return [*start, f"CMD {json.dumps(list(launch.command))}"]
    return [
        *start,
        "# no run.command in the workload: give the program's name and arguments when the container starts",
    ]


_BY_TORCHRUN = frozenset({"nvidia", "amd", "aws"})
_IGNORED = """\
.git
.venv
__pycache__
*.pt
*.safetensors
checkpoints/
data/
"""
