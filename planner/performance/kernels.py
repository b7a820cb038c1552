"""Which attention kernel a run uses where its owner does not say: by software, date and accelerator generation."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from planner.performance.spec import AttentionKernel, ModelFamily, ModelSpec, StackClass, TrainingSpec

if TYPE_CHECKING:
    import numpy.typing as npt

    from catalogs.table import Table

# FlashAttention was released with its paper (arXiv 2205.14135) on 2022-05-27.
FLASH_SINCE = date(2022, 6, 1)
# FlashAttention-2 supports Ampere, Ada and newer (its README); kernels for older generations exist, but no framework
# takes them for granted.
WITHOUT_FLASH = frozenset({"pascal", "volta", "turing"})


def before_flash(stack: StackClass) -> AttentionKernel:
    """The kernel of software without flash attention: hand-fused stacks had a fused softmax, eager ones did not."""
    return "fused" if stack in ("fused", "tuned") else "materialised"


def default_attention(stack: StackClass, model: ModelSpec, start: date | None) -> AttentionKernel:
    """The kernel of a run that starts on `start` (None: now): by accelerator once flash attention was there.

    Eager code of encoders and of decoders without a gated feed-forward network is mostly older than flash attention
    (the scripts behind the measured rows never got it); code of gated decoders calls it. So with eager vision models.
    """
    if model.family is not ModelFamily.TRANSFORMER:
        return "materialised" if stack in ("eager", "tinygrad") else "flash"
    older_code = model.architecture != "decoder" or not model.gated_mlp
    if (start is not None and start < FLASH_SINCE) or (stack in ("eager", "tinygrad") and older_code):
        return before_flash(stack)
    return "auto"


def lacks_flash(hardware: Table) -> npt.NDArray[np.bool_]:
    """Rows of `hardware` whose generation is older than what flash attention supports, shape `(n_rows,)`."""
    return np.asarray([str(word) in WITHOUT_FLASH for word in hardware["generation"]], dtype=np.bool_)


def with_kernel(training: TrainingSpec, hardware: Table) -> TrainingSpec:
    """`training` with its kernel settled for `hardware`, all rows of which must be alike in this.

    Raises:
        ValueError: some rows have flash attention and some do not.
    """
    if training.attention != "auto":
        return training
    old = lacks_flash(hardware)
    if old.any() and not old.all():
        raise ValueError("accelerators with and without flash attention: estimate them apart")
    return replace(training, attention=before_flash(training.stack) if old.any() else "flash")
