"""How fast to learn: a warm-up, then half a cosine down to a tenth. A function of the step, so nothing to hand over."""

import math

import torch

PEAK = 3e-3
LAST = PEAK / 10


def rate(step: int, steps: int) -> float:
    """The learning rate of one step of ``steps``."""
    warm_up = max(1, min(20, steps // 10))
    if step < warm_up:
        return PEAK * (step + 1) / warm_up
    done = min(1.0, (step - warm_up) / max(1, steps - warm_up))
    return LAST + (PEAK - LAST) * (1 + math.cos(math.pi * done)) / 2


def set_rate(optimizer: torch.optim.Optimizer, step: int, steps: int) -> None:
    """Write it into every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate(step, steps)
