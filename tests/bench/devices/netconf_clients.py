"""NETCONF clients side by side: the same exchanges with one real netconfd behind a real sshd, in one run.

    python -m pip install -r tests/bench/devices/requirements.txt
    python tests/bench/devices/netconf_clients.py [ROUNDS] [--json FILE]

Each round asks every client in turn, in another order each time, so that all see the same load: a get-config of one
container, and an edit of one leaf with its commit. It needs the packages netconfd and openssh-server.
"""

import argparse
import json
import random
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fabric"))

from contenders import CONTENDERS, Contender
from machine import described
from netconfd import Netconfd

ROUNDS, WARM_UP, CONNECTS = 400, 10, 5
OURS = "lumctl"
EXCHANGES = ("get-config", "edit + commit")


def timed(call: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    started = perf_counter()
    call()
    return (perf_counter() - started) * 1000


def connected(server: Netconfd) -> tuple[dict[str, Contender], dict[str, list[float]]]:
    """Every client that is installed, and how long each took to connect, several times."""
    there, times = {}, defaultdict(list)
    for name, make in CONTENDERS.items():
        for attempt in range(CONNECTS):
            try:
                contender = make(server)
            except ImportError as error:
                print(f"{name}: not measured: {error}", file=sys.stderr)
                break
            times[name].append(timed(contender.open))
            if attempt < CONNECTS - 1:
                contender.close()
            else:
                there[name] = contender
    return there, times


def measure(there: dict[str, Contender], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of each exchange of each client."""
    taken: dict[str, dict[str, list[float]]] = {exchange: defaultdict(list) for exchange in EXCHANGES}
    order, dice, written = list(there), random.Random(830), 0
    for number in range(WARM_UP + rounds):
        dice.shuffle(order)
        for name in order:
            contender, written = there[name], written % 4000 + 1
            change = timed(lambda: contender.change(written))  # noqa: B023 - it is called at once
            read = timed(lambda: held.append(contender.read()))  # noqa: B023
            if f">{written}<" not in str(held.pop()):
                sys.exit(f"{name}: what was committed is not read back")
            if number >= WARM_UP:
                taken["edit + commit"][name].append(change)
                taken["get-config"][name].append(read)
    return taken


held: list[object] = []


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    server = Netconfd(lambda name: shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin") or sys.exit(f"no {name}"))
    there: dict[str, Contender] = {}
    try:
        there, connects = connected(server)
        taken = measure(there, given.rounds)
    finally:
        for contender in there.values():
            contender.close()
        server.close()
    print(f"{described()}; {given.rounds} rounds, netconfd and sshd on loopback; times in ms\n")
    for exchange in EXCHANGES:
        print(f"{exchange:28} {'p50':>9} {'p95':>9} {'to ours':>9}")
        ours = median(taken[exchange][OURS])
        for name, times in taken[exchange].items():
            p50, p95 = median(times), quantiles(times, n=20)[-1]
            print(f"  {name:26} {p50:9.3f} {p95:9.3f} {p50 / ours:8.2f}x")
        print()
    print(f"{'connect, with hellos':28} {'median':>9}")
    for name, times in connects.items():
        print(f"  {name:26} {median(times):9.1f}")
    if given.json:
        given.json.write_text(json.dumps({"where": described(), "connect_ms": connects, "exchange_ms": taken}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
