"""Which attention kernel a run uses where its owner does not say: by software, date and accelerator generation.

Also how much of full attention the layers of a model do.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from planner.performance.post_training.lengths import quantiles
from planner.performance.spec import (
    AttentionKernel,
    ExpertKernels,
    ModelFamily,
    ModelSpec,
    StackClass,
    TrainingSpec,
)

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Table

# A distribution of lengths is integrated over so many of its quantiles.
_LENGTHS = 24
# FlashAttention was released with its paper (arXiv 2205.14135) on 2022-05-27.
FLASH_SINCE = date(2022, 6, 1)
# Diffusers calls the flash kernel of PyTorch 2.0 (2023-03-15) by default (its documentation, AttnProcessor2_0).
DIFFUSION_FLASH_SINCE = date(2023, 3, 15)
# Hugging Face's decoders without a gate got the same kernel one by one: Falcon in Transformers 4.36 (December 2023),
# GPT-NeoX and GPT-2 in 4.42 (2024-06-27; pull requests 31031 and 31172).
PLAIN_FLASH_SINCE = date(2024, 7, 1)
# FlashAttention-2 supports Ampere, Ada and newer (its README); kernels for older generations exist, but no framework
# takes them for granted.
WITHOUT_FLASH = frozenset({"pascal", "volta", "turing"})
# Generations with flash attention of their own: FlashAttention-3 (arXiv 2407.08608) and FlashAttention-4. PyTorch has
# both since June 2026 (pytorch#131309); Hugging Face's code selects them by accelerator (stas00/ml-engineering,
# insights/when-to-upgrade-gpus).
NATIVE = frozenset({"hopper", "blackwell"})
# The release of June 2026 of NVIDIA's recipes (Megatron-Bridge 26.06) trains mixtures of experts in 8 bit faster than
# that of April on Blackwell, and no faster on Hopper (measured rows).
NATIVE_EXPERTS_SINCE = date(2026, 6, 1)
NATIVE_EXPERTS = frozenset({"blackwell"})
# Kernels that depend on the accelerator.
_BY_GENERATION = ("auto", "native")


def before_flash(stack: StackClass) -> AttentionKernel:
    """The kernel of software without flash attention: hand-fused stacks had a fused softmax, eager ones did not."""
    return "fused" if stack in ("fused", "tuned") else "materialised"


def default_attention(
    stack: StackClass, model: ModelSpec, start: date | None, tuning: bool = False
) -> AttentionKernel:
    """The kernel of software of the day `start` (None: now): by accelerator once flash attention was there.

    Eager code of models without a gated feed-forward network, and of encoder-decoders, is mostly older than flash
    attention (the scripts behind the measured rows never got it); code of gated decoders and encoders (diffusion
    transformers, ModernBERT) calls it. So with eager vision models: networks that classify have older code, those of
    diffusion call it. `tuning`: post-training starts from published weights, in libraries that call it for every
    decoder by now.
    """
    if model.family is not ModelFamily.TRANSFORMER:
        called = model.family is ModelFamily.DIFFUSION and _by(start, DIFFUSION_FLASH_SINCE)
        return "materialised" if stack in ("eager", "tinygrad") and not called else "flash"
    plain = not model.gated_mlp and not (
        tuning and model.architecture == "decoder" and _by(start, PLAIN_FLASH_SINCE)
    )
    older_code = model.architecture == "encoder_decoder" or plain
    if not _by(start, FLASH_SINCE) or (stack in ("eager", "tinygrad") and older_code):
        return before_flash(stack)
    return "auto"


def _by(start: date | None, since: date) -> bool:
    """Whether software of the day `start` (None: now) has what there was `since`."""
    return start is None or start >= since


def default_experts(stack: StackClass, software_date: date | None) -> ExpertKernels:
    """The kernels of experts in software of `software_date` (None: today's): measured in vendor recipes only."""
    newer = software_date is None or software_date >= NATIVE_EXPERTS_SINCE
    return "native" if stack == "tuned" and newer else "grouped"


def lacks_flash(hardware: Table) -> Bools:
    """Rows of `hardware` whose generation is older than what flash attention supports, shape `(n_rows,)`."""
    return hardware.is_in("generation", WITHOUT_FLASH)


def with_kernel(training: TrainingSpec, hardware: Table) -> TrainingSpec:
    """`training` with its kernel settled for `hardware`, all rows of which must be alike in this.

    Raises:
        ValueError: some rows have flash attention and some do not.
    """
    if training.attention not in _BY_GENERATION:
        return training
    old = lacks_flash(hardware)
    if mixed(training, old):
        raise ValueError("accelerators with and without flash attention: estimate them apart")
    if old.any():
        return replace(training, attention=before_flash(training.stack))
    return replace(training, attention="flash") if training.attention == "auto" else training


def mixed(training: TrainingSpec, old: Bools) -> bool:
    """Whether rows of which `old` lack flash attention must be estimated apart."""
    return training.attention in _BY_GENERATION and bool(old.any()) and not bool(old.all())


def has_native(hardware: Table, training: TrainingSpec) -> Floats:
    """1 where a run uses a flash attention kernel written for the row's generation, shape `(n_rows,)`."""
    return _generations(hardware, training.attention == "native", NATIVE)


def has_native_experts(hardware: Table, training: TrainingSpec) -> Floats:
    """1 where experts run in 8-bit kernels written for the row's generation, shape `(n_rows,)`."""
    asked = training.expert_kernels == "native" and training.precision in ("fp8", "fp4")
    return _generations(hardware, asked, NATIVE_EXPERTS)


def _generations(hardware: Table, asked: bool, those: frozenset[str]) -> Floats:
    return hardware.is_in("generation", those if asked else ()).astype(np.float64)


def score_ratio(model: ModelSpec, sequence: float) -> float:
    """Score work relative to full attention over `sequence` tokens.

    With a window of w tokens, a causal token sees the last w: of s^2 / 2 pairs w (s - w / 2) remain; otherwise each of
    s tokens sees w.
    """
    window = float(model.attention_window or sequence)
    if window >= sequence or not model.layers:
        return model.attention_ratio
    share = window / sequence
    seen = share * (2.0 - share) if model.architecture == "decoder" else share
    windowed = (model.layers if model.windowed_layers is None else model.windowed_layers) / model.layers
    return model.attention_ratio * (windowed * seen + 1.0 - windowed)


def score_ratio_of(model: ModelSpec, training: TrainingSpec, sequence: float) -> float:
    """Score work of a job relative to full attention over `sequence` tokens, its mean or packed sequence.

    A sample of n tokens has n^2 scores (without windows): samples of unlike length have more than as many of the mean
    length. Kernels of the flash kind keep the samples that are packed into a sequence apart; others score all of it.
    """
    tuning = training.tuning
    if tuning.lengths is None or tuning.rollouts is not None:
        return score_ratio(model, sequence)
    if tuning.packed and training.attention not in ("flash", "native"):
        return score_ratio(model, sequence)
    each = quantiles(tuning.lengths, _LENGTHS)
    ratios = np.asarray([score_ratio(model, float(length)) for length in each])
    return float((each**2 * ratios).sum() / each.sum()) / sequence
