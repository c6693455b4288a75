"""The model: a Llama of random weights, the same on every machine for one seed."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lumctl.training.example.config import Size
from lumctl.training.example.layers import Block, RMSNorm

DEVIATION = 0.02
"""Standard deviation of the weights at the start."""


class Ends(nn.Module):
    """What stands before the blocks and after them; one matrix serves both."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(size.vocabulary, size.width))
        self.norm = RMSNorm(size.width, size.epsilon)

    def embed(self, tokens: Tensor) -> Tensor:
        """A vector for each token."""
        return functional.embedding(tokens, self.embedding)

    def logits(self, x: Tensor) -> Tensor:
        """For each position how likely each token is to come next."""
        return functional.linear(self.norm(x), self.embedding)

    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """The SUM over all positions of -log(probability of the target): sums add up over ranks, means do not."""
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
                # What is added to the stream of a deep model starts smaller, or the sum grows with the depth.
                deep = name.endswith(("out.weight", "down.weight"))
                scale = DEVIATION / (2 * size.layers) ** 0.5 if deep else DEVIATION
                parameter.copy_(torch.randn(parameter.shape, generator=source) * scale)

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the last block hands on."""
        x = self.ends.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the token after each position."""
        return self.ends.logits(self.hidden(tokens))

    def loss(self, tokens: Tensor) -> Tensor:
        """The summed loss of sequences that each bring one token more than the context, the last target."""
        return self.ends.loss(self.hidden(tokens[:, :-1]), tokens[:, 1:])
