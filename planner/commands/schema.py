"""`planner schema`: print the JSON Schema of a workload file, or the presets it may name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from planner.bundled import bundled_rows
from planner.commands.options import examples


@click.command(epilog=examples("planner schema workload > workload.v1.json", "planner schema presets"))
@click.argument(
    "what",
    type=click.Choice(
        [
            "workload",
            "portfolio",
            "pipeline",
            "serving",
            "schedule",
            "budget",
            "showback",
            "state",
            "sweep",
            "commit",
            "commit-answer",
            "tco",
            "calibration",
            "estimate",
            "plan",
            "presets",
            "adapters",
            "engines",
        ]
    ),
    default="workload",
    metavar="[WHAT]",
)
def schema(what: str) -> None:
    """Print the JSON Schema of an input file or an answer, or a list of known models (default: workload).

    WHAT is an input: workload, portfolio, pipeline, serving, schedule, budget, showback, state, sweep, commit or tco;
    an answer: plan, estimate, calibration or commit-answer; or a list: presets, adapters or engines.

    Point your editor at it with a first line like
    `# yaml-language-server: $schema=workload.v1.json`.
    """
    lists = {"presets": _presets, "adapters": _adapters, "engines": _engines}
    click.echo(lists[what]() if what in lists else _schema_of(what), file=sys.stdout, nl=False)


def _schema_of(kind: str) -> str:
    """Return the committed schema; a test holds it equal to the models, so pydantic need not be imported.

    Those of answers with a model of their own are made from its fields, which import nothing heavy.
    """
    if kind == "plan":
        from planner.plan.json_schema import plan_schema

        return _text(plan_schema())
    if kind == "commit-answer":
        from planner.commitments.answer import commit_answer_schema

        return _text(commit_answer_schema())
    path = Path(__file__).parent.parent / "data" / "schemas" / f"{kind}.v1.json"
    return path.read_text(encoding="utf-8")


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _presets() -> str:
    """Return one line per preset: name, family, size in billions of parameters, other names."""
    from planner.inputs.presets import load_presets

    rows = [("PRESET", "FAMILY", "PARAMS", "ALSO CALLED")]
    for preset in load_presets().values():
        params = preset.values.get("params")
        size = f"{params / 1e9:.3g} B" if isinstance(params, int) else "unknown"
        rows.append((preset.name, str(preset.values["family"]), size, ", ".join(preset.aliases)))
    return _aligned(rows)


def _adapters() -> str:
    """Return one line per kind of adapter: its class, what it costs over LoRA's formula, rows measured."""
    from planner.performance.post_training.adapters import load_adapters

    rows = [("ADAPTER", "CLASS", "STEP OVER LORA", "MEASURED ROWS")]
    for cost in load_adapters().values():
        built = f" + {cost.weight_bytes:.0f} B/weight and pass" if cost.weight_bytes else ""
        rows.append((cost.kind, cost.family, f"{cost.step_ratio:.2f} x{built}", str(cost.rows)))
    return _aligned(rows)


def _engines() -> str:
    """Return one line per inference engine and year that the model knows."""
    engines = bundled_rows("engines.csv")
    rows = [("ENGINE", "YEAR", "SHARE OF BANDWIDTH", "")]
    rows += [(row["engine"], row["year"], row["bandwidth_ratio"], "") for row in engines]
    return _aligned(rows)


def _aligned(rows: list[tuple[str, str, str, str]]) -> str:
    """Return rows as columns, the third one to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"
