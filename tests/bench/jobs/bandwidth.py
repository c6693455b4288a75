"""Bandwidth between the ranks of a ring before a failure, after an optical swap, and over an electrical rack's detour.

    python tests/bench/jobs/bandwidth.py [MBPS] [ROUNDS] [--out FILE.json]

Four ranks of PyTorch, joined by gloo through a simulator's lanes, each of which carries MBPS Mbit/s each way.

Optical: the inventory ring4. The second rank's GPU is lost, lumctl plans the swap and applies it through its drivers:
the ring is closed again over the spare. Electrical: five of these hosts, the spare among them, joined by links that
nobody can move, as a ring. The spare takes the rank's place, and traffic to its neighbours in the job is forwarded by
the hosts in between, over links that other neighbours use too. (The host of the lost GPU still forwards.)

Two figures. *Stream*: what a connection between neighbours in the job's ring carries, in each direction, while all of
them are busy. *All-reduce*: bytes of the bucket that leave each rank in a second (2 (n - 1) / n of the bucket go
through), once with the bucket sent round one way, which is what gloo does by itself, and once half of it each way,
which is what libraries do that use both directions of a link.

--out keeps the figures for `lumctl study run recovery --measured FILE.json`.

Published for Morphlux (arXiv 2508.03674): iperf 2.00x, AllReduce 1.79 to 1.82x of an electrical rack.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import Any

from lumctl.change import apply
from lumctl.context import Context
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import store_at
from lumctl.swap import commission, plan_swap
from lumctl.training.picture import this_machine

MBPS, ROUNDS = 50.0, 5
BUCKET = 2 * 1024 * 1024
STREAM_S, STREAM_SETTLES_S = 1.5, 0.5
JOB, VICTIM, SPARE = "train", "h2-gpu0", "h5-gpu0"
RANK = Path(__file__).with_name("bandwidth_rank.py")
PATIENCE_S = 180.0
SCHEMA = "lumctl/bandwidth-bench/v1"
FIGURES = ("stream, mean", "stream, worst", "all-reduce, one way", "all-reduce, both ways")
PUBLISHED = {
    "stream, worst": (2.0, 2.0),
    "all-reduce, one way": (1.79, 1.82),
    "all-reduce, both ways": (1.79, 1.82),
}
NEAR = 0.1
"""A ratio this far from what is published, in parts of it, still reproduces it."""


@contextmanager
def rack(folder: Path, mbps: float, *, electrical: bool) -> Iterator[tuple[SimProcess, Context]]:
    """A commissioned rack. In the electrical one a ring through five hosts is lit once, and then left as it is."""
    folder.mkdir()
    text = example("ring4").read_text()
    if electrical:
        text = text.replace("ranks: h[1-4]-gpu0", "ranks: h[1-5]-gpu0").replace("- name: h[1-4]\n", "- name: h[1-5]\n")
        text = text.replace("- name: h[5-6]\n", "- name: h6\n")
    path = folder / "ring.yaml"
    path.write_text(text)
    inventory = load_inventory(path)
    store = store_at(str(folder / "store"), rack="ring4")
    with (
        launch(inventory, folder=folder / "sim", lane_mbps=mbps, tied=True) as sim,
        Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
    ):
        commission(context)
        yield sim, context


def measured(context: Context, placement: Sequence[str], rounds: int) -> dict[str, float]:
    """All figures of one placement, in Mbit/s."""
    rates = streams(context, placement)
    took = all_reduces(context, placement, rounds, {"one way": [False], "both ways": [False, True]})
    through = 2 * (len(placement) - 1) / len(placement) * 8 * BUCKET / 1e6
    reduced = {f"all-reduce, {way}": through / median(seconds) for way, seconds in took.items()}
    return {"stream, mean": mean(rates), "stream, worst": min(rates), **reduced}


def streams(context: Context, placement: Sequence[str], *, connections: int = 1) -> list[float]:
    """What each connection between neighbours in the ring carries in each direction, all at once; in Mbit/s."""
    pairs = list(zip(placement, [*placement[1:], placement[0]], strict=True)) * connections
    with ExitStack() as opened:
        ends = [end for pair in pairs for end in joined(context, *pair)]
        for end in ends:
            opened.callback(end.close)
        counts = [0] * len(ends)

        def count(index: int) -> None:
            buffer = bytearray(1 << 16)
            with suppress(ConnectionResetError):
                while got := ends[index].recv_into(buffer):
                    counts[index] += got

        def fill(end: socket.socket) -> None:
            data = bytes(1 << 16)
            with suppress(OSError):
                while True:
                    end.sendall(data)

        threads = [threading.Thread(target=count, args=(index,)) for index in range(len(ends))]
        threads += [threading.Thread(target=fill, args=(end,)) for end in ends]
        for each in threads:
            each.start()
        time.sleep(STREAM_SETTLES_S)
        began, before = time.perf_counter(), list(counts)
        time.sleep(STREAM_S)
        took, after = time.perf_counter() - began, list(counts)
        for end in ends:
            end.shutdown(socket.SHUT_RDWR)
        for each in threads:
            each.join()
    return [8 * (late - early) / took / 1e6 for early, late in zip(before, after, strict=True)]


def joined(context: Context, source: str, sink: str) -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection over the lanes."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(context.endpoints.lanes))
        request = {"from": source, "to": sink, "address": listener.getsockname()}
        asking.sendall(json.dumps(request).encode() + b"\n")
        near = socket.create_connection(json.loads(asking.recv(4096))["endpoint"])
        far, _ = listener.accept()
    return near, far


def all_reduces(
    context: Context, placement: Sequence[str], rounds: int, ways: dict[str, list[bool]]
) -> dict[str, list[float]]:
    """Seconds of each all-reduce of real ranks, by the way that the bucket goes: for each part, whether backwards."""
    order = {"bytes": BUCKET, "rounds": rounds, "ways": ways}
    return dict(said_by_ranks(RANK, context, placement, order, PATIENCE_S))


def said_by_ranks(
    script: Path, context: Context, placement: Sequence[str], order: dict[str, Any], patience_s: float
) -> Any:
    """The JSON of rank 0, of ranks that run a script over the lanes of the rack; each gets the order and its rank."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        store = free.getsockname()[1]
    order = {**order, "placement": list(placement), "store": store, "lanes": str(context.endpoints.lanes)}
    ranks = [
        subprocess.Popen(
            [sys.executable, script, json.dumps(order | {"rank": rank})],
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(len(placement))
    ]
    try:
        said = [rank.communicate(timeout=patience_s)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert all(rank.returncode == 0 for rank in ranks)
    return json.loads(said[0])


def optical(folder: Path, mbps: float, rounds: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Before the failure, and after lumctl's own swap."""
    with rack(folder, mbps, electrical=False) as (sim, context):
        yield "before the failure", measured(context, context.assignment()[JOB], rounds)
        sim.inject(VICTIM, "gpu-lost")
        plan = plan_swap(context, JOB, [VICTIM], spares=[SPARE])
        assert apply(context, plan).outcome == "done"
        yield "after the swap", measured(context, context.assignment()[JOB], rounds)


def electrical(folder: Path, mbps: float, rounds: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Before the failure, and with the spare in the rank's place where no link can be moved."""
    ranks = [f"h{number}-gpu0" for number in range(1, 5)]
    with rack(folder, mbps, electrical=True) as (sim, context):
        yield "before the failure", measured(context, ranks, rounds)
        sim.inject(VICTIM, "gpu-lost")
        yield "detour", measured(context, [SPARE if each == VICTIM else each for each in ranks], rounds)


def main(mbps: float, rounds: int, out: Path | None = None) -> int:
    print(f"Mbit/s; lanes of {mbps:g} each way; 4 ranks, a bucket of {BUCKET >> 20} MiB; load {os.getloadavg()[0]:.1f}")
    print(f"{'':32}" + "".join(f"{figure:>23}" for figure in FIGURES))
    found: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="lumctl-bw-") as scratch:
        for kind, scenes in (("optical", optical), ("electrical", electrical)):
            for scene, figures in scenes(Path(scratch) / kind, mbps, rounds):
                found[kind, scene] = figures
                show(f"{kind}, {scene}", [figures[figure] for figure in FIGURES], 1)
    swapped, detour = found["optical", "after the swap"], found["electrical", "detour"]
    before = found["optical", "before the failure"]
    show("swap : before the failure", [swapped[figure] / before[figure] for figure in FIGURES], 2)
    show("swap : detour", [swapped[figure] / detour[figure] for figure in FIGURES], 2)
    for figure, (least, most) in PUBLISHED.items():
        ratio = swapped[figure] / detour[figure]
        print(f"{figure}: {ratio:.2f}x here, {least:g} to {most:g}x published: {verdict(ratio, least, most)}")
    if out is not None:
        figures = [
            {"name": figure, "swap_mbps": swapped[figure], "detour_mbps": detour[figure], "published": published}
            for figure, published in PUBLISHED.items()
        ]
        about = {"machine": this_machine(), "date": datetime.now(UTC).date().isoformat(), "lanes_mbps": mbps}
        out.write_text(json.dumps({"schema": SCHEMA, **about, "figures": figures}, indent=2) + "\n")
    return 0


def verdict(ratio: float, least: float, most: float) -> str:
    """What a ratio says about the published ones."""
    if ratio < least * (1 - NEAR):
        return "refuted"
    return "reproduced" if ratio <= most * (1 + NEAR) else "reproduced, and more than published"


def show(name: str, values: Sequence[float], digits: int) -> None:
    print(f"{name:32}" + "".join(f"{value:23.{digits}f}" for value in values), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("mbps", nargs="?", type=float, default=MBPS)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    sys.exit(main(**vars(parser.parse_args())))
