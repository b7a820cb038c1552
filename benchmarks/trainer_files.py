"""What `planner init --from` makes of real files: `python -m benchmarks.trainer_files FOLDER` (a folder of folders).

Prints a line per file: the model, the batch, what is still to be filled, whether the workload loads and can be
estimated once it is; or why there is none. Files that name no model (launchers, engines) are read with
`--model llama-3.1-8b`.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from planner.errors import InputError
from planner.estimation.answer import estimate_workload
from planner.inputs.load import parse_workload
from planner.inputs.models import main_network
from planner.trainer_files.answer import Initial, workload_from
from planner.trainer_files.gather import Wishes

ACCELERATORS = 8
MACHINE, NODES = "p5.48xlarge", (1, 4)


def filled(text: str) -> str:
    """The draft with its blanks uncommented, example values and all."""
    lines: list[str] = []
    for line in text.splitlines():
        section = re.fullmatch(r"# (model|training|data|constraints):", line)
        if section or (lines and "# FILL" in lines[-1]):
            line = line.replace("# ", "", 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def draft(path: Path) -> tuple[Initial | None, str]:
    """The draft of one file, or the reason why there is none."""
    try:
        return workload_from([path], Wishes(accelerators=ACCELERATORS)), ""
    except InputError as error:
        if "states no model" not in str(error):
            return None, str(error).removeprefix(f"{path}: ")
    return workload_from([path], Wishes(accelerators=ACCELERATORS, model="llama-3.1-8b")), ""


def outcome(path: Path) -> tuple[str, str]:
    """In a word and in a line what became of a file."""
    initial, reason = draft(path)
    if initial is None:
        return "reason", reason[:110]
    try:
        loaded = parse_workload(filled(initial.text), Path("workload.yaml"))
    except InputError as error:
        return "INVALID", str(error).splitlines()[0]
    try:
        estimates = estimate_workload(loaded, [MACHINE], NODES, calibrated=False).estimates
    except InputError:  # no layout at all: the file pins degrees of more accelerators
        estimates = ()
    runs = any(not estimate.reason for estimate in estimates)
    model, training = loaded.workload.model, loaded.workload.training
    assert model is not None and training is not None
    network = main_network(model)
    name = network.preset or f"{(network.params or 0) / 1e9:.2f} B parameters"
    to_fill = ", ".join(text.partition(":")[0] for text in initial.to_fill)
    return "runs" if runs else "too large", f"{name}, batch {training.global_batch}; to fill: {to_fill}"


def main() -> None:
    """Print one line per file and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    paths = sorted(path for path in parser.parse_args().folder.glob("*/*") if path.is_file())
    counts: dict[str, int] = {}
    for path in paths:
        kind, text = outcome(path)
        counts[kind] = counts.get(kind, 0) + 1
        print(f"{kind:9} {path.parent.name}/{path.name}: {text}")
    print(f"{len(paths)} files: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
