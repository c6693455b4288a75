"""One held connection of OpenSSH's client per host, which every tool that starts ``ssh`` goes through.

It is what ControlPersist leaves behind after a first run of any of these tools. Made here, side by side, it costs each
of them nothing, and it is there once instead of once for each tool. Its CPU and memory count for whoever uses it.

    python kept.py CONFIG FOLDER HOST...      prints "ready" when all are up; ends them at the end of its input
"""

import subprocess
import sys
import time
from pathlib import Path

_CONNECT_AT_ONCE = 8
_PATIENCE_S = 60.0


def hold(config: str, folder: Path, hosts: list[str]) -> dict[str, "subprocess.Popen[bytes]"]:
    """Start the clients, a few at a time; each is up when its control socket is there."""
    held: dict[str, subprocess.Popen[bytes]] = {}
    deadline = time.monotonic() + _PATIENCE_S
    for host in hosts:
        while sum(not (folder / name).exists() for name in held) >= _CONNECT_AT_ONCE:
            _wait(held, deadline)
        # Without ControlPersist of its own it stays in the foreground: a child that can be accounted for and ended.
        command = ["ssh", "-F", config, "-o", "ControlPersist=no", "-M", "-N", host]
        held[host] = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while not all((folder / name).exists() for name in held):
        _wait(held, deadline)
    return held


def _wait(held: dict[str, "subprocess.Popen[bytes]"], deadline: float) -> None:
    ended = [host for host, process in held.items() if process.poll() is not None]
    if ended or time.monotonic() > deadline:
        raise SystemExit(f"ssh has no connection to {', '.join(ended) or 'some host'}")
    time.sleep(0.005)


if __name__ == "__main__":
    clients = hold(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    print("ready", flush=True)
    sys.stdin.read()
    for client in clients.values():
        client.terminate()
    for client in clients.values():
        client.wait()
