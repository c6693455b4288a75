"""Some hosts hang, at connect, before the banner, or in the middle of an answer: do the others take any longer?

Fleets with hung hosts and one without take turns, tick by tick. The healthy hosts are behind real sshd in each. What is
held against each other is the time in which the last healthy host has answered, and the time of the whole tick.
"""

import itertools
import socket
import sys
from argparse import Namespace
from contextlib import ExitStack
from statistics import quantiles

import payload
from competitors import competitors_python
from driver import Contender
from light import LightServer
from rack import Rack, addresses, free_port
from report import Verdict, finish, table
from roster import ROSTER

_SHARE = 0.05
_SAME = 1.10
"""Two equal fleets differ by some per cent."""
_WARM_UPS = 3
_KINDS = ("connect", "banner", "answer")
_PATIENCE_S = 1.0
_DEADLINE_S = 3.0
_CONNECT_TIMEOUT_S = 5.0


def run(options: Namespace) -> int:
    count = max(1, round(options.hosts * _SHARE))
    healthy = addresses(options.hosts - count)
    ports = {kind: free_port() for kind in _KINDS}
    hung = {kind: addresses(count, 20 + at) for at, kind in enumerate(_KINDS)}
    others = {host: ports[kind] for kind, hosts in hung.items() for host in hosts}
    seconds: dict[str, list[tuple[float, float]]] = {kind: [] for kind in ("none", *_KINDS)}
    with Rack(healthy, others=others) as rack, ExitStack() as running:
        payload.put(rack.payload, payload.fresh(options.bytes))
        for sock in itertools.chain(_full(hung["connect"], ports["connect"]), _mute(hung["banner"], ports["banner"])):
            running.enter_context(sock)
        server = LightServer(rack, competitors_python(), ports["answer"])
        running.callback(server.close)
        server.order(f"load {rack.payload}")
        fleets = {}
        for kind in seconds:
            told = {
                "hosts": (*healthy, *hung.get(kind, ())),
                "patience_s": _PATIENCE_S,
                "deadline_s": _DEADLINE_S,
                "connect_timeout_s": _CONNECT_TIMEOUT_S,
            }
            print(f"  hung: {kind}", file=sys.stderr)
            fleets[kind] = Contender(ROSTER[0], rack, sys.executable, name=f"hung-{kind}", settings=told)
            running.callback(fleets[kind].close)
        for at in range(options.rounds + _WARM_UPS):
            if at == _WARM_UPS:
                # What hangs in the middle of an answer was well before; its first tick is the one of interest.
                server.order("stall")
                server.order(f"load {rack.payload}")
            order = list(fleets.items())
            turn = at % len(order)
            for kind, fleet in order[turn:] + order[:turn]:
                digest = payload.put(rack.payload, payload.fresh(options.bytes))
                tick = fleet.tick()
                fleet.check(digest, set(healthy))
                last = max(after for host, (_, after) in fleet.answers().items() if host in healthy and after)
                if at >= _WARM_UPS:
                    seconds[kind].append((last, tick.wall_s))
    return _report(seconds, len(healthy), count, options)


def _report(seconds: dict[str, list[tuple[float, float]]], healthy: int, count: int, options: Namespace) -> int:
    print(f"\n{healthy} hosts, and {count} more that hang; ms until the last of them answered, and whole ticks\n")
    found = {kind: _percentiles(taken) for kind, taken in seconds.items()}
    head = ("hung at", "others p50", "p95", "tick p50", "p95")
    print(table([head, *((kind, *(f"{s * 1e3:.1f}" for s in each)) for kind, each in found.items())]))
    verdicts = [
        Verdict(f"{word} of the others, {count} hung at {kind} / none", found[kind][at] / found["none"][at], _SAME, "x")
        for kind in _KINDS
        for at, word in enumerate(("p50", "p95"))
    ]
    return finish("hang", {"healthy": healthy, "hung": count, "seconds": seconds}, verdicts, options.json)


def _percentiles(taken: list[tuple[float, float]]) -> tuple[float, float, float, float]:
    others, ticks = (quantiles(column, n=20) for column in zip(*taken, strict=True))
    return others[9], others[18], ticks[9], ticks[18]


def _full(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    """Listeners that accept nobody and whose queues are full: the kernel does not answer a SYN any more."""
    sockets = []
    for host in hosts:
        listener = socket.create_server((host, port), backlog=0)
        sockets.append(listener)
        for _ in range(3):
            filler = socket.socket()
            filler.settimeout(0)
            filler.connect_ex((host, port))
            sockets.append(filler)
    return sockets


def _mute(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    """Listeners whose connections the kernel accepts, and nobody ever says a word."""
    return [socket.create_server((host, port), backlog=1024) for host in hosts]
