"""The three ways by name."""

from lumctl.training.example.config import Size
from lumctl.training.example.learner import Learner, Served
from lumctl.training.example.pipeline import Pipeline
from lumctl.training.example.replicated import Average, Replicated
from lumctl.training.example.sharded import Sharded

SERVED: dict[str, type[Sharded | Pipeline]] = {"sharded": Sharded, "pipeline": Pipeline}
WAYS = ("data", *SERVED)


def learner(way: str, size: Size, *, seed: int, average: Average) -> Learner:
    """A model to be trained in one of the ways; ``average`` is what `data` joins gradients by."""
    return Replicated(size, seed=seed, average=average) if way == "data" else served(way, size, seed=seed)


def served(way: str, size: Size, *, seed: int) -> Served:
    """A model whose parts the ranks hold."""
    return SERVED[way](size, seed=seed)
