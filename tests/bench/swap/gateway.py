"""How long a swap takes through a gateway that runs already, beside one whose engine drives the mesh itself.

    python tests/bench/swap/gateway.py [PAIRS] [FOLDER]

Each side has its own simulator, store and standby guard, which stay for all pairs, and is measured by ``run.py`` from
the fault to verified circuits, with a mesh that answers at once. Which of the two goes first alternates.
"""

import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))

import run
from gateways import process, through

from lumctl.devices.endpoints import Endpoints
from lumctl.inventory.load import example

PAIRS, WARM = 40, 5


def main(pairs: int, place: Path) -> int:
    """Measure, and print."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(dir=place))) for _ in range(2)]
        direct = stack.enter_context(run.rack(folders[0], 0.0))
        gated = stack.enter_context(run.rack(folders[1], 0.0, way=partial(behind_gateway, stack, folders[1])))
        times: list[tuple[float, float]] = []
        for number in range(pairs + WARM):
            sides = (direct, gated) if number % 2 else (gated, direct)
            one, two = (run.once(*side)["fault to verified"] for side in sides)
            times.append((one, two) if number % 2 else (two, one))
    times = times[WARM:]
    low, middle, high = quantiles([gated_ms / direct_ms for direct_ms, gated_ms in times], n=4)
    print(f"{run.machine()}, {pairs} interleaved pairs")
    print(
        f"direct {median(direct for direct, _ in times):.1f} ms, gateway {median(gated for _, gated in times):.1f} ms"
    )
    print(f"ratio: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}")
    return 0


def behind_gateway(stack: ExitStack, folder: Path, endpoints: Endpoints) -> Endpoints:
    """Start a gateway for the rack, a process of its own that runs until the end."""
    socket = folder / "gateway.sock"
    order = {"inventory": str(example("prototype")), "rack": "prototype", "socket": str(socket)}
    stack.enter_context(process({**order, "sim": str(folder / "sim"), "store": str(folder / "store")}))
    return through(endpoints, socket, "prototype")


if __name__ == "__main__":
    sys.exit(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, Path(sys.argv[2]) if len(sys.argv) > 2 else run.LARGE)
    )
