"""A thousand hosts beside 256: CPU and memory of the client per host, with the server out of the way.

Both sizes run against one light server that has a core of its own where there are two, in turns.
"""

import os
import sys
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

import payload
from competitors import competitors_python
from contender_lumctl import loop_program
from driver import Contender, Tick
from light import LightServer
from rack import Rack, addresses
from report import Verdict, finish, table
from roster import ROSTER, chosen

_FEW = 256
_NO_WORSE = 1.05
"""Two equal runs differ by some per cent."""
_SMALL_BYTES = 700
_WARM_UPS = 2


@dataclass
class Measured:
    hosts: int
    rss: int = 0
    ticks: dict[str, list[Tick]] = field(default_factory=dict)

    def cpu_ms(self, kind: str) -> float:
        """Client CPU per host and tick."""
        taken = self.ticks[kind]
        return sum(tick.cpu_s for tick in taken) * 1e3 / len(taken) / self.hosts

    def wall_ms(self, kind: str) -> float:
        return median(tick.wall_s for tick in self.ticks[kind]) * 1e3

    @property
    def rss_kb(self) -> float:
        """Resident memory per host."""
        return self.rss / 1e3 / self.hosts


def run(options: Namespace) -> int:
    entry = chosen(options.only or "lumctl")[0]
    python = competitors_python()
    sizes = [Measured(_FEW), Measured(options.hosts)]
    kinds = {f"{options.bytes} new bytes": options.bytes, f"{_SMALL_BYTES} new bytes": _SMALL_BYTES, "nothing new": 0}
    with Rack(addresses(options.hosts), sshd=False) as rack, ExitStack() as running:
        server = LightServer(rack, python)
        running.callback(server.close)
        ours, theirs = _cores()
        os.sched_setaffinity(server.process.pid, theirs)
        pairs = []
        digest = _load(server, rack, options.bytes)
        for size in sizes:
            contender = Contender(
                entry,
                rack,
                sys.executable if entry is ROSTER[0] else python,
                program=loop_program(rack.command),
                name=f"{entry.name}-{size.hosts}",
                settings={"hosts": rack.hosts[: size.hosts]},
                cores=ours,
            )
            running.callback(contender.close)
            pairs.append((contender, size))
        for kind, wanted in kinds.items():
            for at in range(options.rounds + _WARM_UPS):
                for contender, size in pairs:
                    digest = _load(server, rack, wanted) if wanted else digest
                    tick = contender.tick()
                    contender.check(digest)
                    if at >= _WARM_UPS:
                        size.ticks.setdefault(kind, []).append(tick)
        for contender, size in pairs:
            size.rss = contender.memory().rss
    return _report(entry.name, sizes, list(kinds), options)


def _report(name: str, sizes: list[Measured], kinds: list[str], options: Namespace) -> int:
    few, many = sizes
    print(f"\n{name}: client CPU in ms per host and tick, {options.rounds} ticks of each kind\n")
    rows = [
        (
            kind,
            f"{few.cpu_ms(kind):.4f}",
            f"{many.cpu_ms(kind):.4f}",
            f"{few.wall_ms(kind):.0f}",
            f"{many.wall_ms(kind):.0f}",
        )
        for kind in kinds
    ]
    head = ("answer", *(f"{size.hosts}: CPU" for size in sizes), *(f"{size.hosts}: wall ms" for size in sizes))
    print(table([head, *rows]))
    more_kb = (many.rss - few.rss) / 1e3 / (many.hosts - few.hosts)
    print(
        f"\nmemory: {few.hosts} hosts {few.rss / 1e6:.0f} MB, {few.rss_kb:.0f} kB per host; {many.hosts} hosts", end=" "
    )
    print(f"{many.rss / 1e6:.0f} MB, {many.rss_kb:.0f} kB per host; each host more costs {more_kb:.0f} kB")
    verdicts = [
        Verdict(
            f"CPU per host, {kind}: {many.hosts} / {few.hosts}", many.cpu_ms(kind) / few.cpu_ms(kind), _NO_WORSE, "x"
        )
        for kind in kinds
    ]
    verdicts.append(Verdict(f"memory per host: {many.hosts} / {few.hosts}", many.rss_kb / few.rss_kb, _NO_WORSE, "x"))
    measured = {
        "contender": name,
        "sizes": [
            {
                "hosts": size.hosts,
                "rss_bytes": size.rss,
                "ticks": {kind: [[t.wall_s, t.cpu_s] for t in taken] for kind, taken in size.ticks.items()},
            }
            for size in sizes
        ],
    }
    return finish("light", measured, verdicts, options.json)


def _load(server: LightServer, rack: Rack, size: int) -> str:
    digest = payload.put(rack.payload, payload.fresh(size))
    server.order(f"load {rack.payload}")
    return digest


def _cores() -> tuple[set[int], set[int]]:
    """Cores for the client and for the server; the same ones where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return ({cores[0]}, {cores[1]}) if len(cores) > 1 else (set(cores), set(cores))
