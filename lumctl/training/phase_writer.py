"""Lights phases through the gateway for the coordinator, in threads, so that no rail waits for a slow device."""

import math
import threading
import time
from collections.abc import Callable
from functools import partial

from lumctl.change.concurrency import all_of
from lumctl.devices.errors import DeviceError, DeviceRefusedError, RackLeasedError
from lumctl.errors import LumctlError
from lumctl.training.phase_permission import PhasePermit
from lumctl.workers import Workers

Light = Callable[[str, str, str], object]
"""Gives a device the states of a phase: the plan that permits it, the device, the phase. Raises ``DeviceError``."""
FAILS_AFTER_S = 30.0
"""How long a change is tried: a gateway or a device may be starting again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.25
"""Pauses between attempts, also while a run changes the light of the rack, which must end before a phase may change."""


class PhaseWriter:
    """Changes the light of rails; ``confirmed`` and ``failed`` report with the permit, the rail and the number."""

    def __init__(
        self,
        light: Light,
        confirmed: Callable[[PhasePermit, int, int], None],
        failed: Callable[[PhasePermit, int, int, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._light, self._confirmed, self._failed = light, confirmed, failed
        self._permit: PhasePermit | None = None
        self._workers = Workers("lumctl-phases")
        self._turns: list[threading.Lock] = []
        self._stop = threading.Event()
        """Set once a group has ended: a change that has not begun does not begin any more."""

    def begin(self, permit: PhasePermit) -> None:
        """Change light under this permit from now on."""
        self._permit = permit
        self._turns = [threading.Lock() for _ in permit.rails]
        self._stop = threading.Event()

    def change(self, rail: int, phase: str, number: int) -> None:
        """Begin to give a rail the light of a phase; the result is posted."""
        permit, stop = self._permit, self._stop
        if permit is not None:
            self._workers.submit(partial(self._change, permit, stop, rail, phase, number))

    def stop(self) -> None:
        """Begin no further change, and wait until those that have begun have ended."""
        self._permit = None
        self._stop.set()
        for turn in self._turns:
            turn.acquire()
            turn.release()

    def close(self) -> None:
        """Stop, and end the threads."""
        self.stop()
        self._workers.close()

    def _change(self, permit: PhasePermit, stop: threading.Event, rail: int, phase: str, number: int) -> None:
        with self._turns[rail]:
            try:
                self._write(permit, stop, rail, phase)
            except Exception as error:  # noqa: BLE001 - the ranks wait for an answer
                why = error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
                self._failed(permit, rail, number, why)
                return
        self._confirmed(permit, rail, number)

    def _write(self, permit: PhasePermit, stop: threading.Event, rail: int, phase: str) -> None:
        calls = [partial(self._light, permit.plan, device, phase) for device in permit.rails[rail].devices]
        pause_s, fails_at = FIRST_PAUSE_S, math.inf
        while not stop.is_set():
            try:
                if len(calls) == 1:
                    calls[0]()
                else:
                    all_of(calls, most=len(calls))
            except RackLeasedError:
                fails_at = math.inf
            except DeviceError as error:
                fails_at = min(fails_at, self._clock() + FAILS_AFTER_S)
                if isinstance(error, DeviceRefusedError) or self._clock() > fails_at:
                    raise
            else:
                return
            stop.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        raise LumctlError("the group of ranks was given up")
