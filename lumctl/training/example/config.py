"""The sizes of the model that is trained: a published configuration, scaled down."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """The shape of a Llama, and of the batches that it learns from.

    Llama 3.2 1B, as published: width 2048, 16 layers, 32 heads of 64 of which 8 hold keys and values, 8192 in the
    feed-forward, 128,256 tokens, rotary base 500,000, epsilon 1e-5, one matrix for embedding and output. Kept here:
    four query heads to one of keys and values, a feed-forward four times the width, the rotary base, epsilon, and the
    shared matrix. Scaled: width, number and width of heads, and layers; `small` keeps all 16. Tokens are bytes. Its
    stretching of the rotary angles is for contexts beyond 8192 tokens and is left out.
    """

    width: int
    layers: int
    heads: int
    key_heads: int
    context: int
    """Tokens of one sequence."""
    sequences: int
    """Sequences of one step, over all ranks."""
    vocabulary: int = 256
    rotary_base: float = 500_000.0
    epsilon: float = 1e-5

    @property
    def head_width(self) -> int:
        """Numbers of one head."""
        return self.width // self.heads

    @property
    def feed_forward(self) -> int:
        """Numbers inside a feed-forward."""
        return 4 * self.width


SIZES = {
    "tiny": Size(width=64, layers=4, heads=4, key_heads=1, context=32, sequences=16),
    "small": Size(width=256, layers=16, heads=8, key_heads=2, context=128, sequences=32),
}
