"""The simulator's side of its lanes: opens their socket, starts their process, and sends it the lit lanes."""

import contextlib
import json
import math
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lumctl.json_lines import ask
from lumctl.sim.lanes.ways import Hop
from lumctl.sim.world.world import World

_BACKLOG = 128
_ENDS_WITHIN_S = 2.0
_ANSWERS_WITHIN_S = 2.0
_NOTHING: dict[str, Any] = {"connections": 0, "dark": 0, "bytes": 0, "lanes": {}}


class SimulatedLanes:
    """The lanes of one world. Their process is started on the first request.

    ``mbps`` is the rate of each lane in each direction, in Mbit/s; ``None``: no limit.
    """

    def __init__(self, world: World, path: Path, *, mbps: float | None = None) -> None:
        self._world, self._path, self._mbps = world, path, mbps
        self._accelerators = {t.id: t.accelerator for t in world.inventory.transponders.values()}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.settimeout(0.0)
        self._busy = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lanes", daemon=True)

    def open(self) -> None:
        """Accept requests for endpoints."""
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        self._listener.listen(_BACKLOG)
        self._thread.start()

    def close(self) -> None:
        """Cut all connections and end the process. Call it only once."""
        self._ended.set()
        self._nudge()
        if self._thread.ident is not None:
            self._thread.join(2 * _ENDS_WITHIN_S)
        self._world.follow_light(None)
        for each in (self._listener, self._woken, self._wake):
            each.close()

    def status(self) -> dict[str, Any]:
        """The open connections, how many of them wait for light, and the bytes carried in all and by each lane."""
        rate: dict[str, Any] = {"mbps": self._mbps}
        if self._busy.is_set():
            with contextlib.suppress(OSError, ValueError):
                return {**rate, **ask(self._path, {"status": True}, _ANSWERS_WITHIN_S)}
        return rate | _NOTHING

    def _nudge(self) -> None:
        with contextlib.suppress(OSError):  # the buffer is full, so its reader will wake up anyway
            self._wake.send(b".")

    def _keep(self) -> None:
        while not self._ended.is_set():
            # The client waits in the backlog; the new process accepts it from there.
            ready, _, _ = select.select([self._listener, self._woken], [], [])
            if self._listener in ready and not self._ended.is_set():
                self._carry()

    def _carry(self) -> None:
        """Start the process that carries the bytes, and serve it until it ends."""
        line, childs = socket.socketpair()
        order = {"mbps": self._mbps, "hosts": {a.id: a.host for a in self._world.inventory.accelerators.values()}}
        with line, childs:
            numbers = (self._listener.fileno(), childs.fileno())
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
                # -P: a file in the current folder must not replace a module.
                [sys.executable, "-P", "-m", "lumctl.sim.lanes.server", *map(str, numbers), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
            )
            # Only the process may hold this end, because its closing tells us that the process has ended.
            childs.close()
            self._world.follow_light(self._nudge)
            self._busy.set()
            try:
                with contextlib.suppress(OSError):
                    self._follow(line)
            finally:
                self._busy.clear()
                self._world.follow_light(None)
                line.close()
                _end(process)

    def _follow(self, line: socket.socket) -> None:
        """Send the lit lanes to the process, now and at every change."""
        told = None
        while not self._ended.is_set():
            heard, until = self._world.lit_lanes()
            if heard != told:
                hops = [Hop(sent, by, self._accelerators[sent], self._accelerators[by]) for sent, by in heard]
                lit = [(hop.transmitter, hop.receiver, hop.source, hop.sink) for hop in hops]
                line.sendall(json.dumps({"lit": lit}).encode() + b"\n")
                told = heard
            patience = None if until == math.inf else max(0.0, until - time.time())
            ready, _, _ = select.select([self._woken, line], [], [], patience)
            if line in ready:  # the process never sends, so it has ended
                return
            if self._woken in ready:
                # Emptied before the lanes are read again, so a change in between wakes the next turn.
                self._woken.recv(4096)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
