"""Revert guards that stand by: a process takes a while to come up, which a run need not wait for that comes later."""

from contextlib import suppress
from typing import Self

from lumctl.change.guard import Guard, stand_by
from lumctl.errors import LumctlError
from lumctl.site import Site
from lumctl.store import Lease


class Standby:
    """A guard for each rack of a site; the next one is started by :meth:`ready`. Use it as a context manager."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._guards: dict[str, Guard] = {}

    def ready(self, rack: str) -> None:
        """Have a guard stand by for the next run of a rack; where none can be started, that run says so."""
        guard = self._guards.get(rack)
        if guard is None or not guard.alive:
            self._dismiss(rack)
            with suppress(LumctlError):
                self._guards[rack] = stand_by(self._site, rack)

    def arm(self, site: Site, lease: Lease, silent_s: float) -> Guard:
        """Arm the guard that stands by, or one that is started now.

        Raises:
            RefusedError: none can be started, so nothing may be touched.
        """
        self.ready(lease.rack)
        guard = self._guards.pop(lease.rack, None) or stand_by(site, lease.rack)
        guard.arm(site, lease, silent_s)
        return guard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Dismiss those that stand by."""
        for rack in list(self._guards):
            self._dismiss(rack)

    def _dismiss(self, rack: str) -> None:
        if guard := self._guards.pop(rack, None):
            guard.dismiss()
