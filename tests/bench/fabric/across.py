"""Planning the light of a swap whose circuits run through three devices: two 9x9 meshes and a switch between them.

    python tests/bench/fabric/across.py [ROUNDS]

Each mesh has the lanes of 14 accelerators, of which 12 work in a ring that crosses the switch, and 12 fibres to it.
Each accelerator of the ring is replaced by each spare: wall time of the light paths, in one warm process. Beside it the
same swap within one device: rack64, whose rails have a mesh each. Ends with 1 if a median is above the limit.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import FREE, circuits_of, initial_assignment
from lumctl.swap.path_routing import light_paths

LIMIT_MS = 20.0
ROUNDS = 3
_SIDES, _LANES, _FIBRES = 2, 14, 12


def rack() -> str:
    """The inventory of the two meshes and the switch."""
    hosts = [f"h{side}{number:02}" for number in range(_LANES) for side in range(_SIDES)]
    ranks = [name for name in hosts if int(name[2:]) < _LANES - 2]
    lines = ["lumctl: 1", "racks: {r: }", "hosts:"]
    for name in hosts:
        role = "" if name in ranks else ", role: spare"
        lines.append(f"  - {{name: {name}, accelerators: [{{id: {name}-g, model: X, memory_gib: 80{role}}}]}}")
    lines += [
        "devices:",
        '  - {id: "m[0-1]", kind: mesh, driver: x, address: "{id}:1", geometry: {columns: 9, rows: 9}}',
        '  - {id: s, kind: switch, driver: x, address: "s:1", port_count: 32, input_count: 32}',
        "fibres:",
    ]
    for side in range(_SIDES):
        for number in range(_FIBRES):
            ends = f"[m{side}/port/{44 + 2 * number}, s/port/{_FIBRES * side + number}]"
            lines.append(f"  - {{name: f{side}-{number}, ends: {ends}, loss_db: 0.2}}")
    lines.append("transponders:")
    for name in hosts:
        for lane in (0, 1):
            port = 3 * int(name[2:]) + lane
            wiring = f"interface: eth{lane}, device: m{name[1]}, port: {port}, rx_sensitivity_dbm: -60"
            lines.append(f"  - {{id: {name}-{lane}, accelerator: {name}-g, {wiring}}}")
    lines += [
        "jobs:",
        f"  - {{name: ring, ranks: [{', '.join(f'{name}-g' for name in _ring(ranks))}], links: [{{kind: ring}}]}}",
    ]
    return "\n".join(lines) + "\n"


def _ring(ranks: list[str]) -> list[str]:
    """The ranks of one mesh, then those of the other, but for one of each that have changed places."""
    sides = [[name for name in ranks if name[1] == str(side)] for side in range(_SIDES)]
    for at in (5,):
        sides[0][at], sides[1][at] = sides[1][at], sides[0][at]
    return [*sides[0], *sides[1]]


def swaps(inventory: Inventory) -> Iterator[tuple[float, bool]]:
    """For each accelerator at work and each spare: seconds to find its light paths, and whether they span devices."""
    placed = initial_assignment(inventory)
    idle = {
        d.id: dict.fromkeys(range(d.geometry.puc_count), "=")
        if d.geometry
        else dict.fromkeys(range(d.port_count), FREE)
        for d in inventory.light_devices
    }
    before = circuits_of(inventory, placed)
    states = {device: dict(held) for device, held in idle.items()}
    for device, changes in light_paths(inventory, (), before, idle).writes.items():
        states[device] |= {change.puc: change.after for change in changes}
    spares = [a.id for a in inventory.accelerators.values() if a.role is Role.SPARE]
    for job, ranks in placed.items():
        for failed in ranks:
            for spare in spares:
                moved = {**placed, job: tuple(spare if rank == failed else rank for rank in ranks)}
                with suppress(RefusedError, UsageError):  # no fibres lead to that spare, or no path is free
                    after = circuits_of(inventory, moved)
                    began = perf_counter()
                    found = light_paths(inventory, before, after, states)
                    yield perf_counter() - began, any(len(circuit.devices) > 2 for circuit in found.add)


def main() -> int:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rack.yaml"
        path.write_text(rack(), encoding="utf-8")
        across = [found for _ in range(rounds) for found in swaps(load_inventory(path))]
    inside = [seconds for _ in range(rounds) for seconds, _ in swaps(load_inventory(example("rack64")))]
    through_three = [1000 * seconds for seconds, spans in across if spans]
    worst = 0.0
    for name, found in (
        ("through three devices", through_three),
        ("within one device (rack64)", [1000 * s for s in inside]),
    ):
        worst = max(worst, median(found))
        print(f"{name}: {len(found)} swaps, median {median(found):.1f} ms, p95 {quantiles(found, n=20)[-1]:.1f} ms")
    return int(worst > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
