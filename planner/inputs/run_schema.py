"""What is started on the machines of a plan: image, command and places, for `planner export`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.inputs.section import Section

# No NUL: neither a shell nor a container can take one.
Script = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]+$")]
Value = Annotated[str, Field(max_length=4_000, pattern=r"^[^\x00]*$")]
Word = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^\s\x00]+$")]
VariableName = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Run(Section):
    """What runs on each node. Nothing of it changes the plan: `planner export` writes it into launch files."""

    image: Word | None = Field(None, description="Container image with its tag or digest.")
    command: Script | None = Field(
        None,
        description="The training program and its own arguments, without a launcher: train.py --config c.toml.",
    )
    setup: Script | None = Field(None, description="Shell lines that run once on each node before it.")
    env: dict[str, Value] = Field({}, description="Environment variables, as quoted texts.")
    secrets: tuple[VariableName, ...] = Field(
        (),
        description="Names of environment variables that hold secrets; values are never written to a file.",
    )
    data: Word | None = Field(
        None, description="Where the training set is read: an address or a mounted path."
    )
    checkpoints: Word | None = Field(
        None, description="Where checkpoints are written: an address, or a path that every node mounts."
    )
    outputs: Word | None = Field(
        None, description="Where the final model goes: an address or a mounted path."
    )
