"""One turn of all ranks: rank 0 says what is to be worked on, all compute, rank 0 takes the tokens."""

import torch
import torch.distributed as dist
from torch import Tensor

from lumctl.training.example.learner import Served
from lumctl.training.example.serve.request_queue import Request, RequestQueue

IDLE_S = 0.05
"""How long rank 0 waits for a request before it tells the others that there is none: a wait that a `hold` of the
coordinator has to sit out, so short."""


def lead(served: Served, queue: RequestQueue, world: int) -> None:
    """Rank 0's part.

    Raises:
        RuntimeError: the process group broke; nothing has been taken off the queue.
    """
    batch = queue.batch(wait_s=IDLE_S)
    tokens = _padded(batch, served.size.context)
    _share(torch.tensor(tokens.shape), world)
    if not batch:
        queue.finish([], [])
        return
    _share(tokens, world)
    logits = served.logits(tokens)
    if logits is None:
        raise AssertionError("the logits are not on rank 0")
    last = torch.tensor([min(len(request.tokens) + len(request.made), tokens.shape[1]) - 1 for request in batch])
    # The likeliest token, always: a turn that is done again gives the same.
    queue.finish(batch, [int(token) for token in logits[torch.arange(len(batch)), last].argmax(-1)])


def follow(served: Served, world: int) -> None:
    """Every other rank's part.

    Raises:
        RuntimeError: the process group broke.
    """
    shape = torch.zeros(2, dtype=torch.long)
    _share(shape, world)
    sequences, length = (int(number) for number in shape)
    if sequences:
        tokens = torch.zeros(sequences, length, dtype=torch.long)
        _share(tokens, world)
        served.logits(tokens)


def _padded(batch: list[Request], context: int) -> Tensor:
    """The last tokens of each, filled up on the right, where nothing that matters looks."""
    rows = [[*request.tokens, *request.made][-context:] for request in batch]
    length = max(map(len, rows), default=0)
    return torch.tensor([row + [0] * (length - len(row)) for row in rows], dtype=torch.long).reshape(len(rows), length)


def _share(tensor: Tensor, world: int) -> None:
    if world > 1:
        dist.broadcast(tensor, 0)
