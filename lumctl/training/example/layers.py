"""The layers of a Llama: RMSNorm, rotary positions, attention with grouped heads, SwiGLU."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lumctl.training.example.config import Size


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
    """Turn pairs of numbers by angles that grow with the position; a pair is number i and i + half the head."""

    cos: Tensor
    sin: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        half = size.head_width // 2
        turns = size.rotary_base ** -(torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(size.context, dtype=torch.float64), turns)
        # Not in the state: every worker makes the same.
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1).float(), persistent=False)
        self.register_buffer("sin", torch.cat([-angles.sin(), angles.sin()], -1).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` is (..., positions, head width)."""
        positions = x.shape[-2]
        swapped = torch.roll(x, x.shape[-1] // 2, -1)
        return x * self.cos[:positions] + swapped * self.sin[:positions]


class Attention(nn.Module):
    """Each position looks at itself and those before it; a group of heads shares its keys and values."""

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
        """``x`` is (sequences, positions, width)."""
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
    """The feed-forward: one half opens and shuts the other."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.gate = nn.Linear(size.width, size.feed_forward, bias=False)
        self.up = nn.Linear(size.width, size.feed_forward, bias=False)
        self.down = nn.Linear(size.feed_forward, size.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape as ``x``."""
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
        """The same shape as ``x``."""
        x = x + self.attention(self.attention_norm(x))
        out: Tensor = x + self.feed(self.feed_norm(x))
        return out
