"""Record the progress of a small training loop, in the columns that `planner track` and `planner diagnose` read.

    python examples/record_steps.py loader > loader-bound.csv
    python examples/record_steps.py cpu > cpu-bound.csv
    planner diagnose loader-bound.csv

The loop is real: numpy trains a two-layer network by gradient descent on samples that a loader reads (a pause, as of a
slow store) and decodes (zlib). `loader` makes the samples slow to come and the network small, `cpu` the reverse.
Copy the four lines that measure into your own loop.
"""

import csv
import os
import sys
import time
import zlib
from datetime import datetime, timezone

import numpy as np

STEPS = 120
SIZES = {"loader": (256, 512, 0.05), "cpu": (512, 4096, 0.0)}  # features, hidden units, seconds per read


def load(packed: bytes, features: int, pause: float) -> np.ndarray:
    """One batch: read and decode."""
    time.sleep(pause)
    return np.frombuffer(zlib.decompress(packed), dtype=np.float32).reshape(-1, features)


def main(kind: str) -> None:
    features, hidden, pause = SIZES[kind]
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((256, features)).astype(np.float32)
    packed, target = zlib.compress(batch.tobytes(), 1), batch[:, :1] * 0.5
    first = rng.standard_normal((features, hidden)).astype(np.float32) * 0.02
    second = rng.standard_normal((hidden, 1)).astype(np.float32) * 0.02
    out = csv.writer(sys.stdout)
    out.writerow(["step", "time", "step_seconds", "loader_seconds", "cpu_busy"])
    for step in range(1, STEPS + 1):
        begin, used = time.perf_counter(), time.process_time()
        samples = load(packed, features, pause)
        loaded = time.perf_counter()
        active = np.maximum(samples @ first, 0.0)
        error = active @ second - target
        slope = (error @ second.T) * (active > 0)
        first -= 1e-3 * (samples.T @ slope) / len(samples)
        second -= 1e-3 * (active.T @ error) / len(samples)
        end = time.perf_counter()
        busy = (time.process_time() - used) / (end - begin) / (THREADS or 1)
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        out.writerow([step, now, f"{end - begin:.5f}", f"{loaded - begin:.5f}", f"{min(busy, 1.0):.3f}"])


# numpy's own threads: the cores that a step can keep busy
THREADS = int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count()

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SIZES:
        sys.exit(f"usage: python {sys.argv[0]} {'|'.join(SIZES)}")
    main(sys.argv[1])
