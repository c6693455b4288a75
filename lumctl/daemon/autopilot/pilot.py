"""The autopilot of all racks of an inventory, in a thread of its own: what it does never delays a look."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from lumctl.daemon.autopilot.rackpilot import RackPilot
from lumctl.daemon.autopilot.telling import Tell, silent
from lumctl.inventory.model import Inventory
from lumctl.site import Observation, Site
from lumctl.store import Store


class Pilot:
    """Takes the newest look and does what policies allow. Without policies there is no thread and nothing is read."""

    def __init__(
        self,
        open_site: Callable[[Inventory], Site],
        store: Callable[[str], Store],
        say: Callable[[str], None],
        *,
        tell: Tell = silent,
        trouble: Callable[[str, Exception | None], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        """``trouble`` is told what went wrong in a place, or ``None`` when it is well there again."""
        self._open_site, self._store = open_site, store
        self._say, self._tell, self._trouble, self._now = say, tell, trouble, now
        self._changed = threading.Condition()
        self._look: Observation | None = None
        self._ended = False
        self._stopped: str | None = None
        self._thread: threading.Thread | None = None
        self._stores: list[Store] = []
        self.racks: Mapping[str, RackPilot] = {}
        """By name; the mapping is replaced, never changed."""
        self.busy = False
        """Whether it is at work on a look: a swap may be under way."""

    def see(self, look: Observation) -> None:
        """Take a look, in place of one that was not yet considered; never waits."""
        if not look.inventory.policies and self._thread is None:
            return
        with self._changed:
            self._look = look
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="lumctl-autopilot", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, why: str) -> None:
        """Do nothing more, from any thread, until :meth:`start`: nothing on disk is needed for that."""
        self._stopped = why

    def start(self) -> None:
        """Take back :meth:`stop`."""
        self._stopped = None

    @property
    def stopped(self) -> str | None:
        """Why nothing is done, by what was told to this process itself."""
        return self._stopped

    def close(self) -> None:
        """End. A run that is under way is finished first, or rolled back by its own engine: it is not cut."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            if self.busy:
                self._say("autopilot: what it does is finished first")
            self._thread.join()
        for store in self._stores:
            store.close()

    def states(self) -> dict[str, Any]:
        """For metrics: by rack whether it may act, which breakers are open, and what was counted."""
        return {
            rack: {
                "running": pilot.stopped() is None and pilot.memory.halted is None,
                "breakers": {name: state.open_since is not None for name, state in pilot.memory.breakers.items()},
                "counts": dict(pilot.counts),
            }
            for rack, pilot in self.racks.items()
        }

    def _run(self) -> None:
        while (look := self._next()) is not None:
            try:
                self._consider(look)
            finally:
                self.busy = False

    def _next(self) -> Observation | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._look is not None)
            look, self._look = self._look, None
            self.busy = not self._ended
            return None if self._ended else look

    def _consider(self, look: Observation) -> None:
        for rack in look.inventory.racks:
            place = f"autopilot of {rack}"
            try:
                self._pilot(rack).consider(look)
            except Exception as error:  # noqa: BLE001 - the next look comes, and one rack's trouble is not another's
                self._trouble(place, error)
            else:
                self._trouble(place, None)

    def _pilot(self, rack: str) -> RackPilot:
        if rack not in self.racks:
            store = self._store(rack)
            self._stores.append(store)
            pilot = RackPilot(
                rack, store, self._open_site, self._tell, self._say, stopped=lambda: self._stopped, now=self._now
            )
            self.racks = {**self.racks, rack: pilot}
        return self.racks[rack]
