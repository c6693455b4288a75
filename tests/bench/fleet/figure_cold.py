"""One host, from nothing to its first answer: connect, authenticate, ask, have every byte.

lumctl asks in the same way as its peer, with one command, and in a second column as a tick does: it starts its loop on
the host, which is then there for all that follows.
"""

import sys
import time
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import replace
from statistics import median, quantiles

import payload
from competitors import competitors_python
from driver import Contender, Tick
from rack import Rack, addresses
from report import Verdict, finish, table
from roster import ROSTER, chosen

_LIMIT = 0.35
_HOSTS = 8
_WARM_UPS = 3
_BETWEEN_S = 0.05
_LOOP = "lumctl, its loop"


def run(options: Namespace) -> int:
    """The contenders take turns. What was opened is closed between the turns, and not counted."""
    lumctl, asyncssh = (replace(entry, variant="cold") for entry in chosen("lumctl,asyncssh-exec"))
    entries = [lumctl, replace(lumctl, name=_LOOP, variant="cold-loop"), asyncssh]
    ticks: dict[str, list[Tick]] = {entry.name: [] for entry in entries}
    with Rack(addresses(_HOSTS)) as rack, ExitStack() as running:
        contenders = []
        for entry in entries:
            python = sys.executable if entry.script == ROSTER[0].script else competitors_python()
            contenders.append(Contender(entry, rack, python))
            running.callback(contenders[-1].close)
        for at in range(options.times + _WARM_UPS):
            host = rack.hosts[at % _HOSTS]
            for contender in contenders:
                digest = payload.put(rack.payload, payload.fresh(options.bytes))
                tick = contender.tick(f"cold {host}")
                contender.check(digest, {host})
                contender.order("hangup")
                time.sleep(_BETWEEN_S)
                if at >= _WARM_UPS:
                    ticks[contender.name].append(tick)
    walls = {name: [tick.wall_s for tick in taken] for name, taken in ticks.items()}
    cpus = {name: median(tick.cpu_s for tick in taken) for name, taken in ticks.items()}
    print(f"\nOne cold host to its first answer of {options.bytes} bytes, {options.times} times each, in ms:\n")
    rows = [
        (name, *(f"{s * 1e3:.1f}" for s in (median(wall), quantiles(wall, n=20)[18], cpus[name])))
        for name, wall in walls.items()
    ]
    print(table([("contender", "median", "p95", "client CPU"), *rows]))
    ratio = median(walls["lumctl"]) / median(walls["asyncssh-exec"])
    verdicts = [Verdict("one cold host: lumctl / asyncssh with its defaults", ratio, _LIMIT, "x")]
    return finish("cold", {"bytes": options.bytes, "wall_s": walls, "client_cpu_s": cpus}, verdicts, options.json)
