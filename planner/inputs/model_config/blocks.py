"""Work of transformer blocks over a fixed number of positions: parameters, FLOPs and kept outputs per sample."""

from __future__ import annotations

from planner.records import record


@record(frozen=True)
class Work:
    """Forward pass of one sample.

    Attributes:
        params: parameters.
        flops: 2 x multiply-accumulates.
        activations: elements that convolutions and matrix products put out.
    """

    params: int = 0
    flops: int = 0
    activations: int = 0

    def __add__(self, other: Work) -> Work:
        """Both one after the other."""
        return Work(
            self.params + other.params, self.flops + other.flops, self.activations + other.activations
        )

    def __mul__(self, times: int) -> Work:
        """As many of it, each with parameters of its own."""
        return Work(self.params * times, self.flops * times, self.activations * times)


def linear(inputs: int, outputs: int, positions: int) -> Work:
    """A matrix product with bias at each position."""
    params = inputs * outputs + outputs
    return Work(params, 2 * inputs * outputs * positions, outputs * positions)


def scores(width: int, heads: int, queries: int, keys: int) -> Work:
    """The two products of attention; `heads` matrices of scores are kept, none (0) with fused attention."""
    return Work(0, 4 * queries * keys * width, heads * queries * keys + queries * width)


def block(
    hidden: int, kept_heads: int, ffn: int, positions: int, *, gated: bool = False, memory: int = 0
) -> Work:
    """A transformer block.

    Args:
        hidden: width.
        ffn: width of the feed-forward network.
        kept_heads: heads whose scores are kept, as the published counts of vision models do; 0 with fused attention.
        positions: of one sample.
        gated: the feed-forward network has a gate.
        memory: positions of an encoder that are attended to as well.
    """
    work = linear(hidden, hidden, positions) * 4
    work += scores(hidden, kept_heads, positions, positions)
    work += linear(hidden, ffn, positions) * (2 if gated else 1) + linear(ffn, hidden, positions)
    norms = 2
    if memory:
        work += linear(hidden, hidden, positions) * 2 + linear(hidden, hidden, memory) * 2
        work += scores(hidden, kept_heads, positions, memory)
        norms = 3
    return work + Work(params=2 * norms * hidden)
