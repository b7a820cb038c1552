"""Count a latent-diffusion U-Net layer by layer: parameters, multiply-accumulates and kept activations.

The counts of the stable-diffusion presets come from here. That the parameters agree exactly with the
published weights is the evidence that every layer is counted. Activations are the outputs of convolutions,
linear layers and attention; score matrices are not kept (fused attention), neither are norms and pointwise
functions, as in the counts of the other presets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TEXT_TOKENS = 77
TIME_WIDTH_FACTOR = 4


@dataclass
class Count:
    params: int = 0
    macs: int = 0
    activations: int = 0

    def conv(self, c_in: int, c_out: int, kernel: int, side: int) -> None:
        weights = c_in * c_out * kernel * kernel
        self.params += weights + c_out
        self.macs += weights * side * side
        self.activations += c_out * side * side

    def linear(self, c_in: int, c_out: int, tokens: int, *, bias: bool = True) -> None:
        self.params += c_in * c_out + (c_out if bias else 0)
        self.macs += c_in * c_out * tokens
        self.activations += c_out * tokens

    def norm(self, width: int) -> None:
        self.params += 2 * width

    def attention(self, width: int, tokens: int, context: int, context_tokens: int) -> None:
        self.linear(width, width, tokens, bias=False)
        self.linear(context, width, context_tokens, bias=False)
        self.linear(context, width, context_tokens, bias=False)
        self.macs += 2 * tokens * context_tokens * width
        self.activations += tokens * width
        self.linear(width, width, tokens)

    def resnet(self, c_in: int, c_out: int, side: int, time_width: int) -> None:
        self.norm(c_in)
        self.conv(c_in, c_out, 3, side)
        self.linear(time_width, c_out, 1)
        self.norm(c_out)
        self.conv(c_out, c_out, 3, side)
        if c_in != c_out:
            self.conv(c_in, c_out, 1, side)

    def transformer(self, width: int, side: int, context: int, depth: int) -> None:
        if depth == 0:
            return
        tokens = side * side
        self.norm(width)
        self.linear(width, width, tokens)
        for _ in range(depth):
            self.norm(width)
            self.attention(width, tokens, width, tokens)
            self.norm(width)
            self.attention(width, tokens, context, TEXT_TOKENS)
            self.norm(width)
            self.linear(width, 8 * width, tokens)
            self.linear(4 * width, width, tokens)
        self.linear(width, width, tokens)


def count_unet(
    widths: Sequence[int], depths: Sequence[int], context: int, side: int, extra_embedding: int = 0
) -> Count:
    """Count a U-Net of two residual blocks per level (three on the way up).

    Args:
        widths: channels per level; `depths` are transformer blocks after each residual block of the level.
        context: width of the text embedding.
        side: of the square latent.
        extra_embedding: width of added conditions.
    """
    out = Count()
    time_width = TIME_WIDTH_FACTOR * widths[0]
    out.conv(4, widths[0], 3, side)
    for width in (widths[0], *((extra_embedding,) if extra_embedding else ())):
        out.linear(width, time_width, 1)
        out.linear(time_width, time_width, 1)
    skips, channels = [widths[0]], widths[0]
    for level, width in enumerate(widths):
        for _ in range(2):
            out.resnet(channels, width, side, time_width)
            out.transformer(width, side, context, depths[level])
            channels = width
            skips.append(channels)
        if level < len(widths) - 1:
            side //= 2
            out.conv(width, width, 3, side)
            skips.append(width)
    out.resnet(channels, channels, side, time_width)
    out.transformer(channels, side, context, max(depths[-1], 1))
    out.resnet(channels, channels, side, time_width)
    for level in reversed(range(len(widths))):
        for _ in range(3):
            out.resnet(channels + skips.pop(), widths[level], side, time_width)
            channels = widths[level]
            out.transformer(channels, side, context, depths[level])
        if level:
            side *= 2
            out.conv(channels, channels, 3, side)
    out.norm(channels)
    out.conv(channels, 4, 3, side)
    return out
