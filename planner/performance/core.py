"""One call from sizes, devices and layouts to step time and memory; rows align, single values broadcast."""

from __future__ import annotations

import numpy as np

from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.layouts import Layouts
from planner.performance.links import build_links, layer_comm_s
from planner.performance.micro import transformer_micro
from planner.performance.step import Step, step_time
from planner.performance.vision import sampled_micro
from planner.performance.work import Work

SAMPLED_KINDS = frozenset({"cnn", "vit", "diffusion"})


def evaluate(work: Work, devices: Devices, layout: Layouts, kind: str, stack: str, c: Constants) -> Step:
    """Step time of layouts.

    Args:
        work: one row for all, or one row per layout.
        devices: one row per layout.
        layout: the layouts, shape `(n,)`.
        kind: model family (`transformer`, `cnn`, `vit`, `diffusion`).
        stack: software stack class.
        c: constants.
    """
    links = build_links(devices, c)
    if kind in SAMPLED_KINDS:
        comm = np.zeros(layout.tp.shape)
        micro = sampled_micro(work, devices, layout.micro_batch, stack, c)
    else:
        comm = layer_comm_s(work, devices, layout, links, stack, c)
        micro = transformer_micro(work, devices, layout, comm, stack, c)
    return step_time(work, devices, links, layout, micro, comm, stack, c)
