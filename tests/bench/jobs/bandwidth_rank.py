"""One rank of ``bandwidth.py`` and of ``redirect.py``: times all-reduces whose bucket goes round a ring in parts.

    python bandwidth_rank.py ORDER

ORDER (JSON): ``rank``, ``placement``, ``store`` (port), ``lanes`` (socket), ``bytes`` (of the bucket), ``rounds``, and
``ways``: by the name of a way, for each part of the bucket whether it goes round backwards. Rank 0 prints one line of
JSON: seconds of each all-reduce, by way.
"""

import json
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from lumctl.training.torch.stores import LaneStore

PATIENCE = timedelta(seconds=120)


class Channel:
    """A ring of its own over all ranks. Its ranks may be counted the other way, and gloo then sends the other way."""

    def __init__(self, served: Any, order: dict[str, Any], *, name: str, backwards: bool) -> None:
        placement = order["placement"][::-1] if backwards else order["placement"]
        rank = len(placement) - 1 - order["rank"] if backwards else order["rank"]
        self._store = LaneStore(dist.PrefixStore(name, served), rank=rank, placement=placement, lanes=order["lanes"])
        self._group = dist.ProcessGroupGloo(dist.PrefixStore("cpu/", self._store), rank, len(placement), PATIENCE)
        self._store.require_joined()

    def reduce(self, bucket: torch.Tensor) -> Any:
        """Begin to sum a bucket up; what is given back waits for the end."""
        return self._group.allreduce([bucket])


def main(order: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    served = dist.TCPStore("127.0.0.1", order["store"], is_master=order["rank"] == 0, wait_for_workers=False)
    bucket = torch.ones(order["bytes"] // 4)
    made: dict[str, Channel] = {}

    def channel(backwards: bool, number: int) -> Channel:
        name = f"{'back' if backwards else 'there'}{number}"
        if name not in made:
            made[name] = Channel(served, order, name=name, backwards=backwards)
        return made[name]

    ways = {
        way: list(
            zip(
                [channel(backwards, turns[:at].count(backwards)) for at, backwards in enumerate(turns)],
                bucket.chunk(len(turns)),
                strict=True,
            )
        )
        for way, turns in order["ways"].items()
    }
    channels = list(made.values())
    took: dict[str, list[float]] = {}
    for way, parts in ways.items():
        for _ in range(1 + order["rounds"]):
            bucket.fill_(1.0)
            channels[0].reduce(torch.zeros(1)).wait()  # all begin together
            began = time.perf_counter()
            for work in [channel.reduce(part) for channel, part in parts]:
                work.wait()
            took.setdefault(way, []).append(time.perf_counter() - began)
            assert bucket.min() == bucket.max() == len(order["placement"])
        del took[way][0]
    # Nobody leaves while another still sums up.
    channels[0].reduce(torch.zeros(1)).wait()
    if order["rank"] == 0:
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
