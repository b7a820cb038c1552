"""How many of the models that people train are known by name: `python -m benchmarks.hub_names [--list]`.

`data/hub_names.txt` holds names of models of public collections, most of them of 2024 to 2026, one a line. A name is
known (it stands for a preset), refused with the reason why the network is not modelled, or answered with the request
for its config.json.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.inputs.presets import why_not_modelled
from planner.trainer_files.hub import preset_of_hub_name

NAMES = Path(__file__).resolve().parent / "data" / "hub_names.txt"


def answer(name: str) -> tuple[str, str]:
    """What a name is answered with: its kind, and the preset or the reason."""
    preset = preset_of_hub_name(name)
    if preset is not None:
        return "preset", preset.name
    reason = why_not_modelled(name)
    return ("reason", reason) if reason else ("config.json", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts, and with `--list` each name."""
    names = NAMES.read_text(encoding="utf-8").split()
    found = {name: answer(name) for name in names}
    if "--list" in (sys.argv[1:] if arguments is None else arguments):
        for name, (kind, text) in found.items():
            print(f"{kind:12} {name}: {text}")
    counts = {
        kind: sum(1 for k, _ in found.values() if k == kind) for kind in ("preset", "reason", "config.json")
    }
    print(f"{len(names)} names: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
