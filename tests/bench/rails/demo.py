"""``make demo-rails``: eight ranks train while light changes between the phases of each step, and lose nothing by it.

The simulated rack of inventories/rails.yaml is driven as an operator does it: simulator, gateway, ``lumctl job run``.
Then torchrun trains the same model with all ranks connected all the time. The losses must be equal to the last bit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INVENTORY = Path(__file__).parents[3] / "inventories" / "rails.yaml"
SCRIPT = "lumctl.training.example.rails"
RANKS = 8
CHANGE_MS = 10
ON_SIM = ("--target", "sim")


def main() -> int:
    """Run both, compare, print; 0 if the losses are equal and light changed in both modes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--change-ms", type=int, default=CHANGE_MS, help="how long a switch takes for a change")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lumctl-rails-") as made:
        folder = Path(made)
        began = time.monotonic()
        job = over_light(folder, options.steps, options.change_ms)
        light_s = time.monotonic() - began
        began = time.monotonic()
        connected(folder, options.steps)
        connected_s = time.monotonic() - began
        equal = losses(folder / "light") == losses(folder / "connected")
    return report(job, options.change_ms, light_s, connected_s, equal=equal)


def over_light(folder: Path, steps: int, change_ms: int) -> dict[str, Any]:
    """Train under ``lumctl job run``; return the status of the ended job."""
    with rack(folder, steps, change_ms) as environment:
        lumctl(environment, "job", "run", "train", "--yes")
        found: dict[str, Any] = json.loads(lumctl(environment, "job", "status", "train", "-o", "json"))
        return found


@contextmanager
def rack(
    folder: Path, steps: int, change_ms: int, edit: Callable[[str], str] = lambda text: text
) -> Iterator[dict[str, str]]:
    """The simulated rack, its inventory edited, and its gateway: the environment in which commands use them."""
    inventory = inventory_with(folder, f"-m, {SCRIPT}, --steps, '{steps}', --losses, {folder / 'light'}", edit)
    environment = environment_of(folder, inventory)
    lumctl(environment, "sim", "up", "--detach", "--change-ms", str(change_ms))
    try:
        with served(environment, folder) as found:
            yield found
    finally:
        lumctl(environment, "sim", "down")


def inventory_with(folder: Path, script: str, edit: Callable[[str], str] = lambda text: text) -> Path:
    """A copy of the inventory, edited, whose job runs a script with these arguments."""
    inventory, text = folder / "rails.yaml", INVENTORY.read_text()
    written = text.replace(f"-m, {SCRIPT}]", f"{script}]\n      standby: false")
    if written == text:
        raise SystemExit(f"{INVENTORY} does not run {SCRIPT}")
    inventory.write_text(edit(written))
    return inventory


def environment_of(folder: Path, inventory: Path) -> dict[str, str]:
    """The environment in which commands use an inventory and the simulator, with all their files in a folder."""
    runtime = folder / "r"
    runtime.mkdir(mode=0o700)
    named = {"LUMCTL_INVENTORY": inventory, "LUMCTL_STATE": folder / "state", "XDG_RUNTIME_DIR": runtime}
    return {**os.environ, **{name: str(path) for name, path in named.items()}, "LUMCTL_TARGET": "sim"}


@contextmanager
def served(environment: Mapping[str, str], folder: Path) -> Iterator[dict[str, str]]:
    """The gateway of a simulated rack that runs: the environment in which commands use both."""
    socket = folder / "gateway.sock"
    lumctl(environment, "fabric", "apply", "--yes")
    with gateway(environment, socket):
        yield {**environment, "LUMCTL_GATEWAY": str(socket)}


def lumctl(environment: Mapping[str, str], *arguments: str) -> str:
    """What a command of lumctl prints."""
    command = [sys.executable, "-m", "lumctl", *arguments]
    run = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"lumctl {' '.join(arguments)} ended with exit code {run.returncode}")
    return run.stdout


@contextmanager
def gateway(environment: Mapping[str, str], socket: Path) -> Iterator[None]:
    """The gateway of the rack, in a process of its own."""
    command = [sys.executable, "-m", "lumctl", "gateway", "run", "rails", "--listen", str(socket)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if "serving rack" in line:
                break
        try:
            yield
        finally:
            running.terminate()


def connected(folder: Path, steps: int) -> None:
    """Train under torchrun: all ranks reach each other all the time."""
    under_torchrun(["-m", SCRIPT, "--steps", str(steps), "--losses", str(folder / "connected")])


def under_torchrun(script: list[str]) -> None:
    """Run a script and its arguments in eight ranks under torchrun, on loopback."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", *script]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def losses(path: Path) -> dict[int, str]:
    """The loss of each step; a step that was repeated counts once, with its last value."""
    return {int(step): loss for step, loss in (line.split() for line in path.read_text().splitlines())}


def report(job: Mapping[str, Any], change_ms: int, light_s: float, connected_s: float, *, equal: bool) -> int:
    """Print the figures; 1 if the losses differ, a mode was not used, or a change failed."""
    light = job["light"]
    print(f"{len(job['ranks'])} ranks, {job['done']} training steps, one switch per rail, {change_ms} ms per change")
    print(f"{light['changes']} changes of light, {light['failed_changes']} failed; {light_s:.1f} s with start and end")
    for mode, found in light["by_mode"].items():
        if found["steps"]:
            print(
                f"  {mode:9}  {found['steps']:3} steps  {found['changes']:.0f} changes a step  "
                f"waiting {1000 * found['wait_s']:.1f} ms  hidden {1000 * found['hidden_s']:.1f} ms  (medians)"
            )
    for each in light["boundaries"]:
        chosen = "not decided yet" if each["pays"] is None else each["mode"] + ("" if each["pays"] else ", no gain")
        print(f"  {each['left']} to {each['entered']}: {chosen}")
    print(f"static full connectivity (torchrun): {connected_s:.1f} s with start and end")
    print("the losses are equal to the last bit" if equal else "THE LOSSES DIFFER")
    used = all(found["steps"] for found in light["by_mode"].values())
    return 0 if equal and used and not light["failed_changes"] else 1


if __name__ == "__main__":
    sys.exit(main())
