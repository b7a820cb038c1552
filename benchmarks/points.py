"""The measured points that the constants are fitted to, as a table of our own in `data/measured_points.csv.gz`.

`python -m benchmarks.points --data FILE` rewrites it from rows with the columns of dev.csv: facts of the usable rows
(what ran on what, and the figure that was published) with the place each was read from. Without `--data` the fit and
the benchmark read it, so that anyone can refit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accelerators import find_device, load_devices
from benchmarks.measured import load_cases
from benchmarks.rows import read_csv
from planner.files import write_atomically

POINTS = Path(__file__).resolve().parent / "data" / "measured_points.csv.gz"
# Our column -> the column of the rows the readers take.
COLUMNS = {
    "point": "row_id", "workload": "split_group", "publisher": "source", "read_from": "url_or_repo_path",
    "caution": "quality", "software": "framework", "released": "date", "model": "model_name", "kind": "family",
    "parameters": "params", "active_parameters": "params_active", "layers": "layers", "width": "hidden",
    "heads": "heads", "kv_heads": "kv_heads", "ffn_width": "ffn", "vocabulary": "vocab", "sequence": "seq_len",
    "image_size": "img_size", "flops_per_sample": "flops_per_sample", "activations_m": "macts",
    "accelerator": "gpu", "accelerators": "gpus", "per_node": "gpus_per_node", "network": "interconnect",
    "precision": "precision", "batch": "global_batch", "micro_batch": "micro_batch", "accumulation": "grad_accum",
    "tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "cp", "expert_parallel": "ep",
    "data_parallel": "dp", "zero_stage": "zero_stage", "recompute": "activation_ckpt", "metric": "metric",
    "figure": "value", "memory_gib": "mem_gib_per_gpu",
}  # fmt: skip


def load_rows(data: Path | None) -> list[dict[str, str]]:
    """Rows of a file with the columns of dev.csv, or the bundled points under those names."""
    if data is not None:
        return _complete(read_csv(data))
    with gzip.open(POINTS, "rt", encoding="utf-8", newline="") as file:
        rows = [{COLUMNS[name]: cell for name, cell in row.items()} for row in csv.DictReader(file)]
    names = {device["accelerator"]: name for name, device in load_devices().items()}
    return [{**row, "gpu": names.get(row["gpu"], row["gpu"]), "notes": ""} for row in rows]


def _complete(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows with every column (empty where the file lacks it) and an id of their own each.

    A file without ids, or with rows that stand in it twice, is scored row by row all the same.
    """
    empty = dict.fromkeys((*COLUMNS.values(), "notes"), "")
    seen: Counter[str] = Counter()
    complete = []
    for line, row in enumerate(rows, start=2):
        name = row.get("row_id") or f"line {line}"
        seen[name] += 1
        own = name if seen[name] == 1 else f"{name}, line {line}"
        complete.append({**empty, **row, "row_id": own})
    return complete


def write_points(rows: Sequence[dict[str, str]], path: Path = POINTS) -> int:
    """Write the usable ones of `rows` in our schema; the same rows give the same bytes. Returns how many."""
    devices = load_devices()
    usable = {case.row_id for case in load_cases(list(rows), devices)[0]}
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    kept = [row for row in rows if row["row_id"] in usable]
    for row in kept:
        own = {name: row.get(theirs, "") for name, theirs in COLUMNS.items()}
        device = find_device(devices, row["gpu"])
        assert device is not None  # the row is usable
        writer.writerow({**own, "accelerator": device["accelerator"]})
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(text.getvalue().encode("utf-8"))
    write_atomically(path, packed.getvalue())
    return len(kept)


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the table of points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of dev.csv")
    parser.add_argument("--out", type=Path, default=POINTS)
    chosen = parser.parse_args(arguments)
    print(f"{write_points(read_csv(chosen.data), chosen.out)} points written to {chosen.out.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
