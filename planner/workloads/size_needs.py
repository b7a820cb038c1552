"""What a training run needs of its machines beside accelerators: vCPUs, memory, disk, read rate and network.

read GB/s      = samples/s x bytes per sample / 0.9    (MLPerf Storage passes at 90 % accelerator utilisation)
loader workers = images/s / images per second of a worker, at least 2 an accelerator
vCPUs a node   = accelerators x (workers + 1) + 4
RAM            = system, processes, loader workers + a checkpoint + the data x 1.2, at most the accelerators' memory
disk           = data x 1.25 + checkpoints kept
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

from planner.bundled import bundled_rows
from planner.performance.constants import load_constants
from planner.records import record

GB_PER_GIB = 2.0**30 / 1e9
UTILISATION = 0.9
# JPEG images that one loader worker decodes, resizes and collates per second: 190 to 385 measured; the lower end.
IMAGES_PER_WORKER_S = 190.0
LEAST_WORKERS = 2
SPARE_VCPUS = 4
ASSUMED_THREADS = 2  # a core, where it is not known: of all but two families that are
DISK_FACTOR = 1.25
CACHE_FACTOR = 1.2  # of the data in host memory; as sizing_rules.csv puts it against R16
# Read by one client of an object store: tens of parallel requests of 50 to 90 MB/s over one card of 100 Gb/s.
CLIENT_GB_PER_S = 6.3
SHARED_STORE_FROM_GB = 1000.0


@record(frozen=True)
class Needs:
    """What the run needs, all nodes together unless said.

    Attributes:
        tier: small, medium, large or very large, by the volume of data; it decides storage, not accelerators.
        device_memory_gib: of each accelerator, that the run takes; accelerators_gb: what all of them have.
        vcpus, ram_gb, disk_gb: of all nodes.
        workers_per_accelerator: loader workers.
        read_gb_per_s: from storage, to keep the accelerators fed.
        network_gbps: between nodes, of each; 0 for one node.
        storage: where the plan has the data.
    """

    tier: str
    accelerators: float
    device_memory_gib: float | None
    workers_per_accelerator: int
    vcpus: float
    ram_gb: float
    accelerators_gb: float
    disk_gb: float
    read_gb_per_s: float
    network_gbps: float
    storage: str


def tier_of(data_gb: float) -> str:
    """The tier that rules of thumb give a volume of data."""
    steps = ((10.0, "small"), (100.0, "medium"), (1000.0, "large"))
    return next((name for limit, name in steps if data_gb < limit), "very large")


def read_rate(samples_per_s: float, bytes_per_sample: float) -> float:
    """GB/s that storage must give."""
    return samples_per_s * bytes_per_sample / 1e9 / UTILISATION


def workers_for(images_per_s: float, accelerators: float) -> int:
    """Loader workers of each accelerator; `images_per_s` 0 for text, which needs no decoding."""
    return max(LEAST_WORKERS, math.ceil(images_per_s / accelerators / IMAGES_PER_WORKER_S))


def vcpus_for(accelerators: float, nodes: int, workers: int) -> float:
    """VCPUs of all nodes: one a process, whether it is a core or one of its threads."""
    return accelerators * (workers + 1) + SPARE_VCPUS * nodes


def threads_per_core(provider: str, instance_type: str) -> int | None:
    """VCPUs of a core of a machine (`planner/data/threads_per_core.csv`); None where it is not known."""
    for row in bundled_rows("threads_per_core.csv"):
        if row["provider"] == provider and fnmatchcase(instance_type, row["instance_type"]):
            return int(row["threads"])
    return None


def ram_for(
    data_gb: float,
    accelerators: float,
    accelerators_gb: float,
    nodes: int,
    workers: int,
    checkpoint_gb: float,
) -> float:
    """GB of memory of all nodes: the system, a process and loader workers of each accelerator, a checkpoint, a cache.

    Args:
        data_gb: of the set, of which no more is kept than `accelerators_gb`, the accelerators' memory in all.
        accelerators: in all.
        accelerators_gb: see `data_gb`.
        nodes: machines.
        workers: loader workers of each accelerator.
        checkpoint_gb: of one checkpoint on its way to storage.
    """
    c = load_constants()
    each = c["memory.host.process_gib"] + workers * c["memory.host.worker_gib"]
    running = (nodes * c["memory.host.system_gib"] + accelerators * each) * GB_PER_GIB
    return min(CACHE_FACTOR * data_gb, accelerators_gb) + running + checkpoint_gb


def disk_for(data_gb: float, checkpoint_gb: float, kept: int) -> float:
    """GB of disk for the data, with room to spare, and the checkpoints that are kept."""
    return data_gb * DISK_FACTOR + checkpoint_gb * kept
