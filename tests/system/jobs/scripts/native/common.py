"""What the scripts of this folder share: a small model, numbers to learn from, and a record of the end."""

import argparse
import hashlib
import json
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

CLASSES = 8


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--workers", type=int, default=0, help="processes of the loader")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that each step takes longer")
    parser.add_argument("--width", type=int, default=32, help="of the model")
    parser.add_argument("--batch", type=int, default=8, help="samples of one rank in a step")
    parser.add_argument("--fixed-buckets", action="store_true", help="DDP keeps the order of its buckets")
    given = parser.parse_args()
    Numbers.pace, Numbers.width = given.pace, given.width
    return given


class Net(nn.Module):
    """Blocks with a residual, dropout and a running mean: everything that a repeated step could spoil."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return x + self.dropout(self.down(torch.relu(self.up(x))))


class Numbers(Dataset):
    """Samples that only their number decides."""

    pace, width = 0.0, 32

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> tuple[Tensor, int]:
        time.sleep(self.pace / 8)
        drawn = torch.Generator().manual_seed(at)
        label = int(torch.randint(CLASSES, (), generator=drawn))
        return torch.randn(self.width, generator=drawn) + label, label


class Losses(list):
    """The losses of a rank, and how long its steps took (seconds)."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []

    def append(self, loss: float) -> None:
        self.at.append(time.perf_counter())
        super().append(loss)

    def step_s(self) -> float:
        return median(later - at for at, later in pairwise(self.at))


class Texts(Dataset):
    """Random sequences of tokens, which only their number decides."""

    WORDS, LENGTH = 64, 16

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> dict[str, Tensor]:
        time.sleep(Numbers.pace / 8)
        tokens = torch.randint(self.WORDS, (self.LENGTH,), generator=torch.Generator().manual_seed(at))
        return {"input_ids": tokens, "labels": tokens}


def ends(out: Path, rank: int, model: nn.Module, losses: list[float]) -> None:
    """Write what this rank has in the end: its parameters to the last bit, and its last losses."""
    state = {}
    for name, value in model.state_dict().items():
        local = value.to_local() if hasattr(value, "to_local") else value
        state[name] = hashlib.sha256(local.detach().contiguous().numpy().tobytes()).hexdigest()[:16]
    found = {"state": state, "losses": losses[-3:], "step_s": losses.step_s() if isinstance(losses, Losses) else None}
    path = out / f"rank-{rank}.json"
    path.with_suffix(".new").write_text(json.dumps(found))
    path.with_suffix(".new").replace(path)
