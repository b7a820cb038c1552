"""What batch inference reaches by the ratio of prompt to answer: share of the peak and of the memory's rate.

`python -m benchmarks.prompt_ratios` asks for three models on eight accelerators of three generations, each as a user
would, at five ratios, and prints beside them the rows of `benchmarks.other_inference` that reached most of the peak.
No share may be beyond what the chip can do; `tests/planner/performance/test_mixed_steps.py` holds the bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from benchmarks.accelerators import load_devices
from benchmarks.other_inference import FILE, LATER, Asked, asked_row, read
from planner.performance.inference.beyond import prompt_ratio
from planner.records import record

MACHINES = ("A100-SXM-80", "H100-SXM", "B200")
# With the accelerators of a replica, all in 16 bits.
MODELS = {"llama-3.1-8b": 1, "llama-3.1-70b": 4, "qwen3-30b-a3b": 1}
RATIOS = {"1:8": (256, 2048), "1:1": (1024, 1024), "8:1": (4096, 512), "40:1": (800, 20), "1000:1": (4000, 4)}
ACCELERATORS, AT_ONCE = 8, 128
# Measured rows that are shown: with so many prompt tokens to one of the answer, read and not from a cache.
HEAVY, SHOWN = 4.0, 8


@record(frozen=True)
class Reached:
    """A job and what it reaches.

    Attributes:
        tokens_per_s: of answers; `peak`: share of the peak of arithmetic; `bandwidth`: share of the memory's rate that
            reading the weights of one token in each step of the answers takes, a lower bound of the rate that is used.
    """

    machine: str
    model: str
    ratio: str
    tokens_per_s: float
    peak: float
    bandwidth: float


def reached() -> Iterator[Reached]:
    """Every machine, model and ratio."""
    devices = load_devices()
    for machine in MACHINES:
        for model, size in MODELS.items():
            for name, (prompt, answer) in RATIOS.items():
                inference = {
                    "engine": "vllm", "precision": "bf16", "input_tokens": {"mean": prompt},
                    "output_tokens": {"mean": answer}, "tensor_parallel": size, "max_concurrency": AT_ONCE,
                }  # fmt: skip
                raw = {
                    "key": f"{machine} {model} {name}", "source": "none", "class": "none", "accelerator": machine,
                    "accelerators": str(ACCELERATORS), "output_tokens_per_s": "1", "preset": model,
                    "inference": json.dumps(inference),
                }  # fmt: skip
                one = asked_row(raw, devices)
                rate = one.predict()
                steps = rate / (ACCELERATORS / size * AT_ONCE)
                moved = steps * 2.0 * float(one.model.active_params or one.model.params) / size
                yield Reached(machine, model, name, rate, peak_share(one, rate), moved / one.memory_rate)


def peak_share(one: Asked, rate: float) -> float:
    """Share of the peak of arithmetic at a rate of output tokens/s, prompts that are read included."""
    each = 2.0 * float(one.model.active_params or one.model.params)
    return rate * (1.0 + prompt_ratio(one.requests)) * each / one.peak


def most_measured() -> list[tuple[str, float, float]]:
    """Key, share of the peak and that of the prediction, of the prompt-heavy rows that reached most."""
    found = []
    for path in (FILE, LATER):
        for one in read(path):
            predicted = one.predict()
            if prompt_ratio(one.requests) >= HEAVY and not one.unfit and math.isfinite(predicted):
                found.append((one.key, peak_share(one, one.measured), peak_share(one, predicted)))
    return sorted(found, key=lambda row: -row[1])[:SHOWN]


def main() -> int:
    """Print both tables."""
    for one in reached():
        print(f"{one.machine:12} {one.model:16} {one.ratio:>7}  {one.tokens_per_s:9.0f} output tokens/s"
              f"  {one.peak:4.0%} of the peak  {one.bandwidth:4.0%} of the bandwidth for weights")  # fmt: skip
    for key, share, predicted in most_measured():
        print(f"measured {key:56} {share:4.0%} of the peak, predicted {predicted:4.0%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
