"""Connections that are kept and not used: what they cost while nobody asks for anything."""

import sys
import time
from argparse import Namespace
from contextlib import ExitStack

import payload
from competitors import competitors_python
from contender_lumctl import loop_program
from driver import Contender
from rack import Rack, addresses
from report import Verdict, finish, table
from roster import ROSTER, chosen

_LIMIT_PERCENT = 0.1
_SETTLE_S = 5.0


def run(options: Namespace) -> int:
    entries = chosen(options.only or "lumctl,asyncssh-loop,asyncssh-exec")
    with Rack(addresses(options.hosts)) as rack, ExitStack() as running:
        digest = payload.put(rack.payload, payload.fresh(options.bytes))
        contenders = []
        for entry in entries:
            python = sys.executable if entry is ROSTER[0] else competitors_python()
            contender = Contender(entry, rack, python, program=loop_program(rack.command))
            running.callback(contender.close)
            contender.tick()
            contender.check(digest)
            contenders.append(contender)
        time.sleep(_SETTLE_S)
        before = {contender: contender.idle_cpu_s() for contender in contenders}
        started = time.monotonic()
        time.sleep(options.seconds)
        percents = {
            contender.entry: 100 * (contender.idle_cpu_s() - before[contender]) / (time.monotonic() - started)
            for contender in contenders
        }
        for contender in contenders:
            # Idle, not dead: each still answers, with every host.
            digest = payload.put(rack.payload, payload.fresh(options.bytes))
            contender.tick()
            contender.check(digest)
    print(f"\n{options.hosts} idle connections over {options.seconds:g} s, in % of one core:\n")
    print(table([("contender", "%"), *((entry.what, f"{percent:.4f}") for entry, percent in percents.items())]))
    own = percents.get(ROSTER[0])
    verdicts = [Verdict(f"{options.hosts} idle connections of lumctl", own, _LIMIT_PERCENT, " %")]
    measured = {
        "hosts": options.hosts,
        "seconds": options.seconds,
        "percent": {entry.name: percent for entry, percent in percents.items()},
    }
    return finish("idle", measured, verdicts, options.json)
