"""How much of full attention a model's layers do: windows, and hybrids whose other layers keep a state."""

from __future__ import annotations

from planner.performance.spec import ModelSpec


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
