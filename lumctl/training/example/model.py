"""The model: a published Llama, scaled down, with random weights that depend only on the seed."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Size:
    """The shape of a Llama, and of the batches that it learns from.

    Llama 3.2 1B, as published: width 2048, 16 layers, 32 query heads of width 64, 8 heads for keys and values, 8192
    numbers in the feed-forward, 128,256 tokens, rotary base 500,000, epsilon 1e-5, one matrix for embedding and output.
    Unchanged here: four query heads to one head of keys and values, a feed-forward four times the width, the rotary
    base, epsilon, and the shared matrix. Scaled: width, number and width of heads, and layers; `small` keeps all 16.
    Tokens are bytes. The published scaling of the rotary angles is for contexts beyond 8192 tokens, and is omitted.
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
        """The number of elements of one head."""
        return self.width // self.heads

    @property
    def feed_forward(self) -> int:
        """The inner width of the feed-forward layer."""
        return 4 * self.width


SIZES = {
    "tiny": Size(width=64, layers=4, heads=4, key_heads=1, context=32, sequences=16),
    "small": Size(width=256, layers=16, heads=8, key_heads=2, context=128, sequences=32),
}


class RMSNorm(nn.Module):
    """Scale each vector to a root mean square of one, then each of its numbers by a weight."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """The scaled vectors."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


class Rotary(nn.Module):
    """Rotate pairs of numbers by angles that grow with the position; a pair is number i and i + half the head."""

    cos: Tensor
    sin: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        half = size.head_width // 2
        turns = size.rotary_base ** -(torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(size.context, dtype=torch.float64), turns)
        # Not in the state: every worker computes the same angles.
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1).float(), persistent=False)
        self.register_buffer("sin", torch.cat([-angles.sin(), angles.sin()], -1).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The rotated vectors. ``x`` is (..., positions, head width)."""
        positions = x.shape[-2]
        swapped = torch.roll(x, x.shape[-1] // 2, -1)
        return x * self.cos[:positions] + swapped * self.sin[:positions]


class Attention(nn.Module):
    """Causal attention; a group of heads shares its keys and values."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads, self.key_heads, self.head_width = size.heads, size.key_heads, size.head_width
        keys = size.key_heads * size.head_width
        self.query = nn.Linear(size.width, size.width, bias=False)
        self.key = nn.Linear(size.width, keys, bias=False)
        self.value = nn.Linear(size.width, keys, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)
        self.rotary = Rotary(size)

    def forward(self, x: Tensor) -> Tensor:
        """The output, in the shape of ``x``: (sequences, positions, width)."""
        query = self.rotary(self._split(self.query(x), self.heads))
        group = self.heads // self.key_heads
        key = self.rotary(self._split(self.key(x), self.key_heads)).repeat_interleave(group, 1)
        value = self._split(self.value(x), self.key_heads).repeat_interleave(group, 1)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return mixed

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:2], heads, self.head_width).transpose(1, 2)


class SwiGLU(nn.Module):
    """The feed-forward layer: one half gates the other."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.gate = nn.Linear(size.width, size.feed_forward, bias=False)
        self.up = nn.Linear(size.width, size.feed_forward, bias=False)
        self.down = nn.Linear(size.feed_forward, size.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The output, in the shape of ``x``."""
        out: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return out


class Block(nn.Module):
    """One layer of the model."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(size.width, size.epsilon)
        self.attention = Attention(size)
        self.feed_norm = RMSNorm(size.width, size.epsilon)
        self.feed = SwiGLU(size)

    def forward(self, x: Tensor) -> Tensor:
        """The output, in the shape of ``x``."""
        x = x + self.attention(self.attention_norm(x))
        out: Tensor = x + self.feed(self.feed_norm(x))
        return out


DEVIATION = 0.02
"""Standard deviation of the weights at the start."""


class Ends(nn.Module):
    """The embedding and output layers, which share one matrix."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(size.vocabulary, size.width))
        self.norm = RMSNorm(size.width, size.epsilon)

    def embed(self, tokens: Tensor) -> Tensor:
        """A vector for each token."""
        return functional.embedding(tokens, self.embedding)

    def logits(self, x: Tensor) -> Tensor:
        """The logits of the next token at each position."""
        return functional.linear(self.norm(x), self.embedding)

    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """The SUM over all positions of -log(probability of the target): ranks can add sums, but not means."""
        return functional.cross_entropy(self.logits(x).flatten(0, 1), targets.flatten(), reduction="sum")


class Llama(nn.Module):
    """The whole model."""

    def __init__(self, size: Size, *, seed: int) -> None:
        super().__init__()
        self.size = size
        self.ends = Ends(size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        source = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    continue  # a norm starts at one
                # Layers that add to the residual stream start smaller: else the sum would grow with the depth.
                deep = name.endswith(("out.weight", "down.weight"))
                scale = DEVIATION / (2 * size.layers) ** 0.5 if deep else DEVIATION
                parameter.copy_(torch.randn(parameter.shape, generator=source) * scale)

    def hidden(self, tokens: Tensor) -> Tensor:
        """The output of the last block."""
        x = self.ends.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the token after each position."""
        return self.ends.logits(self.hidden(tokens))

    def loss(self, tokens: Tensor) -> Tensor:
        """The summed loss of sequences, each one token longer than the context: the last token is only a target."""
        return self.ends.loss(self.hidden(tokens[:, :-1]), tokens[:, 1:])
