"""Run by SkyPilot's own interpreter: its loader and `validate` on tasks, with a catalog of its own making, no network.

Reads `{"catalog": {cloud: [[instance type, accelerator, count, region, zone], ...]}, "tasks": {name: yaml}}` from
standard input and writes what SkyPilot says against each task, as JSON; an empty text: nothing.
"""

import contextlib
import csv
import hashlib
import json
import os
import sys
from pathlib import Path

COLUMNS = [
    "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo", "Price", "SpotPrice",
    "Region", "AvailabilityZone", "Arch",
]  # fmt: skip


def write_catalog(rows):
    from sky.catalog import constants

    folder = Path(os.environ["HOME"]) / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION
    names = sorted({row[1] for lines in rows.values() for row in lines if row[1]})
    save(
        folder,
        "common/accelerators.csv",
        [["AcceleratorName", "Clouds"], *([name, list(rows)] for name in names)],
    )
    for cloud, lines in rows.items():
        table = [
            [kind, name, count, 8, 64, "", 1.0, 0.5, region, zone, "x86_64"]
            for kind, name, count, region, zone in lines
        ]
        save(folder, f"{cloud}/vms.csv", [COLUMNS, *table])


def save(folder, name, table):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(table)
    mark = folder / ".meta" / f"{name}.md5"
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(hashlib.md5(path.read_bytes()).hexdigest())


def said_of(text):
    import sky
    import yaml

    if "\n---\n" in text:
        from sky.utils import dag_utils

        is_group = dag_utils.is_job_group_yaml_str(text)
        load = dag_utils.load_job_group_from_yaml_str if is_group else dag_utils.load_chain_dag_from_yaml_str
        tasks = load(text).tasks
    else:
        tasks = [sky.Task.from_yaml_config(yaml.safe_load(text))]
    for task in tasks:
        task.validate_name()
        for resource in task.resources:
            resource.validate()
        if task.service is not None:
            from sky.serve import serve_utils

            serve_utils.validate_service_task(task, pool=True)


def main():
    asked = json.load(sys.stdin)
    out = {}
    with contextlib.redirect_stdout(sys.stderr):
        write_catalog(asked["catalog"])
        for name, text in asked["tasks"].items():
            try:
                said_of(text)
                out[name] = ""
            except Exception as error:  # noqa: BLE001
                out[name] = f"{type(error).__name__}: {error}"
    json.dump(out, sys.stdout)


main()
