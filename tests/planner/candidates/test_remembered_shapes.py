"""What the test session remembers of the performance model is what the model says."""

from __future__ import annotations

import numpy as np

from catalogs.store.load import load_catalog
from planner.asked.job import resolve_job
from planner.market.machines import build_hardware
from planner.performance.search import estimate_shapes
from tests.planner.spine_catalogs import NOW, loaded, work
from tests.remembered_shapes import RememberedShapes


def test_each_machine_is_estimated_by_itself_whatever_was_asked_before() -> None:
    """Every machine of the bundled catalog, asked in parts that overlap, answers as all do when asked at once."""
    hardware, _ = build_hardware(load_catalog(None).instance_types)
    job = resolve_job(loaded(work()).workload, NOW.date())
    rng, remembered = np.random.default_rng(1), RememberedShapes()
    parts = [rng.permutation(hardware.n_rows)[: 1 + 60 * size] for size in range(4)]
    for rows in [*parts, np.arange(hardware.n_rows), *parts]:
        asked = hardware.take(rows)
        plain, again = (
            ask(job.model, job.training, asked, (1, 2, 3)) for ask in (estimate_shapes, remembered)
        )
        assert list(plain) == list(again)
        for name in plain:
            assert plain[name].tolist() == again[name].tolist() or np.array_equal(
                plain[name], again[name], equal_nan=True
            ), name
