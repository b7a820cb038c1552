"""The script of torchrun: shellcheck, and torchrun's own options."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.export.registry import Options, export
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import allowed, shellcheck

_CALL = re.compile(r"torchrun \\\n((?:\s+--\S.*\\\n)+)")


def test_shellcheck_finds_nothing() -> None:
    assert shellcheck(*(export(one, "torchrun", Options())[0].text for one in LAUNCHES.values())) == ""


def test_without_a_command_the_script_stops_with_the_remedy() -> None:
    script = export(LAUNCHES["azure"], "torchrun", Options())[0].text
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=20
    )
    assert done.returncode != 0
    assert "set run.command in workload.yaml" in done.stderr


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ValueError(message)


def torchrun_parser(folder: Path) -> _Parser:
    """The options of torch 2.15 in a parser that takes no abbreviations, as torchrun's takes none that are new."""
    listed = json.loads((folder / "export" / "torchrun_args.json").read_text(encoding="utf-8"))["options"]
    parser = _Parser(allow_abbrev=False, add_help=False)
    for option in listed:
        if not option["names"][0].startswith("-"):
            continue
        if option["flag"]:
            parser.add_argument(*option["names"], action="store_true")
        else:
            kind = {"int": int, "float": float}.get(option["type"], str)
            parser.add_argument(*option["names"], type=kind, choices=option["choices"])
    return parser


def calls(target: str) -> Iterator[tuple[str, list[str]]]:
    """Name of the launch and the options of each call of torchrun in its files."""
    for name, files in allowed(target).items():
        for file in files:
            for options in _CALL.findall(file.text):
                # what the shell knows at the start: numbers, as far as torchrun reads them
                yield name, shlex.split(re.sub(r"\$\{?\w+\}?", "0", options.replace("\\\n", " ")))


@pytest.mark.shared
@pytest.mark.parametrize("target", ["torchrun", "slurm", "kubernetes", "skypilot"])
def test_torchrun_has_every_option_and_gets_the_nodes_of_the_plan(target: str, shared_dir: Path) -> None:
    parser, found = torchrun_parser(shared_dir), list(calls(target))
    assert len({name for name, _ in found}) >= 3
    for name, words in found:
        known = parser.parse_args(words)
        launch = LAUNCHES[name]
        assert known.nproc_per_node == str(launch.first.gpus), name
        assert known.nnodes is None or not known.nnodes.isdigit() or int(known.nnodes) <= launch.nodes, name


@pytest.mark.shared
@pytest.mark.parametrize("wrong", ["--nproc-per-nod=8", "--max-restarts=x", "--rdzv_end=h:1", "--restarts=3"])
def test_an_option_that_torchrun_does_not_have_is_found_out(wrong: str, shared_dir: Path) -> None:
    with pytest.raises(ValueError, match=r"unrecognized|invalid|required"):
        torchrun_parser(shared_dir).parse_args(["--nproc-per-node=8", wrong, "train.py"])
